package main

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// FuzzPhases plays a host that keeps no order: phases come twice, too early,
// too late and after the end, bodies shrink and grow, host calls fail. Whatever
// it does, the filter must not panic, must send nothing untranslated upstream,
// and must put no key and no message into the log.
//
// Each byte of the script is a step: the low four bits say which, the others
// how.
func FuzzPhases(f *testing.F) {
	f.Add([]byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66}, "")
	f.Add([]byte{0x00, 0x41, 0x04, 0x45, 0x55, 0x65, 0x07, 0x07}, "")
	f.Add([]byte{0x03, 0x05, 0x07, 0x06, 0x02, 0x01, 0x00}, `{"hold_headers":false}`)
	f.Add([]byte{0x10, 0x04, 0x15, 0x08, 0x08, 0x09, 0x08}, "")
	f.Add([]byte{0x00, 0x11, 0x24, 0x05, 0xf5, 0x25, 0x35, 0x45, 0x06, 0x07}, "")
	f.Add([]byte{0x00, 0x11, 0x0a, 0x24, 0x05, 0x0b, 0x06, 0x07}, `{"upstream":{"credentials":"gateway"}}`)
	f.Fuzz(func(t *testing.T, script []byte, configuration string) {
		h := newFakeHost(t)
		p := startPlugin(h, []byte(configuration))
		if p == nil || len(script) > 200 {
			return
		}
		play(t, h, p, script)
	})
}

func TestPhasesInAnyOrder(t *testing.T) {
	for _, configuration := range []string{"", `{"hold_headers":false}`} {
		for seed := range uint64(20_000) {
			script := make([]byte, 12)
			state := seed*0x9E3779B97F4A7C15 + 1
			for i := range script {
				state ^= state << 13
				state ^= state >> 7
				state ^= state << 17
				script[i] = byte(state >> 32)
			}
			h := newFakeHost(t)
			play(t, h, startPlugin(h, []byte(configuration)), script)
			if t.Failed() {
				t.Fatalf("script % x, configuration %q", script, configuration)
			}
		}
	}
}

func play(t testing.TB, h *fakeHost, p *plugin, script []byte) {
	h.careless = true
	if len(script) > 0 && script[0] >= 0x80 {
		p.ledger.bytesMax = 1000 // some events of the script pass it
	}
	x := p.newExchange(h, 1)
	requests := [][][2]string{goodRequest, getRequest("/openai/v1/models"), getRequest("/openai/v1/models/x"), getRequest("/elsewhere"),
		without(goodRequest, "authorization"), append(slices.Clone(goodRequest), [2]string{"content-length", "0"}), nil}
	bodies := []string{"", chatBody, streamBody, "{", chatBody[:20], strings.Repeat(`{"messages":`, 700),
		withImages("http://a.test/"), withImages("http://a.test/", "https://b.test/")}
	answers := []string{"", message, wholeStream, overloaded, messageStart, textA, page("a", "more"), page("b", ""), "<html>", messageStop, "data: "}
	statuses := []string{"200", "200", "529", "404", "", "301", "x"}
	details := []string{"via_upstream", "via_upstream", "response_timeout", ""}
	types := []string{"application/json", "text/event-stream", ""}
	ours := false
	goesUp := func() {
		if bytes.Contains(h.bodies[RequestBody], []byte("anthropic/claude")) {
			t.Errorf("untranslated bytes go up: %.100s", h.bodies[RequestBody])
		}
		h.bodies[RequestBody] = nil
	}
	h.onResume = goesUp
	for _, step := range script {
		how := int(step >> 4)
		action, sends, before := Pause, false, x.request
		switch step & 15 {
		case 0:
			h.maps[RequestHeaders] = slices.Clone(requests[how%len(requests)])
			first := x.request == requestNew
			action = x.RequestHeaders(how >= 8)
			if first {
				ours = x.request != requestForeign
			}
		case 1, 12:
			h.bodies[RequestBody] = append(h.bodies[RequestBody], bodies[how%len(bodies)]...)
			action, sends = x.RequestBody(len(h.bodies[RequestBody]), step&15 == 1), true
		case 2:
			h.maps[RequestTrailers] = [][2]string{{"cookie", "a=b"}}
			action, sends = x.RequestTrailers(), true
		case 3, 4:
			h.props["response.code_details"] = details[how%len(details)]
			if how%5 != 0 {
				h.props["upstream.address"] = "192.0.2.1:443"
			}
			h.maps[ResponseHeaders] = [][2]string{{":status", statuses[how%len(statuses)]}, {"content-type", types[how%len(types)]}}
			x.ResponseHeaders(step&15 == 3)
		case 5, 13:
			h.bodies[ResponseBody] = []byte(answers[how%len(answers)])
			x.ResponseBody(len(h.bodies[ResponseBody]), step&15 == 13)
		case 6:
			h.maps[ResponseTrailers] = [][2]string{{"x", strconv.Itoa(how)}}
			x.ResponseTrailers()
		case 7:
			x.Done()
		case 8, 14:
			if n := len(h.calls); n > 0 {
				h.answerCall(h.calls[how%n], []int{200, 200, 429, 0}[how%4], answers[6+how%3])
				h.calls = slices.Delete(h.calls, how%n, how%n+1)
			}
		case 11, 15:
			if n := len(h.calls); n > 0 {
				h.answerCall(h.calls[how%n], 200+how%2*102, smallFile, [2]string{"location", "/next"})
				h.calls = slices.Delete(h.calls, how%n, how%n+1)
			}
		case 9:
			h.bodies[RequestBody] = nil
		case 10:
			h.refuse = []string{"set response", "replace", "append", "read", "reply", "remove request", "call", "property", "resume", "reset", "", ""}[how%12]
		}
		switch {
		case !sends || action != Continue:
		case ours && before != requestSent:
			goesUp()
		default:
			h.bodies[RequestBody] = nil
		}
	}
	x.Done()
	if l := p.ledger; l.bytes != 0 || len(l.heavy) != 0 || x.weight != 0 {
		t.Errorf("%d bytes are still in the ledger", l.bytes)
	}
	h.refuse = ""
	for _, call := range h.calls {
		h.answerCall(call, 200, smallFile)
	}
	if m := p.images; m.bytes != 0 || m.underWay != 0 || m.fresh.Len()+m.more.Len()+m.lane.Len() > 0 {
		t.Errorf("%d bytes of images are still held, %d downloads under way", m.bytes, m.underWay)
	}
	for _, line := range h.logs {
		if strings.HasPrefix(line, "critical") || strings.Contains(line, "key-1") || strings.Contains(line, "secret words") {
			t.Errorf("log: %s", line)
		}
	}
	if h.lent != 0 {
		t.Errorf("%d bodies are still lent", h.lent)
	}
}

// TestBugEndsOneStreamOnly: the guard answers 500 where a phase panics, and the
// log says so without bytes of the stream.
func TestBugEndsOneStreamOnly(t *testing.T) {
	for name, run := range map[string]func(g *gateway){
		"request headers":  func(g *gateway) { g.chat(chatBody) },
		"response headers": func(g *gateway) { g.answer(200, message) },
		"response body":    func(g *gateway) { g.answer(200, message) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "")
			if name != "request headers" {
				g.chat(chatBody)
			}
			host := g.x.host
			g.x.host = &brokenHost{Host: host, name: name}
			run(g)
			g.x.host = host
			g.x.Done()
			g.wantError(500, `"type":"server_error"`)
			if n := len(g.h.logs); n != 2 || !strings.HasPrefix(g.h.logs[1], "critical: bug in the filter: ") ||
				strings.Contains(g.h.logs[1], "secret") {
				t.Errorf("log %q", g.h.logs)
			}
			g.wantUsage(`"outcome":"failed"`, `"status":500`)
		})
	}
	t.Run("callout", func(t *testing.T) {
		g := listGateway(t, "")
		g.answer(200, page("claude-1", "more"))
		host := g.x.host
		g.x.host = &brokenHost{Host: host, name: "callout"}
		g.callout(200, page("claude-2", ""))
		g.x.host = host
		g.x.Done()
		g.wantError(500)
	})
	t.Run("a running stream", func(t *testing.T) {
		g := startStream(t, "")
		g.answerBody(messageStart, false)
		host := g.x.host
		g.x.host = &brokenHost{Host: host, name: "response body"}
		g.answerBody(textA, false)
		if n := len(g.clientChunks); n != 2 {
			t.Errorf("the stream hangs after %d pieces", n)
		}
		g.x.host = host
		g.answerBody(wholeStream, true)
		if bytes.Contains(g.clientBody, []byte(`"A"`)) {
			t.Errorf("the stream went on: %s", g.clientBody)
		}
		g.wantBroken()
	})
	t.Run("a running stream without held headers", func(t *testing.T) {
		g := startStream(t, `{"hold_headers":false}`)
		g.answerBody(messageStart+textA, false)
		g.breaks("response body", func() { g.answerBody(textA, true) })
		g.wantBroken()
	})
	t.Run("the trailers of a running stream", func(t *testing.T) {
		g := startStream(t, "")
		g.answerBody(messageStart, false)
		g.breaks("response trailers", func() { g.answerTrailers([2]string{"a", "b"}) })
		g.wantBroken()
	})
	t.Run("the request of a running stream", func(t *testing.T) {
		g := newGateway(t, "")
		g.sendHeaders(goodRequest, false)
		g.sendBody(streamBody, false)
		g.x.request, g.x.sentUpstream, g.x.reply.Stream = requestSent, true, true // the upstream answers early
		g.answerHeaders(false, [2]string{":status", "200"}, [2]string{"content-type", "text/event-stream"})
		g.answerBody(messageStart, false)
		g.x.request = requestReading
		g.breaks("request body", func() { g.sendBody("", true) })
		if g.clientEnded || len(g.upBody) > 0 {
			t.Errorf("upstream %q, ended %v", g.upBody, g.clientEnded)
		}
		g.answerBody(textA, false)
		g.answerBody(textA, true)
		g.wantBroken()
	})
}

// breaks lets a phase panic.
func (g *gateway) breaks(name string, run func()) {
	host := g.x.host
	g.x.host = &brokenHost{Host: host, name: name}
	run()
	g.x.host = host
}

// wantBroken checks that a stream that had begun has ended with the error event
// and [DONE], and is recorded as failed.
func (g *gateway) wantBroken() {
	g.t.Helper()
	g.x.Done()
	g.wantStream()
	if !g.clientEnded || bytes.Count(g.clientBody, []byte(`"error"`)) != 1 || !bytes.Contains(g.clientBody, []byte(`"type":"server_error"`)) {
		g.t.Errorf("ended %v: %s", g.clientEnded, g.clientBody)
	}
	g.wantUsage(`"outcome":"failed"`, `"status":200`, `"stream":true`, `"completion_tokens":0`)
	if g.h.counts["ezat.requests.failed"] != 1 || g.h.counts["ezat.requests.client_left"] != 0 {
		g.t.Errorf("counts %v", g.h.counts)
	}
}

// brokenHost panics where a phase named in it does its work.
type brokenHost struct {
	Host
	name string
}

func (h *brokenHost) SetHeader(m Map, name, value string) error {
	if h.name == "request headers" && m == RequestHeaders || h.name == "response headers" && m == ResponseHeaders {
		var none []int
		_ = none[len(value)]
	}
	return h.Host.SetHeader(m, name, value)
}

func (h *brokenHost) ReadBody(b Body, size int) ([]byte, error) {
	if h.name == "response body" && b == ResponseBody || h.name == "request body" && b == RequestBody {
		panic("secret words")
	}
	return h.Host.ReadBody(b, size)
}

func (h *brokenHost) Reply(status int, headers [][2]string, body []byte) error {
	if h.name == "reply" {
		panic("secret words")
	}
	return h.Host.Reply(status, headers, body)
}

func (h *brokenHost) Headers(m Map) [][2]string {
	if h.name == "response trailers" && m == ResponseTrailers {
		panic("secret words")
	}
	return h.Host.Headers(m)
}

func (h *brokenHost) ReplaceBody(b Body, data []byte) error {
	if h.name == "callout" {
		var none map[string]int
		none["x"] = 1
	}
	return h.Host.ReplaceBody(b, data)
}
