package worst

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestBodies: there are enough of them, each has a name of its own, keeps to the
// size that is asked for, and is the same each time.
func TestBodies(t *testing.T) {
	names := map[string]bool{}
	for _, b := range Bodies() {
		if names[b.Name] {
			t.Errorf("two bodies are called %q", b.Name)
		}
		names[b.Name] = true
		const size = 1 << 20
		body := b.Make(size)
		if len(body) > size {
			t.Errorf("%s: %d bytes of %d", b.Name, len(body), size)
		}
		if !bytes.Equal(body, b.Make(size)) {
			t.Errorf("%s is not the same twice", b.Name)
		}
		if b.Honest && (len(body) < size*9/10 || !json.Valid(body)) {
			t.Errorf("%s: %d bytes of %d, or no JSON", b.Name, len(body), size)
		}
	}
	if len(names) < 60 {
		t.Errorf("only %d bodies", len(names))
	}
}

// TestGenerated: most generated bodies are JSON, and they differ.
func TestGenerated(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		body := Generated(seed, 2<<10)
		seen[string(body)] = true
		if !json.Valid(body) {
			t.Errorf("seed %d is no JSON: %s", seed, body)
		}
	}
	if len(seen) < 200 {
		t.Errorf("only %d of 200 bodies differ", len(seen))
	}
}
