package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	if !strings.Contains(text, "\nlitellm==") {
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

// TestLiteLLMSeesNothingOfTheShell: a key, a database or a proxy of the user's
// would change what is measured, and whom it talks to.
func TestLiteLLMSeesNothingOfTheShell(t *testing.T) {
	for _, name := range []string{"DATABASE_URL", "HTTPS_PROXY", "LITELLM_LICENSE", "REDIS_HOST"} {
		t.Setenv(name, "from-the-shell")
	}
	text := strings.Join(litellmEnvironment("dir", "sk-key"), "\n")
	if strings.Contains(text, "from-the-shell") {
		t.Error(text)
	}
	for _, want := range []string{"LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS=True", "LITELLM_MASTER_KEY=sk-key", "HOME=dir"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}

func TestInstalledLiteLLM(t *testing.T) {
	venv := t.TempDir()
	if got := installedLiteLLM(venv); got != "unknown" {
		t.Error(got)
	}
	for _, name := range []string{"litellm-1.2.3.dist-info", "litellm_enterprise-0.1.dist-info", "litellm"} {
		if err := os.MkdirAll(filepath.Join(venv, "lib", "python3.11", "site-packages", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := installedLiteLLM(venv); got != "1.2.3, Python 3.11" {
		t.Error(got)
	}
}
