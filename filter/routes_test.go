package main

import "testing"

func TestFindRoute(t *testing.T) {
	for _, c := range []struct {
		path string
		want route
	}{
		{"/", route{}},
		{"", route{}},
		{"/v1/messages", route{}},
		{"/openai/v1x", route{}},
		{"/openai/v1x/chat/completions", route{}},
		{"/openai", route{}},
		{"/OPENAI/v1/models", route{}},
		{"/openai/v1", route{endpoint: unknownPath}},
		{"/openai/v1/", route{endpoint: unknownPath}},
		{"/openai/v1?x", route{endpoint: unknownPath}},
		{"/openai/v1/chat/completions", route{endpoint: chatCompletions, method: "POST"}},
		{"/openai/v1/chat/completions?api-version=1", route{endpoint: chatCompletions, method: "POST"}},
		{"/openai/v1/chat/completions#x", route{endpoint: chatCompletions, method: "POST"}},
		{"/openai/v1/chat/completions/", route{endpoint: unknownPath}},
		{"/openai/v1/chat/completions/x", route{endpoint: unknownPath}},
		{"/openai/v1/chat/completionsx", route{endpoint: unknownPath}},
		{"/openai/v1/chat%2Fcompletions", route{endpoint: unknownPath}},
		{"/openai/v1/responses", route{endpoint: unknownPath}},
		{"/openai/v1/models", route{endpoint: modelList, method: "GET"}},
		{"/openai/v1/models?limit=2", route{endpoint: modelList, method: "GET"}},
		{"/openai/v1/models/", route{endpoint: unknownPath}},
		{"/openai/v1/models/a", route{endpoint: oneModel, method: "GET", model: "a"}},
		{"/openai/v1/models/anthropic/claude", route{endpoint: oneModel, method: "GET", model: "anthropic/claude"}},
		{"/openai/v1/models/anthropic%2fclaude", route{endpoint: oneModel, method: "GET", model: "anthropic/claude"}},
		{"/openai/v1/models/anthropic%2Fclaude?x=%41", route{endpoint: oneModel, method: "GET", model: "anthropic/claude"}},
		{"/openai/v1/models/a%20b", route{endpoint: oneModel, method: "GET", model: "a b"}},
		{"/openai/v1/models/100%", route{endpoint: oneModel, method: "GET", model: "100%"}},
		{"/openai/v1/models/%zz%4", route{endpoint: oneModel, method: "GET", model: "%zz%4"}},
	} {
		if got := findRoute("/openai/v1", c.path); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.path, got, c.want)
		}
	}
}

func TestEncodePathUndoesDecodePath(t *testing.T) {
	for _, s := range []string{"", "a", "a/b", "a b", "ü", "%2F", "?#&=+", "\x00\xff", "~-._"} {
		encoded := encodePath(s)
		for i := range len(encoded) {
			if c := encoded[i]; c == '/' || c == '?' || c == '#' || c == '&' || c <= ' ' || c > '~' {
				t.Errorf("%q: %q does not stay within a segment", s, encoded)
			}
		}
		if got := decodePath(encoded); got != s {
			t.Errorf("%q: came back as %q", s, got)
		}
	}
}

func TestIsModelName(t *testing.T) {
	for name, want := range map[string]bool{
		"claude": true, "anthropic/claude": true, "a.b": true, "...": true, "a b": true, "modèle": true,
		"": false, ".": false, "..": false, "../x": false, "a/..": false, "a/../b": false, "a/./b": false,
		`..\x`: false, "a\nb": false, "a\x7f": false, "\xff": false, string(make([]byte, 300)): false,
	} {
		if got := isModelName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
