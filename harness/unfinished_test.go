package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// unfinishedVM is the module in one VM with Envoy's bound on memory.
type unfinishedVM struct {
	*Host
	t *testing.T
}

func newUnfinishedVM(t *testing.T) unfinishedVM {
	t.Helper()
	module, err := os.ReadFile("../build/out/chat-completions.wasm")
	if err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	host, err := New(t.Context(), module, Config{Clusters: map[string]Cluster{"anthropic": {}}, BufferBytesMax: 128 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return unfinishedVM{host, t}
}

func (v unfinishedVM) memoryMB() int { return int(v.workers[0].vm.mod.Memory().Size() >> 20) }

const (
	unfinishedChat  = `{"model":"anthropic/claude-sonnet-5-5","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	unfinishedStart = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	unfinishedHalf = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\""
	unfinishedEnd  = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	unfinishedDelta = unfinishedHalf + "word \"}}\n\n"
)

// send asks with a body; the answer's headers have come for a stream.
func (v unfinishedVM) send(body string) *Stream {
	v.t.Helper()
	s := v.NewStream()
	h := NewHeaders(":method", "POST", ":scheme", "http", ":authority", "api.example", ":path", "/openai/v1/chat/completions",
		"authorization", "Bearer test-key")
	if err := errors.Join(s.RequestHeaders(h, false), s.RequestBody([]byte(body), true)); err != nil {
		v.t.Fatal(err)
	}
	return s
}

func (v unfinishedVM) stream() *Stream {
	v.t.Helper()
	s := v.send(unfinishedChat)
	if err := errors.Join(s.ResponseHeaders(NewHeaders(":status", "200", "content-type", "text/event-stream"), false),
		s.ResponseBody([]byte(unfinishedStart), false)); err != nil {
		v.t.Fatal(err)
	}
	return s
}

// whole takes a chat through whose answer comes whole, and returns its status.
func (v unfinishedVM) whole(body string, answer []byte) string {
	v.t.Helper()
	s := v.send(body)
	if !s.Over() {
		if err := errors.Join(s.ResponseHeaders(NewHeaders(":status", "200", "content-type", "application/json"), false), s.ResponseBody(answer, true)); err != nil {
			v.t.Fatal(err)
		}
	}
	return s.Client().Headers.Get(":status")
}

// TestUnfinishedEventsHaveABound: many streams at once whose upstream has sent 15 MB
// of one event. Those that are too much fail by themselves; a running stream, the
// largest requests and the largest answers beside them do not notice.
func TestUnfinishedEventsHaveABound(t *testing.T) {
	const count, piece, pieces = 40, 1 << 20, 15
	text := bytes.Repeat([]byte{'x'}, piece)
	for _, turns := range []bool{false, true} {
		v := newUnfinishedVM(t)
		running := v.stream()
		var streams []*Stream
		for range count {
			streams = append(streams, v.stream())
		}
		feed := func(s *Stream, n int) {
			data := text
			if n == 0 {
				data = append([]byte(unfinishedHalf), text...)
			}
			if err := s.ResponseBody(data, false); err != nil && !s.Over() {
				t.Fatal(err)
			}
		}
		for i := range count * pieces {
			s, n := i/pieces, i%pieces
			if turns {
				s, n = i%count, i/count
			}
			feed(streams[s], n)
			if i%pieces == 0 {
				if err := running.ResponseBody([]byte(unfinishedDelta), false); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Logf("turns %v: %d MB with everything full", turns, v.memoryMB())
		if turns {
			v.largest(t)
		}
		v.endAll(t, streams)
		if err := running.ResponseBody([]byte(unfinishedEnd), true); err != nil {
			t.Fatal(err)
		}
		if got := running.Client().Body; bytes.Count(got, []byte("word ")) != count || !bytes.HasSuffix(got, []byte("data: [DONE]\n\n")) {
			t.Errorf("the stream beside them: %d bytes", len(got))
		}
		if n := v.memoryMB(); n > 900 {
			t.Errorf("%d MB of a VM's 1024", n)
		}
		t.Logf("turns %v: %d MB in the end", turns, v.memoryMB())
	}
}

// largest sends what takes most memory.
func (v unfinishedVM) largest(t *testing.T) {
	t.Helper()
	const small = `{"type":"message","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`
	message := func(content string) []byte {
		return []byte(strings.Replace(small, "[]", "["+strings.TrimSuffix(content, ",")+"]", 1))
	}
	for name, answer := range map[string][]byte{
		"newlines in an input": message(`{"type":"tool_use","id":"a","name":"b","input":{` + strings.Repeat("\n", 33<<20-1<<21) + `}}`),
		"calls":                message(strings.Repeat(`{"type":"tool_use","id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","name":"b","input":{}},`, 80_000)),
		"text":                 message(`{"type":"text","text":"` + strings.Repeat("x", 33_000_000) + `"}`),
		"halves of characters": message(`{"type":"text","text":"` + strings.Repeat(`\ud83d`, 100_000) + strings.Repeat("x", 32_000_000) + `"}`),
	} {
		if status := v.whole(strings.Replace(unfinishedChat, "true", "false", 1), answer); status != "200" {
			t.Errorf("%s of %d bytes: status %s", name, len(answer), status)
		}
		t.Logf("%s: %d MB", name, v.memoryMB())
	}
	for name, content := range map[string]string{
		"parts": "[" + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"`+strings.Repeat("a", 180)+`"},`, 150_000), ",") + "]",
		"text":  `"` + strings.Repeat("x", 33_000_000) + `"`,
	} {
		body := strings.Replace(strings.Replace(unfinishedChat, "true", "false", 1), `"hi"`, content, 1)
		if status := v.whole(body, []byte(small)); status != "200" {
			t.Errorf("%s of %d bytes: status %s", name, len(body), status)
		}
		t.Logf("%s: %d MB", name, v.memoryMB())
	}
}

// endAll ends the streams: each as it should, or with the error event.
func (v unfinishedVM) endAll(t *testing.T, streams []*Stream) {
	t.Helper()
	good := 0
	for i, s := range streams {
		if err := s.ResponseBody([]byte("\"}}\n\n"+unfinishedEnd), true); err != nil && !s.Over() {
			t.Fatal(err)
		}
		got := s.Client()
		switch {
		case !bytes.HasSuffix(got.Body, []byte("data: [DONE]\n\n")):
			t.Fatalf("stream %d has no end: %d bytes, reset %v", i, len(got.Body), got.Reset)
		case bytes.Contains(got.Body[max(0, len(got.Body)-300):], []byte(`"error"`)):
		default:
			good++
		}
	}
	t.Logf("%d of %d large events came whole", good, len(streams))
	if good < 5 || good == len(streams) {
		t.Errorf("%d large events came whole", good)
	}
}

// TestWaitingStreamsKeepNoHeaders: thousands of streams with 30 KB of headers each that
// wait for the body, for the upstream, for the first event or for the next one take the
// guest only a few KB each.
func TestWaitingStreamsKeepNoHeaders(t *testing.T) {
	const each = 800
	v := newUnfinishedVM(t)
	padding := strings.Repeat("p", 30<<10)
	ask := func() *Stream {
		s := v.NewStream()
		h := NewHeaders(":method", "POST", ":scheme", "http", ":authority", "api.example", ":path", "/openai/v1/chat/completions",
			"authorization", "Bearer test-key", "x-request-id", "id-1", "x-padding", padding)
		if err := errors.Join(s.RequestHeaders(h, false), s.RequestBody([]byte(unfinishedChat[:20]), false)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	answered := func() *Stream {
		s := ask()
		h := NewHeaders(":status", "200", "content-type", "text/event-stream", "request-id", "req_1", "x-padding", padding)
		if err := errors.Join(s.RequestBody([]byte(unfinishedChat[20:]), true), s.ResponseHeaders(h, false)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := v.memoryMB()
	var streams []*Stream
	for range each {
		models := v.NewStream()
		h := NewHeaders(":method", "GET", ":scheme", "http", ":authority", "api.example", ":path", "/openai/v1/models/anthropic%2Fclaude-sonnet-5-5",
			"authorization", "Bearer test-key", "x-padding", padding)
		if err := models.RequestHeaders(h, true); err != nil {
			t.Fatal(err)
		}
		running := answered()
		if err := running.ResponseBody([]byte(unfinishedStart), false); err != nil {
			t.Fatal(err)
		}
		streams = append(streams, models, running, ask(), answered())
	}
	after := v.memoryMB()
	t.Logf("%d MB before, %d MB with %d waiting streams", before, after, len(streams))
	if kb := (after - before) << 10 / len(streams); kb > 12 {
		t.Errorf("%d KB for each stream", kb)
	}
	for _, s := range streams {
		s.ClientLeaves()
	}
}
