package main

import (
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"an answer", `{"choices":[{"message":{"content":"Hi \"there\"."}}]}`, `Hi "there".`},
		{"a stream", "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n" +
			"data: {\"choices\":[{\"delta\":{\"content\":\"Hi \"}}]}\n\n" +
			"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n", "Hi {}"},
		{"an error", `{"error":{"message":"no"}}`, ""},
		{"nothing", "", ""},
	} {
		if got := words([]byte(c.body)); got != c.want {
			t.Errorf("%s says %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPartsOnDemandRunOnlyByName(t *testing.T) {
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.name == "litellm" {
			t.Error("LiteLLM would have to be installed for every run")
		}
	}
	if one, err := choose("litellm"); err != nil || len(one) != 1 || one[0].name != "litellm" {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := choose("litellm,nothing"); err == nil || !strings.Contains(err.Error(), "litellm") {
		t.Errorf("%v", err)
	}
}

// TestLiteLLMIsPinned: what it is compared with must be the same tomorrow.
func TestLiteLLMIsPinned(t *testing.T) {
	text := fileText("litellm.txt")
	if litellmVersion(root(t)) == "unknown" {
		t.Error("litellm.txt does not pin litellm")
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, "==") {
			t.Errorf("%q is not pinned", line)
		}
	}
}

func TestLiteLLMAsksTheStandIn(t *testing.T) {
	if text := litellmConfig("127.0.0.1:4"); !strings.Contains(text, `api_base: "http://127.0.0.1:4"`) {
		t.Error(text)
	}
}
