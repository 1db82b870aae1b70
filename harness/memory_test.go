package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestMemoryStays runs many requests through one VM of the module, small and large,
// refused ones and streams that are left half-way among them: the VM's memory, which
// never shrinks, is as large after the first half as it gets. (The garbage of a thousand
// small requests fits before the first collection.)
func TestMemoryStays(t *testing.T) {
	module, err := os.ReadFile("../build/out/chat-completions.wasm")
	if err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	host, err := New(t.Context(), module, Config{
		Clusters:       map[string]Cluster{"anthropic": {}},
		BufferBytesMax: 128 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	memory := func() uint32 { return host.workers[0].vm.mod.Memory().Size() }
	small := `{"model":"anthropic/claude-sonnet-5-5","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	parts := strings.Replace(small, `"hi"`, "["+strings.Repeat(`{"type":"text","text":"a"},`, 300_000)+`{"type":"text","text":"a"}]`, 1)
	large := strings.Replace(small, "hi", strings.Repeat("hi ", 5<<20/3), 1)
	for _, run := range []struct {
		name   string
		count  int
		bodies []string
		mbMax  uint32 // without the collection behind large bodies the last run takes over 600
	}{
		{"small requests", 6000, []string{small, strings.Replace(small, "hi", "", 1), small[:50]}, 32},
		{"requests of 5 MB", 100, []string{large, large[:5<<20]}, 64},
		{"requests of 300,000 parts", 10, []string{parts}, 400},
	} {
		var early uint32
		for i := range run.count {
			body := run.bodies[i%len(run.bodies)]
			if err := playAndLeave(host, body, i%2 == 0); err != nil {
				t.Fatal(err)
			}
			if i == run.count/2 {
				early = memory()
			}
		}
		if late := memory(); late > early+early/4 {
			t.Errorf("%s: %d bytes after a half, %d at the end", run.name, early, late)
		} else if late > run.mbMax<<20 {
			t.Errorf("%s: %d bytes, more than %d MB", run.name, late, run.mbMax)
		}
	}
	if n := len(host.workers[0].vm.contexts); n > 1 {
		t.Errorf("%d contexts are left", n-1)
	}
}

// playAndLeave sends a request in pieces and reads a part of a stream, or all of it. A
// refused request has ended by then.
func playAndLeave(host *Host, body string, whole bool) error {
	s := host.NewStream()
	h := NewHeaders(":method", "POST", ":scheme", "http", ":authority", "api.example", ":path", "/openai/v1/chat/completions",
		"authorization", "Bearer test-key")
	half := len(body) / 2
	if err := errors.Join(s.RequestHeaders(h, false), s.RequestBody([]byte(body[:half]), false), s.RequestBody([]byte(body[half:]), true)); err != nil {
		return err
	}
	if s.Over() {
		return nil
	}
	const start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	err := errors.Join(
		s.ResponseHeaders(NewHeaders(":status", "200", "content-type", "text/event-stream"), false),
		s.ResponseBody([]byte(start), false),
	)
	if err == nil && whole {
		err = s.ResponseBody([]byte("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n"+
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), true)
		if !bytes.HasSuffix(s.Client().Body, []byte("data: [DONE]\n\n")) {
			err = errors.Join(err, errors.New("the stream has not ended"))
		}
	}
	if !whole {
		s.ClientLeaves()
	}
	return err
}
