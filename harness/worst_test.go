package harness

import (
	"context"
	"errors"
	"os"
	"testing"

	"ezat.io/chat-completions/translate/cases/worst"
)

// What a guest may need for what it has read (decision 54).
const (
	guestTimes     = 24
	guestBaseBytes = 16 << 20
)

// TestMemoryInProportion sends the bodies that cost most through one VM of the
// module: its memory, which never shrinks, stays within a bound that follows from
// the size of the bodies, and a good request behind them is answered.
func TestMemoryInProportion(t *testing.T) {
	module, err := os.ReadFile("../build/out/chat-completions.wasm")
	if err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	for _, run := range []struct{ size, each int }{{1 << 20, 1}, {8 << 20, 9}} {
		size := run.size
		host, err := New(t.Context(), module, Config{Clusters: map[string]Cluster{"anthropic": {}}, BufferBytesMax: 128 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := host.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		bound := uint32(guestTimes*size + guestBaseBytes)
		reported := uint32(0)
		for i, b := range worst.Bodies() {
			if i%run.each != 0 {
				continue
			}
			if err := send(host, b.Make(size)); err != nil {
				t.Fatalf("%s: %v", b.Name, err)
			}
			if now := host.workers[0].vm.mod.Memory().Size(); now > bound && now > reported {
				reported = now
				t.Errorf("%s of %d bytes: the guest has %d MB, the bound is %d", b.Name, size, now>>20, bound>>20)
			}
		}
		if err := playAndLeave(host, `{"model":"anthropic/claude-sonnet-5-5","stream":true,"messages":[{"role":"user","content":"hi"}]}`, true); err != nil {
			t.Error(err)
		}
		t.Logf("bodies of %d bytes: %d MB", size, host.workers[0].vm.mod.Memory().Size()>>20)
	}
}

// send sends a request to its end, and leaves.
func send(host *Host, body []byte) error {
	s := host.NewStream()
	h := NewHeaders(":method", "POST", ":scheme", "http", ":authority", "api.example", ":path", "/openai/v1/chat/completions",
		"authorization", "Bearer test-key")
	err := s.RequestHeaders(h, false)
	for len(body) > 0 && err == nil && !s.Over() {
		n := min(len(body), 1<<20)
		err = s.RequestBody(body[:n], n == len(body))
		body = body[n:]
	}
	if failure := host.workers[0].vm.failure; failure != nil {
		err = errors.Join(err, failure)
	}
	s.ClientLeaves()
	return err
}
