package harness_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ezat.io/chat-completions/harness"
	"ezat.io/chat-completions/translate/cases"
)

// corpusModule is what `make wasm` builds. A missing module is a failure.
const corpusModule = "../build/out/chat-completions.wasm"

// bufferBytes is what the shipped envoy.yaml lets a stream hold.
const bufferBytes = 128 << 20

// TestCorpus runs every case that the module can show in the harness: bodies in one
// piece and in many, ends told alone, with data and by trailers.
func TestCorpus(t *testing.T) {
	module, err := os.ReadFile(corpusModule)
	if err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	all, err := cases.All()
	if err != nil {
		t.Fatal(err)
	}
	levels := map[string]*wasmLevel{}
	ran := 0
	for _, c := range all {
		if !c.Runs(cases.Wasm) {
			continue
		}
		ran++
		config := string(c.Config)
		if levels[config] == nil {
			levels[config] = newWasmLevel(t, module, config)
		}
		t.Run(c.Name, func(t *testing.T) { levels[config].run(t, c) })
	}
	if ran == 0 {
		t.Error("no case ran")
	}
}

// wasmLevel is one host with the module in one configuration.
type wasmLevel struct {
	host *harness.Host

	mu     sync.Mutex
	access []harness.Access
	faults []string
}

// newWasmLevel starts a host. Its requests go to the cluster "anthropic"; callouts may
// name others.
func newWasmLevel(t testing.TB, module []byte, config string, others ...string) *wasmLevel {
	l := &wasmLevel{}
	clusters := map[string]harness.Cluster{"anthropic": {}}
	for _, name := range others {
		clusters[name] = harness.Cluster{}
	}
	host, err := harness.New(t.Context(), module, harness.Config{
		PluginConfig:   config,
		Clusters:       clusters,
		Routes:         []harness.Route{{Prefix: "/", Cluster: "anthropic"}},
		BufferBytesMax: bufferBytes,
		AccessLog: func(a harness.Access) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.access = append(l.access, a)
		},
		Log: func(line harness.LogLine) {
			if line.Level >= harness.Error || strings.Contains(line.Message, cases.Key) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.faults = append(l.faults, line.Message)
			}
		},
	})
	if err != nil {
		t.Fatalf("%s: %v", config, err)
	}
	t.Cleanup(func() {
		if err := host.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l.host = host
	return l
}

func (l *wasmLevel) run(t *testing.T, c *cases.Case) {
	for _, d := range wasmDeliveries(c) {
		outcome, err := l.outcome(t.Context(), c, d)
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		if diffs := c.Compare(cases.Wasm, outcome); len(diffs) > 0 {
			t.Fatalf("%s\n%s\n%s", d.name, c.Comment, strings.Join(diffs, "\n"))
		}
		if faults := l.takeFaults(); len(faults) > 0 {
			t.Fatalf("%s: the log has faults:\n%s", d.name, strings.Join(faults, "\n"))
		}
	}
}

func (l *wasmLevel) takeFaults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	faults := l.faults
	l.faults = nil
	return faults
}

// wasmDelivery is one way in which both bodies arrive: nil pieces are one piece.
type wasmDelivery struct {
	name              string
	request, response [][]byte
	end               harness.End
	trailers          bool
}

// wasmDeliveries are the ways in which a case is played. Answers in events come in all
// the ways that the case allows, others whole and in pieces.
func wasmDeliveries(c *cases.Case) []wasmDelivery {
	small := c.Pieces(c.Request.Body, 1)
	all := []wasmDelivery{
		{name: "whole", end: harness.EndAlone},
		{name: "whole, the end with the data", end: harness.EndWithData},
		{name: "request in pieces", request: small, end: harness.EndWithData},
	}
	if len(c.Calls) == 0 || !endsInside(c.Calls[0].Answer) {
		all = append(all, wasmDelivery{name: "ended by trailers", request: small, trailers: true})
	}
	if len(c.Calls) == 0 {
		return all
	}
	answer := c.Calls[0].Answer
	if !isEventStream(answer) {
		return append(all, wasmDelivery{name: "answer in pieces", response: c.Pieces(answer.Body, 2), end: harness.EndAlone})
	}
	for _, d := range c.Deliveries(answer.Body) {
		end := harness.EndWithData
		if d.EndAlone {
			end = harness.EndAlone
		}
		all = append(all, wasmDelivery{name: "answer " + d.Name, response: d.Pieces, end: end})
	}
	return all
}

func isEventStream(a cases.Answer) bool {
	contentType, _ := a.Header.Get("content-type")
	return strings.HasPrefix(contentType, "text/event-stream")
}

// endsInside tells a stream whose last event is not whole, or not the last that a stream
// may have: what is due at its end has no place behind trailers, because Envoy takes no
// bytes of the body any more once they are there.
func endsInside(a cases.Answer) bool {
	return isEventStream(a) && !bytes.HasSuffix(a.Body, []byte("{\"type\":\"message_stop\"}\n\n"))
}

// outcome is the wasm level: the case played through the host.
func (l *wasmLevel) outcome(ctx context.Context, c *cases.Case, d wasmDelivery) (cases.Outcome, error) {
	var outcome cases.Outcome
	var failure error
	images := c.PlayDownloads()
	// sent takes what reached the upstream and gives the case's answer to it.
	sent := func(headers harness.Headers, body []byte, d wasmDelivery) harness.Message {
		n := len(outcome.Upstream)
		outcome.Upstream = append(outcome.Upstream, sentOf(headers, body))
		if n >= len(c.Calls) {
			failure = fmt.Errorf("the upstream is asked %d times, the case has %d calls", n+1, len(c.Calls))
			return harness.Message{Headers: harness.NewHeaders(":status", "500")}
		}
		return answerOf(c.Calls[n].Answer, d)
	}
	client, upstream, err := l.host.Do(ctx, harness.Exchange{
		Request:  requestOf(c, d),
		Upstream: func(m harness.Message) harness.Message { return sent(m.Headers, m.Body, d) },
		Callout: func(call *harness.Callout) harness.Message {
			if s := sentOf(call.Headers, call.Body); cases.IsDownload(s.Header) {
				return answerOf(images.Answer(s), wasmDelivery{})
			}
			return sent(call.Headers, call.Body, wasmDelivery{})
		},
	})
	outcome.Downloads = images.Sent()
	if err == nil {
		err = failure
	}
	if err != nil {
		return outcome, err
	}
	if upstream.Began && !upstream.Ended && c.HoldsHeaders() {
		return outcome, fmt.Errorf("a part of a refused request has reached the upstream: %s", upstream.Headers)
	}
	if client.Reset {
		return outcome, fmt.Errorf("the client's stream was reset after %q", client.Body)
	}
	if outcome.Status, err = strconv.Atoi(client.Headers.Get(":status")); err != nil {
		return outcome, err
	}
	outcome.Header, outcome.Body = fieldsOf(client.Headers), client.Body
	outcome.Usage = l.usage()
	return outcome, nil
}

// usage is the line that the last stream has left behind.
func (l *wasmLevel) usage() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.access[len(l.access)-1]
	l.access = nil
	if line, ok := last.FilterState["wasm.ezat.usage"]; ok {
		return []byte(line)
	}
	return nil
}

func requestOf(c *cases.Case, d wasmDelivery) harness.Message {
	headers := harness.NewHeaders(":method", c.Request.Method, ":scheme", "http", ":authority", "api.example", ":path", c.Request.Path,
		"x-request-id", "6f7dc1f2-1f0c-4d0e-9a53-0a5b1c2d3e4f")
	for _, f := range c.Request.Header {
		headers.Add(f[0], f[1])
	}
	m := harness.Message{Headers: headers, Body: c.Request.Body, Pieces: d.request, End: d.end}
	if d.request == nil && c.Request.Body != nil {
		m.Headers.Set("content-length", strconv.Itoa(len(c.Request.Body)))
	}
	if d.trailers && c.Request.Body != nil {
		m.Trailers = harness.NewHeaders("x-checksum", "1")
	}
	return m
}

func answerOf(a cases.Answer, d wasmDelivery) harness.Message {
	headers := harness.NewHeaders(":status", strconv.Itoa(a.Status))
	for _, f := range a.Header {
		headers.Add(f[0], f[1])
	}
	m := harness.Message{Headers: headers, Body: a.Body, Pieces: d.response, End: d.end}
	if d.trailers {
		m.Trailers = harness.NewHeaders("x-trailer", "1")
	}
	return m
}

func sentOf(h harness.Headers, body []byte) cases.Sent {
	sent := cases.Sent{Method: h.Get(":method"), Path: h.Get(":path"), Header: fieldsOf(h), Body: body}
	sent.Header = append(sent.Header, [2]string{"authority", h.Get(":authority")})
	return sent
}

func fieldsOf(h harness.Headers) cases.Header {
	var out cases.Header
	for _, f := range h {
		if !strings.HasPrefix(f.Name, ":") {
			out = append(out, [2]string{f.Name, f.Value})
		}
	}
	return out
}
