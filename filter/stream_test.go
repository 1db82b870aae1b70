package main

import (
	"bytes"
	"strings"
	"testing"
)

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

var (
	messageStart = event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
	blockStart   = event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	textA        = event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A"}}`)
	blockStop    = event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	messageDelta = event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`)
	messageStop  = event("message_stop", `{"type":"message_stop"}`)
	ping         = event("ping", `{"type":"ping"}`)
	overloaded   = event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)

	wholeStream = messageStart + blockStart + textA + blockStop + messageDelta + messageStop
)

// startStream begins a streamed answer.
func startStream(t *testing.T, config string) *gateway {
	g := newGateway(t, config)
	g.chat(streamBody)
	g.answerHeaders(false, [2]string{":status", "200"}, [2]string{"content-type", "text/event-stream; charset=utf-8"}, [2]string{"request-id", "req_up"},
		[2]string{"content-length", "77"}, [2]string{"anthropic-ratelimit-tokens-limit", "5"})
	return g
}

func (g *gateway) wantStream() {
	g.t.Helper()
	if g.status() != "200" || headerOf(g.clientHeaders, "content-type") != streamType || headerOf(g.clientHeaders, "content-length") != "" {
		g.t.Errorf("headers %q", g.clientHeaders)
	}
	g.wantIDs()
	if !bytes.HasSuffix(g.clientBody, []byte("data: [DONE]\n\n")) || bytes.Count(g.clientBody, []byte("[DONE]")) != 1 {
		g.t.Errorf("no end: %s", g.clientBody)
	}
}

func TestStreamGoesOnEventByEvent(t *testing.T) {
	for _, config := range []string{"", `{"hold_headers":false}`} {
		g := startStream(t, config)
		if held := config == ""; held != g.responseHeld {
			t.Errorf("%s: held %v", config, g.responseHeld)
		}
		events := []string{messageStart, blockStart, textA, textA, blockStop, messageDelta, messageStop}
		for i, e := range events {
			g.answerBody(e, false)
			if len(g.clientChunks) != i+1 {
				t.Fatalf("%s: after %d events %d pieces", config, i+1, len(g.clientChunks))
			}
		}
		for i, part := range map[int]string{0: `"role":"assistant"`, 2: `"content":"A"`, 3: `"content":"A"`, 6: "[DONE]"} {
			if !strings.Contains(g.clientChunks[i], part) {
				t.Errorf("%s: piece %d is %q", config, i, g.clientChunks[i])
			}
		}
		g.answerBody("", true)
		g.done()
		g.wantStream()
		if !g.clientEnded {
			t.Error("the body does not end")
		}
		g.wantUsage(`"stream":true`, `"status":200`, `"outcome":"ok"`, `"prompt_tokens":10`, `"completion_tokens":7`, `"estimated":false`)
		if len(g.h.observed["ezat.first_token_ms"]) != 1 {
			t.Errorf("first token: %v", g.h.observed)
		}
		if !strings.Contains(string(g.clientBody), `"id":"chatcmpl-req_up"`) || !strings.Contains(string(g.clientBody), `"created":1793318400`) {
			t.Errorf("%s", g.clientBody)
		}
	}
}

// TestUsageIsRecordedBeforeDone: the property is there before the bytes with
// [DONE] are handed over.
func TestUsageIsRecordedBeforeDone(t *testing.T) {
	g := startStream(t, "")
	g.answerBody(messageStart+blockStart+textA+blockStop+messageDelta, false)
	if _, ok := g.h.kept[usageProperty]; ok {
		t.Error("recorded before the end")
	}
	g.h.events = nil
	g.answerBody(messageStop, false)
	if len(g.h.events) < 3 || g.h.events[1] != "property "+usageProperty || !strings.HasPrefix(g.h.events[len(g.h.events)-1], "replace response") {
		t.Errorf("%q", g.h.events)
	}
	g.answerBody("", true)
	g.done()
	if n := g.h.counts["ezat.requests.ok"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// TestStreamAtEveryCut: where the bytes are cut changes nothing but the pieces.
func TestStreamAtEveryCut(t *testing.T) {
	whole := startStream(t, "")
	whole.answerBody(wholeStream, true)
	whole.done()
	for cut := range len(wholeStream) {
		g := startStream(t, "")
		g.answerBody(wholeStream[:cut], false)
		g.answerBody(wholeStream[cut:], true)
		g.done()
		if !bytes.Equal(g.clientBody, whole.clientBody) {
			t.Fatalf("cut at %d: %s", cut, g.clientBody)
		}
	}
	g := startStream(t, "")
	for _, b := range strings.Split(wholeStream, "") {
		g.answerBody(b, false)
	}
	g.answerBody("", true)
	g.done()
	if !bytes.Equal(g.clientBody, whole.clientBody) {
		t.Fatalf("byte by byte: %s", g.clientBody)
	}
	whole.wantStream()
}

func TestHeadersWaitForTheFirstWholeEventAndNoLonger(t *testing.T) {
	g := startStream(t, "")
	for _, b := range strings.Split(messageStart[:len(messageStart)-1], "") {
		g.answerBody(b, false)
	}
	if g.clientHeaders != nil {
		t.Fatal("headers have left before the first event")
	}
	g.answerBody("\n", false)
	if g.clientHeaders == nil {
		t.Fatal("headers wait longer than for the first event")
	}
	for _, first := range []string{ping, blockStop} {
		g = startStream(t, "")
		g.answerBody(first, false)
		if g.clientHeaders == nil && g.x.stream.Early() == nil {
			t.Errorf("headers wait after %q", first)
		}
	}
}

func TestEarlyErrorBecomesAStatus(t *testing.T) {
	for name, feed := range map[string]func(g *gateway){
		"one piece":       func(g *gateway) { g.answerBody(overloaded, true) },
		"open upstream":   func(g *gateway) { g.answerBody(overloaded, false) },
		"more follows":    func(g *gateway) { g.answerBody(overloaded, false); g.answerBody(ping, false); g.answerBody("", true) },
		"behind it":       func(g *gateway) { g.answerBody(overloaded+wholeStream, true) },
		"in pieces":       func(g *gateway) { g.answerBody(overloaded[:20], false); g.answerBody(overloaded[20:], false) },
		"then trailers":   func(g *gateway) { g.answerBody(overloaded, false); g.answerTrailers([2]string{"a", "b"}) },
		"without a blank": func(g *gateway) { g.answerBody(overloaded[:len(overloaded)-1], false); g.answerBody("", true) },
	} {
		t.Run(name, func(t *testing.T) {
			g := startStream(t, "")
			feed(g)
			g.done()
			g.wantError(503, "Overloaded", `"code":"overloaded"`)
			if headerOf(g.clientHeaders, "content-length") == "" {
				t.Error("the answer has no end while the upstream is open")
			}
			if headerOf(g.clientHeaders, "x-ratelimit-limit-tokens") != "5" {
				t.Errorf("%q", g.clientHeaders)
			}
			g.wantUsage(`"outcome":"upstream_error"`, `"status":503`)
		})
	}
}

func TestStreamThatEndsWithoutAnEvent(t *testing.T) {
	for name, end := range map[string]func(g *gateway){
		"empty piece":     func(g *gateway) { g.answerBody("", true) },
		"half an event":   func(g *gateway) { g.answerBody(messageStart[:30], true) },
		"trailers":        func(g *gateway) { g.answerTrailers([2]string{"a", "b"}) },
		"piece, trailers": func(g *gateway) { g.answerBody("", false); g.answerTrailers([2]string{"a", "b"}) },
	} {
		t.Run(name, func(t *testing.T) {
			g := startStream(t, "")
			end(g)
			g.done()
			g.wantError(500, `"type":"server_error"`)
			g.wantUsage(`"outcome":"upstream_error"`)
		})
	}
}

func TestErrorsWithoutHeldHeadersStayEvents(t *testing.T) {
	g := startStream(t, `{"hold_headers":false}`)
	g.answerBody(overloaded, true)
	g.done()
	g.wantStream()
	if !bytes.HasPrefix(g.clientBody, []byte(`data: {"error":{"message":"Overloaded"`)) {
		t.Errorf("%s", g.clientBody)
	}
}

func TestBrokenStreamsEndProperly(t *testing.T) {
	for name, end := range map[string]func(g *gateway){
		"last piece":    func(g *gateway) { g.answerBody(textA, true) },
		"empty piece":   func(g *gateway) { g.answerBody("", true) },
		"half an event": func(g *gateway) { g.answerBody(textA[:20], true) },
		"error":         func(g *gateway) { g.answerBody(overloaded, false) },
		"no JSON":       func(g *gateway) { g.answerBody("data: {x\n\n", false) },
		"error and more": func(g *gateway) {
			g.answerBody(overloaded, false)
			g.answerBody(wholeStream, false)
			g.answerBody("x", true)
		},
		"trailers": func(g *gateway) { g.answerTrailers([2]string{"a", "b"}) },
	} {
		for _, config := range []string{"", `{"hold_headers":false}`} {
			t.Run(name+config, func(t *testing.T) {
				g := startStream(t, config)
				g.answerBody(messageStart+blockStart+textA, false)
				end(g)
				g.done()
				g.wantStream()
				if bytes.Count(g.clientBody, []byte(`"error"`)) != 1 {
					t.Errorf("%s", g.clientBody)
				}
				g.wantUsage(`"outcome":"failed"`, `"status":200`, `"prompt_tokens":0`, `"completion_tokens":0`)
			})
		}
	}
}

func TestHostThatTakesNothingBeforeTrailers(t *testing.T) {
	g := startStream(t, "")
	g.answerBody(messageStart+blockStart+textA, false)
	g.h.refuse = "append response"
	g.answerTrailers([2]string{"a", "b"})
	g.done()
	g.wantUsage(`"outcome":"failed"`)
	if len(g.h.logs) != 2 || !strings.HasPrefix(g.h.logs[1], "warn: ") {
		t.Errorf("log %q", g.h.logs)
	}
}

// TestHostThatTakesNothing: a stream that cannot get its end is cut, and nobody
// waits for a callback that never comes.
func TestHostThatTakesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		refuse string
		end    func(g *gateway)
	}{
		"bytes":          {"replace response", func(g *gateway) { g.answerBody(textA, false) }},
		"last bytes":     {"replace response", func(g *gateway) { g.answerBody(textA, true) }},
		"broken, bytes":  {"replace response", func(g *gateway) { g.breaks("response body", func() { g.answerBody(textA, true) }) }},
		"trailers":       {"append response", func(g *gateway) { g.answerTrailers([2]string{"a", "b"}) }},
		"broken, at end": {"append response", func(g *gateway) { g.breaks("response trailers", func() { g.answerTrailers([2]string{"a", "b"}) }) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := startStream(t, "")
			g.answerBody(messageStart+blockStart+textA, false)
			g.h.refuse = c.refuse
			c.end(g)
			if !g.cut {
				t.Errorf("the stream hangs: %q", g.h.events)
			}
			g.x.Done()
			if bytes.Contains(g.clientBody, []byte("content_block_delta")) {
				t.Errorf("the upstream's bytes: %s", g.clientBody)
			}
		})
	}
}

// TestHostThatWillNotReset: an older list of capabilities does not have it.
func TestHostThatWillNotReset(t *testing.T) {
	g := startStream(t, "")
	g.answerBody(messageStart+blockStart+textA, false)
	g.x.host = noReset{g.h}
	g.h.refuse = "append response"
	g.answerTrailers([2]string{"a", "b"})
	if !g.clientEnded || g.cut {
		t.Error("the stream hangs")
	}
	g.done()
}

type noReset struct{ *fakeHost }

func (noReset) Reset() error { return errRefused }

// TestHeadersAddedWhileAnswersWait: a filter nearer to the upstream may put some on
// the answer while ours holds it.
func TestHeadersAddedWhileAnswersWait(t *testing.T) {
	for name, c := range map[string]struct{ request, contentType, body string }{
		"stream": {streamBody, "text/event-stream", wholeStream},
		"early":  {streamBody, "text/event-stream", overloaded},
		"whole":  {chatBody, "application/json", message},
		"fault":  {chatBody, "application/json", "<html>"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "")
			g.chat(c.request)
			g.answerHeaders(false, [2]string{":status", "200"}, [2]string{"content-type", c.contentType}, [2]string{"request-id", "req_up"})
			if g.x.answerHeaders != nil {
				t.Error("the headers are kept")
			}
			g.h.maps[ResponseHeaders] = append(g.h.maps[ResponseHeaders], [2]string{"Set-Cookie", "a=b"}, [2]string{"via", "1.1 inner"},
				[2]string{"x-envoy-upstream-service-time", "7"}, [2]string{"x-added", "yes"}, [2]string{"anthropic-ratelimit-tokens-limit", "9"})
			g.answerBody(c.body, true)
			g.done()
			for _, dropped := range []string{"set-cookie", "via", "x-envoy-upstream-service-time"} {
				if headerOf(g.clientHeaders, dropped) != "" {
					t.Errorf("%s passes: %q", dropped, g.clientHeaders)
				}
			}
			if headerOf(g.clientHeaders, "x-added") != "yes" || headerOf(g.clientHeaders, "x-ratelimit-limit-tokens") != "9" {
				t.Errorf("%q", g.clientHeaders)
			}
			g.wantIDs()
		})
	}
}

func TestGoodStreamWithTrailers(t *testing.T) {
	g := startStream(t, "")
	g.answerBody(wholeStream, false)
	g.answerTrailers([2]string{"content-md5", "x"})
	g.done()
	g.wantStream()
	g.wantUsage(`"outcome":"ok"`)
	if len(g.h.maps[ResponseTrailers]) != 0 {
		t.Errorf("trailers %q", g.h.maps[ResponseTrailers])
	}
}

func TestNothingAfterDone(t *testing.T) {
	g := startStream(t, "")
	g.answerBody(wholeStream, false)
	size := len(g.clientBody)
	for _, more := range []string{ping, wholeStream, "", "x"} {
		g.answerBody(more, false)
	}
	g.answerBody(overloaded, true)
	g.answerBody("", true)
	g.done()
	if len(g.clientBody) != size {
		t.Errorf("%q after [DONE]", g.clientBody[size:])
	}
}

// code is a number as a property.
func code(n int) string { return string([]byte{byte(n), byte(n >> 8), 0, 0, 0, 0, 0, 0}) }

func TestClientLeaves(t *testing.T) {
	t.Run("in a stream", func(t *testing.T) {
		g := startStream(t, "")
		g.answerBody(messageStart+blockStart+strings.Repeat(textA, 9), false)
		g.h.props["response.code_details"] = "downstream_remote_disconnect"
		g.h.props["response.code"] = code(200)
		g.done()
		g.wantUsage(`"outcome":"client_left"`, `"status":200`, `"stream":true`, `"prompt_tokens":10`, `"completion_tokens":3`, `"estimated":true`,
			`"model":"anthropic/claude-sonnet-5-5"`)
		if g.h.counts["ezat.requests.client_left"] != 1 || g.h.counts["ezat.tokens.completion"] != 3 {
			t.Errorf("counts %v", g.h.counts)
		}
		if g.x.stream != nil {
			t.Error("the stream's state is kept")
		}
	})
	t.Run("while the upstream thinks", func(t *testing.T) {
		g := newGateway(t, "")
		g.chat(chatBody)
		g.h.props["response.code_details"] = "downstream_remote_disconnect"
		g.done()
		g.wantUsage(`"outcome":"client_left"`, `"status":0`, `"prompt_tokens":0`)
	})
	t.Run("before the first event", func(t *testing.T) {
		g := startStream(t, "")
		g.answerBody(messageStart[:9], false)
		g.done()
		g.wantUsage(`"outcome":"client_left"`, `"status":0`)
	})
	t.Run("while it sends", func(t *testing.T) {
		g := newGateway(t, "")
		g.sendHeaders(goodRequest, false)
		g.sendBody(chatBody[:5], false)
		g.done()
		g.wantUsage(`"outcome":"client_left"`, `"model":""`)
	})
	t.Run("after the end", func(t *testing.T) {
		g := startStream(t, "")
		g.answerBody(wholeStream, false)
		g.h.props["response.code_details"] = "downstream_remote_disconnect"
		g.done()
		g.wantUsage(`"outcome":"ok"`)
		if n := g.h.counts["ezat.requests.client_left"]; n != 0 {
			t.Errorf("counted %d times", n)
		}
	})
}

func TestUpstreamBreaksOff(t *testing.T) {
	for _, details := range []string{"upstream_reset_after_response_started{connection_termination}", "stream_idle_timeout", "response_timeout",
		"response_payload_too_large"} {
		g := startStream(t, "")
		g.answerBody(messageStart+blockStart+textA, false)
		g.h.props["response.code_details"] = details
		g.h.props["response.code"] = code(200)
		g.done()
		g.wantUsage(`"outcome":"failed"`, `"status":200`, `"prompt_tokens":0`, `"completion_tokens":0`, `"estimated":false`)
	}
}

// TestStreamsDoNotMix runs two streams of one VM in turns, byte by byte.
func TestStreamsDoNotMix(t *testing.T) {
	alone := func(model string) []byte {
		g := newGateway(t, "")
		g.chat(strings.Replace(streamBody, "anthropic/claude-sonnet-5-5", model, 1))
		g.answerHeaders(false, [2]string{":status", "200"}, [2]string{"content-type", "text/event-stream"}, [2]string{"request-id", "id-" + model})
		g.answerBody(strings.Replace(wholeStream, `"A"`, `"of `+model+`"`, 1), true)
		return g.clientBody
	}
	first := newGateway(t, "")
	second := &gateway{t: t, h: newFakeHost(t)}
	second.h.onReply = second.localReply
	second.x = first.x.plugin.newExchange(second.h, 8)
	streams := map[string]*gateway{"one": first, "two": second}
	for model, g := range streams {
		g.chat(strings.Replace(streamBody, "anthropic/claude-sonnet-5-5", model, 1))
		g.answerHeaders(false, [2]string{":status", "200"}, [2]string{"content-type", "text/event-stream"}, [2]string{"request-id", "id-" + model})
	}
	for i := range 2 * len(wholeStream) {
		for model, g := range streams {
			text := strings.Replace(wholeStream, `"A"`, `"of `+model+`"`, 1)
			if i < len(text) {
				g.answerBody(text[i:i+1], i == len(text)-1)
			}
		}
	}
	for model, g := range streams {
		g.done()
		if want := alone(model); !bytes.Equal(g.clientBody, want) {
			t.Errorf("%s: %s\nalone: %s", model, g.clientBody, want)
		}
	}
}

func TestRunningStreamDoesNotAllocate(t *testing.T) {
	g := startStream(t, "")
	g.answerBody(messageStart+blockStart, false)
	quiet := &quietHost{fakeHost: g.h, chunk: []byte(textA)}
	g.x.host = quiet
	if n := testing.AllocsPerRun(500, func() {
		if g.x.ResponseBody(len(textA), false) != Continue {
			t.Fatal("held")
		}
	}); n != 0 {
		t.Errorf("%v allocations for each event", n)
	}
}

// quietHost hands out one chunk again and again and keeps nothing.
type quietHost struct {
	*fakeHost
	chunk []byte
}

func (h *quietHost) ReadBody(Body, int) ([]byte, error) { return h.chunk, nil }
func (h *quietHost) ReleaseBody([]byte)                 {}
func (h *quietHost) ReplaceBody(Body, []byte) error     { return nil }
func (h *quietHost) Now() int64                         { return h.now }
