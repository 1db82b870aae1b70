package main

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fakeHost is a Host with Envoy's rules as far as one stream needs them, and
// with ears: it keeps all that it is told, in order.
type fakeHost struct {
	t      testing.TB
	now    int64
	maps   [4][][2]string
	bodies [3][]byte
	props  map[string]string

	events         []string // "property ezat.usage", "count ezat.requests.ok", "replace response 12", …
	kept           map[string]string
	counts         map[string]int64
	observed       map[string][]int64
	logs           []string
	replies        []fakeReply
	calls          []fakeCall
	resumed        int // the response; requestResumed counts the request
	requestResumed int
	lent           int
	ticks          int // the period that was asked for last

	vm   *fakeVM // nil for a stream that is alone
	gone bool    // the host has deleted the stream

	careless bool   // bodies may be smaller than was said
	refuse   string // the event, or its beginning, that the host refuses
	onReply  func()
	onReset  func()
	onAppend func()
	onResume func()
}

type fakeReply struct {
	status  int
	headers [][2]string
	body    string
}

type fakeCall struct {
	cluster   string
	headers   [][2]string
	timeoutMs int
	done      func(CallResult)
}

var errRefused = errors.New("bad argument")

func newFakeHost(t testing.TB) *fakeHost {
	return &fakeHost{
		t: t, now: 1_793_318_400_000_000_000,
		props: map[string]string{}, kept: map[string]string{}, counts: map[string]int64{}, observed: map[string][]int64{},
	}
}

func (h *fakeHost) tell(parts ...string) error {
	event := strings.Join(parts, " ")
	if h.vm != nil && h.vm.at != h {
		h.t.Errorf("%s: the callback is not this stream's", event)
	}
	h.events = append(h.events, event)
	if h.refuse != "" && strings.HasPrefix(event, h.refuse) {
		return errRefused
	}
	return nil
}

var mapNames = [...]string{"request", "request-trailers", "response", "response-trailers"}
var bodyNames = [...]string{"request", "response", "callout"}

func (h *fakeHost) Log(level Level, text string) {
	h.logs = append(h.logs, [...]string{"info", "warn", "error", "critical"}[level]+": "+text)
}

func (h *fakeHost) Now() int64 {
	h.now += 1_000_000
	return h.now
}

func (h *fakeHost) Headers(m Map) [][2]string {
	pairs := slices.Clone(h.maps[m])
	for i := range pairs {
		pairs[i][0] = lower(pairs[i][0])
	}
	return pairs
}

func (h *fakeHost) SetHeader(m Map, name, value string) error {
	if err := h.tell("set", mapNames[m], name); err != nil {
		return err
	}
	if strings.ContainsAny(value, "\r\n") {
		h.t.Errorf("header %s with a line break", name)
	}
	h.maps[m] = append(without(h.maps[m], name), [2]string{name, value})
	return nil
}

func (h *fakeHost) RemoveHeader(m Map, name string) error {
	if err := h.tell("remove", mapNames[m], name); err != nil {
		return err
	}
	h.maps[m] = without(h.maps[m], name)
	return nil
}

func (h *fakeHost) ReadBody(b Body, size int) ([]byte, error) {
	if err := h.tell("read", bodyNames[b], strconv.Itoa(size)); err != nil {
		return nil, err
	}
	if size > len(h.bodies[b]) {
		if !h.careless {
			h.t.Errorf("%d bytes read of %d", size, len(h.bodies[b]))
		}
		return nil, errRefused
	}
	h.lent++
	return bytes.Clone(h.bodies[b][:size]), nil
}

// ReleaseBody spoils what was lent: nobody may look at it any more.
func (h *fakeHost) ReleaseBody(body []byte) {
	h.lent--
	for i := range body {
		body[i] = '#'
	}
}

func (h *fakeHost) ReplaceBody(b Body, data []byte) error {
	if err := h.tell("replace", bodyNames[b], strconv.Itoa(len(data))); err != nil {
		return err
	}
	h.bodies[b] = bytes.Clone(data)
	return nil
}

func (h *fakeHost) AppendBody(b Body, data []byte) error {
	if err := h.tell("append", bodyNames[b], strconv.Itoa(len(data))); err != nil {
		return err
	}
	h.bodies[b] = append(h.bodies[b], data...)
	if h.onAppend != nil {
		h.onAppend()
	}
	return nil
}

func (h *fakeHost) Property(path ...string) (string, bool) {
	value, ok := h.props[strings.Join(path, ".")]
	return value, ok
}

func (h *fakeHost) SetProperty(path string, value []byte) error {
	if err := h.tell("property", path); err != nil {
		return err
	}
	h.kept[path] = string(value)
	return nil
}

func (h *fakeHost) Reply(status int, headers [][2]string, body []byte) error {
	if err := h.tell("reply", strconv.Itoa(status)); err != nil {
		return err
	}
	h.replies = append(h.replies, fakeReply{status, headers, string(body)})
	if h.onReply != nil {
		h.onReply()
	}
	return nil
}

func (h *fakeHost) Reset() error {
	err := h.tell("reset")
	if err == nil && h.onReset != nil {
		h.onReset()
	}
	return err
}

func (h *fakeHost) TakeBody(b Body, size int) ([]byte, error) {
	body, err := h.ReadBody(b, size)
	if err == nil {
		h.lent--
	}
	return body, err
}

func (h *fakeHost) ResumeRequest() error {
	h.requestResumed++
	err := h.tell("resume request")
	if err == nil && h.onResume != nil {
		h.onResume()
	}
	return err
}

func (h *fakeHost) ResumeResponse() error {
	h.resumed++
	return h.tell("resume response")
}

func (h *fakeHost) Enter() error {
	if h.gone {
		return errRefused
	}
	if h.vm != nil {
		h.vm.at = h
	}
	return h.tell("enter")
}

func (h *fakeHost) Call(cluster string, headers [][2]string, timeoutMs int, done func(CallResult)) error {
	if err := h.tell("call", cluster); err != nil {
		return err
	}
	call := fakeCall{cluster, headers, timeoutMs, done}
	h.calls = append(h.calls, call)
	if h.vm != nil {
		h.vm.calls = append(h.vm.calls, vmCall{call, h})
	}
	return nil
}

func (h *fakeHost) Tick(periodMs int) error {
	h.ticks = periodMs
	return h.tell("tick", strconv.Itoa(periodMs))
}

// answerCall answers a callout.
func (h *fakeHost) answerCall(call fakeCall, status int, body string, headers ...[2]string) {
	h.bodies[CalloutBody] = []byte(body)
	call.done(CallResult{Status: status, Headers: headers, Size: len(body)})
	h.bodies[CalloutBody] = nil
}

func (h *fakeHost) Count(m *Metric, n int64) {
	_ = h.tell("count", m.name)
	h.counts[m.name] += n
}

func (h *fakeHost) Observe(m *Metric, value int64) {
	h.observed[m.name] = append(h.observed[m.name], value)
}

func headerOf(pairs [][2]string, name string) string {
	for _, p := range pairs {
		if p[0] == name {
			return p[1]
		}
	}
	return ""
}

func without(pairs [][2]string, name string) [][2]string {
	return slices.DeleteFunc(slices.Clone(pairs), func(p [2]string) bool { return lower(p[0]) == name })
}

// gateway plays a proxy around one exchange: it buffers while the filter holds,
// and lets go what the filter lets go.
type gateway struct {
	t testing.TB
	h *fakeHost
	x *exchange

	upHeaders [][2]string // what the upstream got; nil while nothing
	upBody    []byte
	upEnded   bool

	clientHeaders [][2]string // what the client got; nil while nothing
	clientBody    []byte
	clientChunks  []string
	clientEnded   bool

	requestHeld, responseHeld bool
	dead                      bool // a local reply or a reset has ended both directions
	cut                       bool // by a reset
}

func newGateway(t testing.TB, configuration string) *gateway {
	t.Helper()
	h := newFakeHost(t)
	p := startPlugin(h, []byte(configuration))
	if p == nil {
		t.Fatalf("the plugin does not start: %q", h.logs)
	}
	return newStream(t, p, h, 7)
}

// newStream is a gateway around one more stream of a plugin.
func newStream(t testing.TB, p *plugin, h *fakeHost, id uint32) *gateway {
	g := &gateway{t: t, h: h, x: p.newExchange(h, id)}
	h.onReply = g.localReply
	h.onReset = func() { g.dead, g.clientEnded, g.cut = true, true, true }
	h.onResume = func() { g.releaseRequest(true) }
	return g
}

// localReply sends a reply of the filter's through the response phases, as
// Envoy does while no response has begun, or straight to the client.
func (g *gateway) localReply() {
	reply := g.h.replies[len(g.h.replies)-1]
	began := g.x.response != responseOwn || g.h.maps[ResponseHeaders] != nil
	headers := append([][2]string{{":status", strconv.Itoa(reply.status)}}, reply.headers...)
	body := []byte(reply.body)
	g.dead = true
	if !began {
		g.h.maps[ResponseHeaders], g.h.bodies[ResponseBody] = headers, body
		if a := g.x.ResponseHeaders(false); a != Continue {
			g.t.Error("the filter holds its own reply's headers")
		}
		if a := g.x.ResponseBody(len(body), true); a != Continue {
			g.t.Error("the filter holds its own reply's body")
		}
		headers, body = g.h.maps[ResponseHeaders], g.h.bodies[ResponseBody]
	}
	if g.clientHeaders != nil {
		g.t.Error("a reply after headers have left")
	}
	g.clientHeaders, g.clientBody, g.clientEnded = headers, body, true
}

var goodRequest = [][2]string{
	{":method", "POST"}, {":path", "/openai/v1/chat/completions"}, {":authority", "gateway.test"}, {":scheme", "http"},
	{"authorization", "Bearer key-1"}, {"content-type", "application/json"}, {"x-request-id", "envoy-1"},
}

// sendHeaders begins the request.
func (g *gateway) sendHeaders(headers [][2]string, end bool) {
	g.h.maps[RequestHeaders] = slices.Clone(headers)
	if a := g.x.RequestHeaders(end); a == Continue && !g.dead {
		g.upHeaders = g.h.maps[RequestHeaders]
		g.upEnded = end
	} else {
		g.requestHeld = true
	}
}

// sendBody sends one piece.
func (g *gateway) sendBody(piece string, end bool) {
	if g.dead {
		return
	}
	g.h.bodies[RequestBody] = append(g.h.bodies[RequestBody], piece...)
	if a := g.x.RequestBody(len(g.h.bodies[RequestBody]), end); a == Continue && !g.dead {
		g.releaseRequest(end)
	}
}

func (g *gateway) sendTrailers(trailers ...[2]string) {
	if g.dead {
		return
	}
	g.h.maps[RequestTrailers] = trailers
	if a := g.x.RequestTrailers(); a == Continue && !g.dead {
		g.releaseRequest(true)
	}
}

func (g *gateway) releaseRequest(end bool) {
	g.upHeaders, g.requestHeld = g.h.maps[RequestHeaders], false
	g.upBody = append(g.upBody, g.h.bodies[RequestBody]...)
	g.h.bodies[RequestBody] = nil
	g.upEnded = end
}

// chat sends a whole chat request.
func (g *gateway) chat(body string, more ...[2]string) {
	g.sendHeaders(append(slices.Clone(goodRequest), more...), false)
	g.sendBody(body, true)
}

// answerHeaders begins the upstream's answer.
func (g *gateway) answerHeaders(end bool, headers ...[2]string) {
	if _, ok := g.h.props["response.code_details"]; !ok {
		g.h.props["response.code_details"] = "via_upstream"
		g.h.props["upstream.address"] = "192.0.2.1:443"
	}
	g.h.maps[ResponseHeaders] = slices.Clone(headers)
	g.h.bodies[ResponseBody] = nil
	if a := g.x.ResponseHeaders(end); a == Continue && !g.clientEnded {
		g.clientHeaders, g.clientEnded = g.h.maps[ResponseHeaders], end
	} else {
		g.responseHeld = true
	}
}

// answerBody sends one piece of the upstream's answer.
func (g *gateway) answerBody(piece string, end bool) {
	if g.clientEnded {
		return
	}
	g.h.bodies[ResponseBody] = append(g.h.bodies[ResponseBody], piece...)
	if a := g.x.ResponseBody(len(g.h.bodies[ResponseBody]), end); a == Continue && !g.clientEnded {
		g.releaseResponse(end)
	}
}

func (g *gateway) answerTrailers(trailers ...[2]string) {
	if g.clientEnded {
		return
	}
	g.h.maps[ResponseTrailers] = trailers
	if a := g.x.ResponseTrailers(); a == Continue && !g.clientEnded {
		g.releaseResponse(true)
	}
}

func (g *gateway) releaseResponse(end bool) {
	if g.clientHeaders == nil {
		g.clientHeaders = g.h.maps[ResponseHeaders]
	}
	chunk := g.h.bodies[ResponseBody]
	g.clientBody = append(g.clientBody, chunk...)
	g.clientChunks = append(g.clientChunks, string(chunk))
	g.h.bodies[ResponseBody] = nil
	g.clientEnded = end
}

// answer sends a whole answer of the upstream's.
func (g *gateway) answer(status int, body string, more ...[2]string) {
	headers := [][2]string{{":status", strconv.Itoa(status)}, {"content-type", "application/json"},
		{"content-length", strconv.Itoa(len(body))}, {"request-id", "req_up"}}
	g.answerHeaders(false, append(headers, more...)...)
	g.answerBody(body, true)
}

// callout answers the latest callout.
func (g *gateway) callout(status int, body string) {
	g.t.Helper()
	if len(g.h.calls) == 0 {
		g.t.Fatal("no callout")
	}
	resumed := g.h.resumed
	call := g.h.calls[len(g.h.calls)-1]
	g.h.answerCall(call, status, body)
	if g.h.resumed > resumed && !g.clientEnded {
		g.releaseResponse(true)
	}
}

// done ends the stream and checks what must be true of every one.
func (g *gateway) done() {
	g.t.Helper()
	g.x.Done()
	if g.h.lent != 0 {
		g.t.Errorf("%d bodies have not been given back", g.h.lent)
	}
	for _, line := range g.h.logs {
		if strings.HasPrefix(line, "critical") {
			g.t.Errorf("log: %s", line)
		}
		if strings.Contains(line, "key-1") || strings.Contains(line, "secret words") {
			g.t.Errorf("log with a key or a message: %s", line)
		}
	}
}

func (g *gateway) status() string { return headerOf(g.clientHeaders, ":status") }

// wantError checks that the client got an error in OpenAI's envelope.
func (g *gateway) wantError(status int, parts ...string) {
	g.t.Helper()
	if g.status() != strconv.Itoa(status) {
		g.t.Errorf("status %s, want %d", g.status(), status)
	}
	if ct := headerOf(g.clientHeaders, "content-type"); ct != "application/json" {
		g.t.Errorf("content-type %q", ct)
	}
	body := string(g.clientBody)
	if !strings.HasPrefix(body, `{"error":{"message":"`) {
		g.t.Errorf("no envelope: %s", body)
	}
	for _, part := range parts {
		if !strings.Contains(body, part) {
			g.t.Errorf("%q is not in %s", part, body)
		}
	}
	g.wantLength()
	g.wantIDs()
}

// wantLength checks that a content-length fits the body.
func (g *gateway) wantLength() {
	g.t.Helper()
	if n := headerOf(g.clientHeaders, "content-length"); n != "" && n != strconv.Itoa(len(g.clientBody)) {
		g.t.Errorf("content-length %s of a body of %d", n, len(g.clientBody))
	}
}

// wantIDs checks that both id headers are there and the same.
func (g *gateway) wantIDs() {
	g.t.Helper()
	id, other := headerOf(g.clientHeaders, "request-id"), headerOf(g.clientHeaders, "x-request-id")
	if id == "" || id != other {
		g.t.Errorf("request-id %q, x-request-id %q", id, other)
	}
}

// wantUpstreamUntouched checks that nothing has gone up.
func (g *gateway) wantUpstreamUntouched() {
	g.t.Helper()
	if g.upHeaders != nil || len(g.upBody) > 0 {
		g.t.Errorf("the upstream was asked: %q %q", g.upHeaders, g.upBody)
	}
}

func (g *gateway) wantUsage(parts ...string) {
	g.t.Helper()
	line := g.h.kept[usageProperty]
	for _, part := range parts {
		if !strings.Contains(line, part) {
			g.t.Errorf("%s is not in the usage line %q", part, line)
		}
	}
}

const (
	chatBody   = `{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"secret words"}]}`
	streamBody = `{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"secret words"}]}`
	message    = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":7}}`
)
