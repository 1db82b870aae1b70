package standin

import (
	"bytes"
	"encoding/json"
	"testing"
)

func checkJSON(t *testing.T, raw []byte) {
	t.Helper()
	if !json.Valid(raw) {
		t.Fatalf("not JSON: %s", raw)
	}
}

// checkMessage checks what holds for every answer in both forms.
func checkMessage(t *testing.T, m *message) {
	t.Helper()
	whole := m.appendMessage(nil)
	checkJSON(t, whole)
	if m.usage.output < m.usage.thinking || m.usage.input < 0 {
		t.Fatalf("odd usage: %+v", m.usage)
	}
	for _, event := range m.events() {
		_, data, ok := bytes.Cut(event, []byte("\ndata: "))
		if !ok || !bytes.HasSuffix(data, []byte("\n\n")) || bytes.Count(data, []byte("\n")) != 2 {
			t.Fatalf("not one event: %q", event)
		}
		checkJSON(t, data)
	}
}
