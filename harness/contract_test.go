package harness_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/harness"
	"ezat.io/chat-completions/translate/cases"
)

// These tests show what no single exchange of the corpus can show of the module: when
// bytes leave, what a client that leaves costs, streams side by side, limits of size and
// time, and metrics.

// bodyBytesMax is the contract's 32 MB.
const bodyBytesMax = 33_554_432

const (
	goodBody   = `{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"hi"}]}`
	goodAnswer = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"Hi."}],` +
		`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":7}}`
)

var streamBody = strings.Replace(goodBody, "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1)

// newHost starts the module in the empty configuration, unless change says otherwise.
func newHost(t *testing.T, change func(*harness.Config)) *harness.Host {
	t.Helper()
	module, err := os.ReadFile(corpusModule)
	if err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	config := harness.Config{Clusters: map[string]harness.Cluster{"anthropic": {}}, BufferBytesMax: bufferBytes}
	if change != nil {
		change(&config)
	}
	host, err := harness.New(t.Context(), module, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return host
}

func chatHeaders(more ...string) harness.Headers {
	pairs := []string{":method", "POST", ":scheme", "http", ":authority", "api.example", ":path", "/openai/v1/chat/completions",
		"authorization", "Bearer " + cases.Key, "content-type", "application/json", "x-request-id", "proxy-1"}
	return harness.NewHeaders(append(pairs, more...)...)
}

// open sends a whole request and lets the upstream begin its answer.
func open(t *testing.T, host *harness.Host, body, contentType string) *harness.Stream {
	t.Helper()
	s := host.NewStream()
	err := errors.Join(
		s.RequestHeaders(chatHeaders(), false),
		s.RequestBody([]byte(body), true),
		s.ResponseHeaders(harness.NewHeaders(":status", "200", "content-type", contentType, "request-id", cases.RequestID), false),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends one whole exchange.
func ask(t *testing.T, host *harness.Host, body []byte, upstream func(harness.Message) harness.Message) (client, sent harness.Message) {
	t.Helper()
	client, sent, err := host.Do(t.Context(), harness.Exchange{
		Request:  harness.Message{Headers: chatHeaders(), Body: body},
		Upstream: upstream,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client, sent
}

func answerWhole(harness.Message) harness.Message {
	return harness.Message{Headers: harness.NewHeaders(":status", "200", "content-type", "application/json"), Body: []byte(goodAnswer)}
}

// wantGood shows that the worker still answers.
func wantGood(t *testing.T, host *harness.Host) {
	t.Helper()
	client, _ := ask(t, host, []byte(goodBody), answerWhole)
	if client.Headers.Get(":status") != "200" || !bytes.Contains(client.Body, []byte(`"object":"chat.completion"`)) {
		t.Errorf("a good request right after: %s %s", client.Headers, client.Body)
	}
}

// wantError checks status and code of an error in OpenAI's shape.
func wantError(t *testing.T, client harness.Message, status, code string) {
	t.Helper()
	var e struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal(client.Body, &e); err != nil {
		t.Errorf("no error of OpenAI's shape: %v: %s %q", err, client.Headers, client.Body)
		return
	}
	if client.Headers.Get(":status") != status || e.Error.Code != code || e.Error.Message == "" || e.Error.Type == "" {
		t.Errorf("got %s %s, want status %s, code %q", client.Headers.Get(":status"), client.Body, status, code)
	}
	if !client.Ended || client.Headers.Get("content-type") != "application/json" {
		t.Errorf("the error has not ended, or is no JSON: %s", client.Headers)
	}
}

// streamCase is the upstream's stream of a case, event by event, and what the client
// must get for it.
func streamCase(t *testing.T, name string) (events [][]byte, want []byte) {
	t.Helper()
	all, err := cases.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Name == name {
			for rest := c.Calls[0].Answer.Body; len(rest) > 0; {
				n := bytes.Index(rest, []byte("\n\n")) + 2
				events, rest = append(events, rest[:n]), rest[n:]
			}
			return events, c.Client.Body
		}
	}
	t.Fatalf("no case %s", name)
	return nil, nil
}

// TestEveryEventLeavesAtOnce sends a stream event by event: what an event causes has
// reached the client before the next one comes, and nothing is left for the end. The
// usage is on record before [DONE] leaves, and not before (contract, "Streaming").
func TestEveryEventLeavesAtOnce(t *testing.T) {
	host := newHost(t, nil)
	events, want := streamCase(t, "streams/36-text-then-parallel-tools-then-text")
	s := open(t, host, streamBody, "text/event-stream")
	// How many events the client gets for the event of each type.
	due := map[string]int{"message_start": 1, "text_delta": 1, "tool_use": 1, "partial": 1, "message_stop": 3}
	var got []byte
	for _, event := range events {
		if _, recorded := s.FilterState("wasm.ezat.usage"); recorded {
			t.Errorf("usage is on record before the end, at %s", event)
		}
		if err := s.ResponseBody(event, false); err != nil {
			t.Fatal(err)
		}
		out := s.TakeClient()
		if n := bytes.Count(out, []byte("\n\n")); n != due[kindOf(event)] {
			t.Errorf("%d events for the client, want %d, at %s", n, due[kindOf(event)], event)
		}
		got = append(got, out...)
	}
	if !bytes.HasSuffix(got, []byte("data: [DONE]\n\n")) {
		t.Errorf("[DONE] did not leave with its event: %s", got)
	}
	if line, recorded := s.FilterState("wasm.ezat.usage"); !recorded || !strings.Contains(line, `"outcome":"ok"`) {
		t.Errorf("[DONE] has left, and on record is %q", line)
	}
	if err := s.ResponseBody(nil, true); err != nil {
		t.Fatal(err)
	}
	if got = append(got, s.TakeClient()...); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if m := s.Client(); !m.Ended || !s.Over() {
		t.Error("the body has not ended with the stream")
	}
}

// kindOf names what an upstream's event is to the client.
func kindOf(event []byte) string {
	switch text := string(event); {
	case strings.Contains(text, `"type":"message_start"`):
		return "message_start"
	case strings.Contains(text, `"type":"text_delta"`):
		return "text_delta"
	case strings.Contains(text, `"type":"tool_use"`):
		return "tool_use"
	case strings.Contains(text, `"partial_json":"{`):
		return "partial"
	case strings.Contains(text, `"type":"message_stop"`):
		return "message_stop"
	}
	return ""
}

// TestStreamsSideBySide plays two streams in one VM in turns, byte by byte, with
// different models and options: each gives what it gives alone. One that is left
// half-way disturbs neither.
func TestStreamsSideBySide(t *testing.T) {
	host := newHost(t, nil)
	oneEvents, oneWant := streamCase(t, "streams/13-interleaved-thinking-tools")
	twoEvents, twoWant := streamCase(t, "stream/tool-index")
	one := open(t, host, strings.Replace(streamBody, "sonnet-5-5", "opus-5", 1), "text/event-stream")
	two := open(t, host, strings.Replace(goodBody, "{", `{"stream":true,`, 1), "text/event-stream")
	left := open(t, host, streamBody, "text/event-stream")
	sources := [][]byte{bytes.Join(oneEvents, nil), bytes.Join(twoEvents, nil), bytes.Join(oneEvents, nil)}
	for at := range len(sources[0]) {
		for i, s := range []*harness.Stream{one, two, left} {
			if i == 2 && at == len(sources[0])/2 {
				s.ClientLeaves()
			}
			if at >= len(sources[i]) {
				continue
			}
			if err := s.ResponseBody(sources[i][at:at+1], at == len(sources[i])-1); err != nil {
				t.Fatal(err)
			}
		}
	}
	oneWant = bytes.ReplaceAll(oneWant, []byte("anthropic/claude-sonnet-5-5"), []byte("anthropic/claude-opus-5"))
	for i, check := range []struct {
		s    *harness.Stream
		want []byte
	}{{one, oneWant}, {two, twoWant}} {
		if got := check.s.Client(); !bytes.Equal(got.Body, check.want) || !got.Ended {
			t.Errorf("stream %d\ngot\n%s\nwant\n%s", i, got.Body, check.want)
		}
	}
	wantGood(t, host)
}

// TestClientThatLeaves leaves at every place of a stream: nothing fails, the upstream is
// given up, and the record says what was produced by then.
func TestClientThatLeaves(t *testing.T) {
	var access []harness.Access
	host := newHost(t, func(c *harness.Config) {
		c.AccessLog = func(a harness.Access) { access = append(access, a) }
	})
	events, _ := streamCase(t, "streams/36-text-then-parallel-tools-then-text")
	for n := 1; n < len(events)-1; n++ {
		s := open(t, host, streamBody, "text/event-stream")
		for _, event := range events[:n] {
			if err := s.ResponseBody(event, false); err != nil {
				t.Fatal(err)
			}
		}
		s.ClientLeaves()
		if !s.Over() || !s.Upstream().Ended && !s.Upstream().Reset {
			t.Errorf("after %d events the stream goes on without its client", n)
		}
		line := access[len(access)-1].FilterState["wasm.ezat.usage"]
		for _, want := range []string{`"outcome":"client_left"`, `"estimated":true`, `"prompt_tokens":505`} {
			if !strings.Contains(line, want) {
				t.Errorf("after %d events on record is %s, want %s", n, line, want)
			}
		}
	}
	s := host.NewStream()
	if err := errors.Join(s.RequestHeaders(chatHeaders(), false), s.RequestBody([]byte(goodBody[:20]), false)); err != nil {
		t.Fatal(err)
	}
	s.ClientLeaves()
	for _, line := range host.Log() {
		if line.Level >= harness.Error {
			t.Errorf("the log says %s", line.Message)
		}
	}
	wantGood(t, host)
}

// TestBodySizes shows the contract's 32 MB: exactly that passes; one byte more is a 413,
// on the headers where they say so and else as soon as it has come, and reaches nobody.
func TestBodySizes(t *testing.T) {
	host := newHost(t, nil)
	const front, back = `{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"`, `"}]}`
	exact := []byte(front + strings.Repeat("x", bodyBytesMax-len(front)-len(back)) + back)
	client, sent := ask(t, host, exact, answerWhole)
	if client.Headers.Get(":status") != "200" || len(sent.Body) < bodyBytesMax {
		t.Errorf("exactly 32 MB: %s, %d bytes went up", client.Headers, len(sent.Body))
	}
	s := host.NewStream()
	if err := s.RequestHeaders(chatHeaders("content-length", strconv.Itoa(bodyBytesMax+1)), false); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Client(), "413", "request_too_large")
	if s.Upstream().Began {
		t.Error("a refused request has reached the upstream")
	}
	for range 3 {
		s := host.NewStream()
		if err := errors.Join(s.RequestHeaders(chatHeaders(), false), s.RequestBody(exact, false)); err != nil {
			t.Fatal(err)
		}
		if s.Client().Began {
			t.Errorf("refused at 32 MB: %s", s.Client().Body)
		}
		if err := s.RequestBody([]byte("x"), false); err != nil {
			t.Fatal(err)
		}
		wantError(t, s.Client(), "413", "request_too_large")
		if s.Upstream().Began {
			t.Error("a refused request has reached the upstream")
		}
	}
	wantGood(t, host)
}

// TestBodiesThatAreNone are requests without a body in every way in which HTTP can say
// so: each is answered, and reaches nobody.
func TestBodiesThatAreNone(t *testing.T) {
	host := newHost(t, nil)
	for name, send := range map[string]func(*harness.Stream) error{
		"end on the headers":  func(s *harness.Stream) error { return s.RequestHeaders(chatHeaders(), true) },
		"content-length of 0": func(s *harness.Stream) error { return s.RequestHeaders(chatHeaders("content-length", "0"), true) },
		"an empty end": func(s *harness.Stream) error {
			return errors.Join(s.RequestHeaders(chatHeaders(), false), s.RequestBody(nil, true))
		},
		"trailers and no body": func(s *harness.Stream) error {
			return errors.Join(s.RequestHeaders(chatHeaders(), false), s.RequestTrailers(harness.NewHeaders("a", "b")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := host.NewStream()
			if err := send(s); err != nil {
				t.Fatal(err)
			}
			wantError(t, s.Client(), "400", "")
			if s.Upstream().Began {
				t.Error("a refused request has reached the upstream")
			}
		})
	}
}

// TestBodyThatGrows shows the callbacks of a host that buffers: 30 bytes, 60, all, and a
// last one without new bytes. The request goes up once, when it is whole.
func TestBodyThatGrows(t *testing.T) {
	host := newHost(t, nil)
	s := host.NewStream()
	if err := s.RequestHeaders(chatHeaders(), false); err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{goodBody[:30], goodBody[30:60], goodBody[60:]} {
		if err := s.RequestBody([]byte(piece), false); err != nil {
			t.Fatal(err)
		}
		if s.Upstream().Began || s.Client().Began {
			t.Fatal("half a request has left, or was answered")
		}
	}
	if err := s.RequestBody(nil, true); err != nil {
		t.Fatal(err)
	}
	want := `{"model":"claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}`
	sent := s.Upstream()
	if string(sent.Body) != want || !sent.Ended {
		t.Errorf("got %s\nwant %s", sent.Body, want)
	}
	if n := sent.Headers.Get("content-length"); n != "" && n != strconv.Itoa(len(want)) {
		t.Errorf("content-length %s for %d bytes", n, len(want))
	}
}

// TestTimeOfAnswers shows decision 45: a whole answer has 590 s and then is a 504; a
// stream that moves has no limit.
func TestTimeOfAnswers(t *testing.T) {
	clock := harness.NewFakeClock()
	host := newHost(t, func(c *harness.Config) {
		c.Clock = clock
		c.StreamIdleTimeout = 620 * time.Second // that of the shipped envoy.yaml
	})
	s := host.NewStream()
	if err := errors.Join(s.RequestHeaders(chatHeaders(), false), s.RequestBody([]byte(goodBody), true)); err != nil {
		t.Fatal(err)
	}
	clock.Advance(589 * time.Second)
	if s.Client().Began {
		t.Fatalf("answered before its time: %s", s.Client().Body)
	}
	clock.Advance(2 * time.Second)
	wantError(t, s.Client(), "504", "timeout")

	events, want := streamCase(t, "streams/01-text")
	s = open(t, host, streamBody, "text/event-stream")
	for _, event := range events {
		clock.Advance(10 * time.Minute)
		if err := s.ResponseBody(event, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ResponseBody(nil, true); err != nil {
		t.Fatal(err)
	}
	if got := bytes.ReplaceAll(s.Client().Body, createdOf(s.Client().Body), []byte(`"created":1793318400`)); !bytes.Equal(got, want) {
		t.Errorf("a stream of over an hour: got\n%s\nwant\n%s", got, want)
	}
}

// createdOf is the field of an answer, which the moved clock has changed.
func createdOf(body []byte) []byte {
	_, rest, _ := bytes.Cut(body, []byte(`"created":`))
	digits, _, _ := bytes.Cut(rest, []byte(","))
	return append([]byte(`"created":`), digits...)
}

// TestRepliesOfTheProxy shows that the proxy's own replies have OpenAI's shape, and that
// our own are not translated a second time (decision 40).
func TestRepliesOfTheProxy(t *testing.T) {
	for _, test := range []struct {
		name         string
		cluster      harness.Cluster
		fail         func(*harness.Stream) error
		status, code string
	}{
		{"no healthy upstream", harness.Cluster{Empty: true}, nil, "503", "overloaded"},
		{"connection refused", harness.Cluster{Refuses: true}, nil, "503", "overloaded"},
		{"reset before the answer", harness.Cluster{}, func(s *harness.Stream) error { return s.UpstreamFails(harness.ResetTermination) }, "503", "overloaded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			host := newHost(t, func(c *harness.Config) { c.Clusters = map[string]harness.Cluster{"anthropic": test.cluster} })
			for _, body := range []string{goodBody, streamBody} {
				s := host.NewStream()
				if err := errors.Join(s.RequestHeaders(chatHeaders(), false), s.RequestBody([]byte(body), true)); err != nil {
					t.Fatal(err)
				}
				if test.fail != nil {
					if err := test.fail(s); err != nil {
						t.Fatal(err)
					}
				}
				got := s.Client()
				wantError(t, got, test.status, test.code)
				if id := got.Headers.Get("request-id"); id == "" || id != got.Headers.Get("x-request-id") {
					t.Errorf("request-id %q, x-request-id %q", id, got.Headers.Get("x-request-id"))
				}
			}
		})
	}
}

// TestAnswerThatBreaksOff shows what no filter can change: when the upstream's connection
// ends while an answer is held, Envoy replies past the filters, in plain text. On record
// is a failure that costs nothing.
func TestAnswerThatBreaksOff(t *testing.T) {
	host := newHost(t, nil)
	s := open(t, host, goodBody, "application/json")
	if err := errors.Join(s.ResponseBody([]byte(goodAnswer[:40]), false), s.UpstreamFails(harness.ResetTermination)); err != nil {
		t.Fatal(err)
	}
	if got := s.Client(); got.Headers.Get(":status") != "502" || !got.Ended {
		t.Errorf("got %s %q, want Envoy's 502: a case of the corpus can show this row now", got.Headers, got.Body)
	}
	line, _ := s.FilterState("wasm.ezat.usage")
	for _, want := range []string{`"status":502`, `"outcome":"failed"`, `"prompt_tokens":0`, `"completion_tokens":0`} {
		if !strings.Contains(line, want) {
			t.Errorf("on record is %s, want %s", line, want)
		}
	}
	wantGood(t, host)
}

// TestMetrics counts one exchange of each outcome (operator's page, "What is recorded").
func TestMetrics(t *testing.T) {
	host := newHost(t, nil)
	ask(t, host, []byte(goodBody), answerWhole)
	ask(t, host, []byte(strings.Replace(goodBody, "{", `{"n":2,`, 1)), nil)
	ask(t, host, []byte(goodBody), func(harness.Message) harness.Message {
		return harness.Message{Headers: harness.NewHeaders(":status", "529", "content-type", "application/json"),
			Body: []byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)}
	})
	events, _ := streamCase(t, "streams/26-usage-cache-write-and-read")
	play := func(events [][]byte, end bool) *harness.Stream {
		s := open(t, host, streamBody, "text/event-stream")
		for _, event := range events {
			if err := s.ResponseBody(event, false); err != nil {
				t.Fatal(err)
			}
		}
		if end {
			if err := s.ResponseBody(nil, true); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	play(events, true)
	play(events[:len(events)-1], true)     // failed: no message_stop
	play(events[:1], false).ClientLeaves() // left: 26422 tokens in, some out
	wantCounters(t, host, map[string]uint64{
		"ezat.requests.ok": 2, "ezat.requests.refused": 1, "ezat.requests.upstream_error": 1,
		"ezat.requests.failed": 1, "ezat.requests.client_left": 1, "ezat.refusals.n": 1,
		"ezat.tokens.prompt": 10 + 2*26422, "ezat.tokens.cached": 2 * 24576, "ezat.tokens.cache_write": 2 * 1834,
		"ezat.tokens.reasoning": 78,
	})
	for _, name := range []string{"ezat.first_token_ms", "ezat.translate_us"} {
		if m, ok := host.Metric(name); !ok || m.Kind != harness.Histogram || m.Count == 0 {
			t.Errorf("%s: %+v, %v", name, m, ok)
		}
	}
	if m, ok := host.Metric("ezat.tokens.completion"); !ok || m.Value < 7+97 {
		t.Errorf("ezat.tokens.completion: %+v", m)
	}
	for _, m := range host.Metrics() {
		if !strings.HasPrefix(m.Name, "ezat.") {
			t.Errorf("a metric of another name: %s", m.Name)
		}
	}
}

func wantCounters(t *testing.T, host *harness.Host, want map[string]uint64) {
	t.Helper()
	for name, value := range want {
		if m, ok := host.Metric(name); !ok || m.Kind != harness.Counter || m.Value != value {
			t.Errorf("%s: %+v, %v, want %d", name, m, ok, value)
		}
	}
}

// TestStart shows what the module says at its start: its version once, a warning where
// whoever reaches the listener spends the gateway's key, and every fault of a bad
// configuration by its path.
func TestStart(t *testing.T) {
	said := func(host *harness.Host, text string) (n int) {
		for _, line := range host.Log() {
			n += strings.Count(line.Message, text)
		}
		return n
	}
	host := newHost(t, nil)
	if n := len(host.Log()); n != 1 {
		t.Errorf("%d lines at the start: %v", n, host.Log())
	}
	gateway := newHost(t, func(c *harness.Config) { c.PluginConfig = `{"upstream":{"credentials":"gateway"}}` })
	warned := false
	for _, line := range gateway.Log() {
		warned = warned || line.Level == harness.Warn
	}
	if !warned || said(gateway, "gateway") == 0 {
		t.Errorf("no warning: %v", gateway.Log())
	}
	module, err := os.ReadFile(corpusModule)
	if err != nil {
		t.Fatal(err)
	}
	bad := `{"route_prefix":5,"upstream":{"credentials":"mine","colour":"red"},"hold_headers":"yes","images":{"memory_bytes":-1},"cacheing":true}`
	_, err = harness.New(t.Context(), module, harness.Config{PluginConfig: bad, Clusters: map[string]harness.Cluster{"anthropic": {}}})
	for _, path := range []string{"route_prefix", "upstream.credentials", "upstream.colour", "hold_headers", "images.memory_bytes", "cacheing"} {
		if err == nil || !strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("%s is not told: %v", path, err)
		}
	}
}
