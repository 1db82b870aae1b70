package envoy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

// slowUpstream answers streams whose request says "stall" with 15 MB of one event and
// then waits for release; those that say "tick" with a word now and then until it
// comes; and everything else at once.
type slowUpstream struct {
	t       *testing.T
	stalled sync.WaitGroup // those that have sent all that they send before release
	ticks   atomic.Int64
	release chan struct{}
}

const (
	deltaStart   = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\""
	deltaEnd     = "\"}}\n\n"
	wholeMessage = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"Hi."}],` +
		`"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
)

func (u *slowUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		u.t.Errorf("upstream: %v", err)
		return
	}
	say := func(text string) {
		// An error here is a stream that Envoy has ended: the client's side tells.
		if _, err := io.WriteString(w, text); err == nil {
			_ = http.NewResponseController(w).Flush()
		}
	}
	switch {
	case strings.Contains(string(body), "stall"):
		w.Header().Set("content-type", "text/event-stream")
		begin, end := streamBegin+deltaStart, deltaEnd+streamEnd
		if strings.Contains(string(body), "stall at once") {
			_, rest, _ := strings.Cut(streamBegin, `"message":`)
			begin, end = "event: message_start\ndata: {\"type\":\"message_start\",\"padding\":\"", `","message":`+rest+streamEnd
		}
		say(begin)
		piece := strings.Repeat("x", 1<<20)
		for range 15 {
			say(piece)
		}
		u.stalled.Done()
		<-u.release
		say(end)
	case strings.Contains(string(body), "tick"):
		w.Header().Set("content-type", "text/event-stream")
		say(streamBegin)
		for n := int64(1); ; n++ {
			say(deltaStart + "tick " + deltaEnd)
			u.ticks.Store(n)
			select {
			case <-time.After(20 * time.Millisecond):
				continue
			case <-u.release:
			}
			break
		}
		say(streamEnd)
	default:
		w.Header().Set("content-type", "application/json")
		say(wholeMessage)
	}
}

// TestStalledEvents: many streams whose upstream stops in the middle of a large event
// do not end the VM. Some of them fail by themselves; a stream and chats beside them
// do not notice.
func TestStalledEvents(t *testing.T) {
	const count = 100
	up := &slowUpstream{t: t, release: make(chan struct{})}
	listener := httptest.NewServer(up)
	t.Cleanup(func() { listener.CloseClientConnections(); listener.Close() })
	e := envoy.New(t, envoy.Options{Upstreams: []string{listener.URL}})
	c := client(t, false)
	ask := func(word string) string { return strings.Replace(helloStream, "Say hello.", word, 1) }

	var all sync.WaitGroup
	var ticking string
	var good, failed, early atomic.Int64
	all.Go(func() {
		if r, err := try(t.Context(), c, http.MethodPost, e.URL+"/openai/v1/chat/completions", strings.NewReader(ask("tick"))); err == nil {
			ticking = r.Body
		}
	})
	up.stalled.Add(count)
	for i := range count {
		word := []string{"stall", "stall at once"}[i%2]
		all.Go(func() {
			r, err := try(t.Context(), c, http.MethodPost, e.URL+"/openai/v1/chat/completions", strings.NewReader(ask(word)))
			switch {
			case err == nil && r.Status == 500 && strings.Contains(r.Body, "The upstream's answer could not be read."):
				early.Add(1)
			case err != nil || !strings.HasSuffix(r.Body, "data: [DONE]\n\n"):
				t.Errorf("a stream without an end: %v, %d bytes", err, len(r.Body))
			case strings.Contains(r.Body[max(0, len(r.Body)-300):], "The upstream's answer could not be read."):
				failed.Add(1)
			case len(r.Body) > 15<<20, word == "stall at once" && strings.Contains(r.Body, "first words"):
				good.Add(1)
			default:
				t.Errorf("a stream of %d bytes: %.300s", len(r.Body), r.Body)
			}
		})
	}
	up.stalled.Wait()
	before := up.ticks.Load()
	wantAnswer(t, chat(t, c, e, hello))
	memory, err := e.Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Envoy with everything full: %+v", memory)
	for end := time.Now().Add(patience); up.ticks.Load() < before+5; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the stream beside them does not go on")
		}
	}
	close(up.release)
	all.Wait()
	if n := int64(strings.Count(ticking, "tick ")); n != up.ticks.Load() || !strings.HasSuffix(ticking, "data: [DONE]\n\n") {
		t.Errorf("the stream beside them has %d words of %d", n, up.ticks.Load())
	}
	t.Logf("%d came whole, %d failed by themselves, %d of them before their first event", good.Load(), failed.Load()+early.Load(), early.Load())
	if good.Load() < 5 || failed.Load() < 5 || early.Load() < 5 {
		t.Error("too few of a kind")
	}
	wantAnswer(t, chat(t, c, e, hello))
}

// TestBrokenStreamWithTrailers: an upstream that breaks a stream off with trailers must
// not make it look whole. Envoy takes nothing more of the body then.
func TestBrokenStreamWithTrailers(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("upstream: %v", err)
		}
		w.Header().Set("content-type", "text/event-stream")
		w.Header().Set("trailer", "x-end")
		text := streamBegin
		if strings.Contains(string(body), "whole") {
			text += streamEnd
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Errorf("upstream: %v", err)
		}
		w.Header().Set("x-end", "yes")
	})
	listener := httptest.NewUnstartedServer(handler)
	listener.Config.Protocols = new(http.Protocols)
	listener.Config.Protocols.SetUnencryptedHTTP2(true)
	listener.Start()
	t.Cleanup(listener.Close)
	e := envoy.New(t, envoy.Options{Upstreams: []string{listener.URL}, Edits: []envoy.Edit{
		envoy.Set(map[string]any{"http2_protocol_options": map[string]any{}}, "static_resources", "clusters", "anthropic", "typed_extension_protocol_options",
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config"),
	}})
	protocols(t, func(t *testing.T, c *http.Client) {
		ask := func(word string) (reply, error) {
			body := strings.Replace(helloStream, "Say hello.", word, 1)
			return try(t.Context(), c, http.MethodPost, e.URL+"/openai/v1/chat/completions", strings.NewReader(body))
		}
		if r, err := ask("whole"); err != nil || !strings.HasSuffix(r.Body, "data: [DONE]\n\n") || strings.Contains(r.Body, `"error"`) {
			t.Errorf("a whole stream: %v %q", err, r.Body)
		}
		r, err := ask("broken")
		if err == nil && !strings.Contains(r.Body, `"error"`) {
			t.Errorf("a broken stream ends as if it were whole: %q", r.Body)
		}
	})
	if _, err := e.WaitAccess(t.Context(), func(a envoy.Access) bool { return strings.Contains(string(a.Usage), `"outcome":"failed"`) }); err != nil {
		t.Error(err)
	}
}
