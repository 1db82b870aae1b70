package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestAnswerIsTranslated(t *testing.T) {
	g := newGateway(t, "")
	g.chat(chatBody)
	g.answerHeaders(false, [][2]string{
		{":status", "200"}, {"content-type", "application/json; charset=x"}, {"content-length", "9999"}, {"request-id", "req_up"},
		{"x-request-id", "other"}, {"anthropic-organization-id", "org"}, {"anthropic-workspace-id", "w"}, {"openai-organization", "o"},
		{"set-cookie", "a=b"}, {"strict-transport-security", "max-age=1"}, {"alt-svc", "h3"}, {"etag", "x"}, {"access-control-allow-origin", "*"},
		{"retry-after", "3"}, {"x-should-retry", "false"}, {"anthropic-ratelimit-requests-limit", "50"},
		{"anthropic-ratelimit-requests-reset", "2026-10-29T16:06:00Z"}, {"cache-control", "no-store"}, {"date", "today"},
	}...)
	if !g.responseHeld {
		t.Error("headers did not wait")
	}
	g.answerBody(message[:50], false)
	if len(g.clientChunks) != 0 {
		t.Errorf("bytes left early: %q", g.clientChunks)
	}
	g.answerBody(message[50:], true)
	g.done()
	want := map[string]string{
		":status": "200", "content-type": "application/json", "request-id": "req_up", "x-request-id": "req_up",
		"retry-after": "3", "x-should-retry": "false", "anthropic-ratelimit-requests-limit": "50", "x-ratelimit-limit-requests": "50",
		"anthropic-ratelimit-requests-reset": "2026-10-29T16:06:00Z", "cache-control": "no-store", "date": "today",
	}
	for _, p := range g.clientHeaders {
		if w, ok := want[p[0]]; ok && w == p[1] {
			delete(want, p[0])
		} else if p[0] != "content-length" && p[0] != "x-ratelimit-reset-requests" {
			t.Errorf("%q should not be there", p)
		}
	}
	if len(want) != 0 {
		t.Errorf("missing: %q", want)
	}
	if reset := headerOf(g.clientHeaders, "x-ratelimit-reset-requests"); !strings.HasSuffix(reset, "s") {
		t.Errorf("x-ratelimit-reset-requests %q", reset)
	}
	g.wantLength()
	var answer struct {
		ID      string
		Created int64
		Model   string
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(g.clientBody, &answer); err != nil {
		t.Fatalf("%v: %s", err, g.clientBody)
	}
	if answer.ID != "chatcmpl-req_up" || answer.Created != 1793318400 || answer.Model != "anthropic/claude-sonnet-5-5" ||
		answer.Choices[0].Message.Content != "Hi." {
		t.Errorf("%s", g.clientBody)
	}
	g.wantUsage(`"model":"anthropic/claude-sonnet-5-5"`, `"stream":false`, `"status":200`, `"outcome":"ok"`, `"finish_reason":"stop"`,
		`"prompt_tokens":10`, `"completion_tokens":7`, `"estimated":false`)
	if g.h.counts["ezat.requests.ok"] != 1 || g.h.counts["ezat.tokens.prompt"] != 10 || g.h.counts["ezat.tokens.completion"] != 7 {
		t.Errorf("counts %v", g.h.counts)
	}
	recorded := slices.Index(g.h.events, "property "+usageProperty)
	left := slices.IndexFunc(g.h.events, func(e string) bool { return strings.HasPrefix(e, "replace response") })
	if recorded < 0 || left < recorded {
		t.Errorf("the answer left before its usage was recorded: %q", g.h.events)
	}
}

func TestUpstreamErrors(t *testing.T) {
	refusal := `{"type":"error","error":{"type":"x","message":"Words of the upstream."},"request_id":"req_up"}`
	for _, c := range []struct {
		status, want int
		parts        []string
	}{
		{400, 400, []string{`"type":"invalid_request_error","param":null,"code":null`, "Words of the upstream."}},
		{401, 401, []string{`"code":"invalid_api_key"`}},
		{402, 402, []string{`"type":"insufficient_quota"`}},
		{403, 403, []string{`"type":"permission_error"`}},
		{404, 404, []string{"The model `anthropic/claude-sonnet-5-5` does not exist", `"param":"model","code":"model_not_found"`}},
		{413, 413, []string{`"code":"request_too_large"`}},
		{429, 429, []string{`"type":"rate_limit_error"`, `"code":"rate_limit_exceeded"`}},
		{500, 500, []string{`"type":"server_error"`}},
		{503, 503, []string{`"code":"overloaded"`}},
		{504, 504, []string{`"code":"timeout"`}},
		{529, 503, []string{`"code":"overloaded"`}},
		{418, 400, []string{`"type":"invalid_request_error"`}},
		{502, 500, []string{`"type":"server_error"`}},
		{201, 500, []string{`"type":"server_error"`}},
		{302, 500, []string{`"type":"server_error"`}},
	} {
		for _, body := range []string{chatBody, streamBody} {
			for _, config := range []string{"", `{"hold_headers":false}`} {
				g := newGateway(t, config)
				g.chat(body)
				g.answer(c.status, refusal, [2]string{"retry-after", "7"}, [2]string{"location", "https://elsewhere.test"})
				g.done()
				g.wantError(c.want, c.parts...)
				if headerOf(g.clientHeaders, "retry-after") != "7" || headerOf(g.clientHeaders, "location") != "" {
					t.Errorf("%d: headers %q", c.status, g.clientHeaders)
				}
				g.wantUsage(`"outcome":"upstream_error"`, `"prompt_tokens":0`)
				if headerOf(g.clientHeaders, "request-id") != "req_up" {
					t.Errorf("%d: request-id is lost", c.status)
				}
			}
		}
	}
}

func TestErrorBodies(t *testing.T) {
	long := `{"type":"error","error":{"type":"x","message":"` + strings.Repeat("x", errorBodyBytesMax) + `"}}`
	for name, body := range map[string]string{"empty": "", "html": "<html>no</html>", "array": "[1]", "long": long} {
		for _, config := range []string{"", `{"hold_headers":false}`} {
			t.Run(name+config, func(t *testing.T) {
				g := newGateway(t, config)
				g.chat(chatBody)
				g.answer(429, body)
				g.done()
				g.wantError(429, `"code":"rate_limit_exceeded"`)
				if len(g.clientBody) > 500 || bytes.Contains(g.clientBody, []byte("html")) {
					t.Errorf("%.200s", g.clientBody)
				}
			})
		}
	}
}

func TestLongErrorIsAnsweredAtOnce(t *testing.T) {
	g := newGateway(t, "")
	g.chat(chatBody)
	g.answerHeaders(false, [2]string{":status", "500"})
	g.answerBody(strings.Repeat("x", errorBodyBytesMax+1), false)
	if len(g.clientChunks) != 1 {
		t.Fatal("no answer")
	}
	for range 3 {
		g.answerBody("more", false)
	}
	g.answerBody("", true)
	g.done()
	g.wantError(500)
}

func TestHeaderOnlyAnswers(t *testing.T) {
	for _, config := range []string{"", `{"hold_headers":false}`} {
		for status, want := range map[string]int{"200": 500, "204": 500, "400": 400, "404": 404, "429": 429, "529": 503} {
			g := newGateway(t, config)
			g.chat(chatBody)
			g.answerHeaders(true, [2]string{":status", status}, [2]string{"request-id", "req_up"}, [2]string{"retry-after", "7"},
				[2]string{"anthropic-ratelimit-requests-limit", "50"}, [2]string{"anthropic-organization-id", "org"})
			g.done()
			g.wantError(want)
			for name, value := range map[string]string{"request-id": "req_up", "retry-after": "7", "x-ratelimit-limit-requests": "50",
				"anthropic-ratelimit-requests-limit": "50", "anthropic-organization-id": ""} {
				if got := headerOf(g.clientHeaders, name); got != value {
					t.Errorf("%s: %s %q", status, name, got)
				}
			}
			g.wantUsage(`"outcome":"upstream_error"`)
		}
	}
}

func TestGatewayKeyIsNotNamed(t *testing.T) {
	for _, status := range []int{401, 403} {
		g := newGateway(t, `{"upstream":{"credentials":"gateway"}}`)
		g.chat(chatBody)
		g.answer(status, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, [2]string{"www-authenticate", "x-api-key"})
		g.done()
		if status == 401 {
			g.wantError(500, `"type":"server_error"`)
		}
		if bytes.Contains(g.clientBody, []byte("key")) || headerOf(g.clientHeaders, "www-authenticate") != "" {
			t.Errorf("%d: %q %s", status, g.clientHeaders, g.clientBody)
		}
	}
}

func TestHostsOwnReplies(t *testing.T) {
	for _, c := range []struct {
		name, details string
		status        string
		body          string
		want          int
		part          string
	}{
		{"no healthy upstream", "no_healthy_upstream", "503", "no healthy upstream", 503, `"code":"overloaded"`},
		{"timeout", "response_timeout", "504", "upstream request timeout", 504, `"code":"timeout"`},
		{"too large", "request_payload_too_large", "413", "Payload Too Large", 413, `"code":"request_too_large"`},
		{"no route", "route_not_found", "404", "", 404, `"code":"model_not_found"`},
		{"a key filter's", "api_key_auth_unauthorized", "401", "Client authentication failed.", 401, `"code":"invalid_api_key"`},
		{"looks like the upstream's", "rbac_access_denied", "403", `{"type":"error","error":{"type":"x","message":"inside words"}}`, 403, `"type":"permission_error"`},
	} {
		for _, config := range []string{"", `{"hold_headers":false}`, `{"upstream":{"credentials":"gateway"}}`} {
			t.Run(c.name+config, func(t *testing.T) {
				g := newGateway(t, config)
				g.chat(chatBody)
				g.h.props["response.code_details"] = c.details
				headers := [][2]string{{":status", c.status}, {"content-type", "text/plain"}}
				if c.body == "" {
					g.answerHeaders(true, headers...)
				} else {
					g.answerHeaders(false, headers...)
					g.answerBody(c.body, true)
				}
				g.done()
				g.wantError(c.want, c.part)
				if bytes.Contains(g.clientBody, []byte("inside words")) {
					t.Errorf("%s", g.clientBody)
				}
				if headerOf(g.clientHeaders, "request-id") != "envoy-1" {
					t.Errorf("request-id %q", headerOf(g.clientHeaders, "request-id"))
				}
			})
		}
	}
}

func TestHostsOwnReplyBeforeTheBody(t *testing.T) {
	g := newGateway(t, "")
	g.sendHeaders(goodRequest, false)
	g.sendBody(chatBody[:10], false)
	g.h.props["response.code_details"] = "request_payload_too_large"
	g.answerHeaders(false, [2]string{":status", "413"}, [2]string{"content-type", "text/plain"})
	g.answerBody("Payload Too Large", true)
	g.sendBody(chatBody[10:], true)
	g.done()
	g.wantError(413)
	g.wantUpstreamUntouched()
	g.wantUsage(`"outcome":"refused"`)
}

func TestRedirectsOfTheHostPass(t *testing.T) {
	g := newGateway(t, "")
	g.chat(chatBody)
	g.h.props["response.code_details"] = "direct_response"
	g.answerHeaders(true, [2]string{":status", "301"}, [2]string{"location", "https://gateway.test/"})
	g.done()
	if g.status() != "301" || headerOf(g.clientHeaders, "location") != "https://gateway.test/" {
		t.Errorf("%q", g.clientHeaders)
	}
}

func TestHostWithoutProperties(t *testing.T) {
	g := newGateway(t, "")
	g.h.props["response.code_details"] = ""
	g.chat(chatBody)
	g.answer(400, `{"type":"error","error":{"type":"x","message":"Words of the upstream."}}`)
	g.done()
	g.wantError(400, "Words of the upstream.")
}

func TestViaUpstreamWithoutAnAddressIsTheHosts(t *testing.T) {
	g := newGateway(t, "")
	g.chat(chatBody)
	g.h.props["response.code_details"] = "via_upstream"
	g.answer(400, `{"type":"error","error":{"type":"x","message":"inside words"}}`)
	g.done()
	g.wantError(400)
	if bytes.Contains(g.clientBody, []byte("inside words")) {
		t.Errorf("%s", g.clientBody)
	}
}

func TestAnswersThatAreNoMessages(t *testing.T) {
	for name, body := range map[string]string{"empty": "", "html": "<html>", "list": "[]", "other object": `{"type":"error"}`, "cut": message[:80],
		"chat.completion": `{"id":"x","object":"chat.completion","choices":[]}`} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "")
			g.chat(chatBody)
			g.answer(200, body)
			g.done()
			g.wantError(500, `"type":"server_error"`)
			g.wantUsage(`"outcome":"upstream_error"`, `"status":500`)

			// Without held headers the status has gone.
			g = newGateway(t, `{"hold_headers":false}`)
			g.chat(chatBody)
			g.answer(200, body)
			g.done()
			g.wantError(200, `"type":"server_error"`)
			g.wantUsage(`"outcome":"upstream_error"`, `"status":200`)
		})
	}
}

func TestStreamAskedForAndMessageGiven(t *testing.T) {
	g := newGateway(t, "")
	g.chat(streamBody)
	g.answer(200, message)
	g.done()
	g.wantError(500)

	g = newGateway(t, `{"hold_headers":false}`)
	g.chat(streamBody)
	g.answer(200, message)
	g.done()
	if headerOf(g.clientHeaders, "content-type") != streamType || !bytes.HasPrefix(g.clientBody, []byte(`data: {"error":`)) ||
		!bytes.HasSuffix(g.clientBody, []byte("\n\ndata: [DONE]\n\n")) {
		t.Errorf("%q %s", g.clientHeaders, g.clientBody)
	}
}

func TestEncodedAnswers(t *testing.T) {
	for _, body := range []string{chatBody, streamBody} {
		for _, config := range []string{"", `{"hold_headers":false}`} {
			g := newGateway(t, config)
			g.chat(body)
			g.answer(200, "\x1f\x8b", [2]string{"content-encoding", "gzip"}, [2]string{"content-type", "text/event-stream"})
			g.done()
			g.wantError(500, `"type":"server_error"`)
			if headerOf(g.clientHeaders, "content-encoding") != "" {
				t.Error("content-encoding is left")
			}

			g = newGateway(t, config)
			g.chat(body)
			g.answer(429, "\x1f\x8b", [2]string{"content-encoding", "br"})
			g.done()
			g.wantError(429, `"code":"rate_limit_exceeded"`)
			if headerOf(g.clientHeaders, "content-encoding") != "" {
				t.Error("content-encoding is left")
			}

			g = newGateway(t, config)
			g.chat(chatBody)
			g.answer(200, message, [2]string{"content-encoding", "identity"})
			g.done()
			if g.status() != "200" || headerOf(g.clientHeaders, "content-encoding") != "" {
				t.Errorf("%q", g.clientHeaders)
			}
		}
	}
}

func TestAnswerOverTheLimit(t *testing.T) {
	g := newGateway(t, "")
	g.chat(chatBody)
	g.answerHeaders(false, [2]string{":status", "200"})
	g.answerBody(strings.Repeat("x", answerBodyBytesMax), false)
	g.answerBody("x", false)
	if len(g.clientChunks) != 1 {
		t.Fatal("it is still being buffered")
	}
	g.answerBody("more", true)
	g.done()
	g.wantError(500, `"type":"server_error"`)
	for _, e := range g.h.events {
		if strings.HasPrefix(e, "read response") {
			t.Error("it was copied")
		}
	}
}

func TestAnswersWithTrailers(t *testing.T) {
	g := newGateway(t, "")
	g.chat(chatBody)
	g.answerHeaders(false, [2]string{":status", "200"})
	g.answerBody(message, false)
	g.answerTrailers([2]string{"content-md5", "x"})
	g.done()
	if g.status() != "200" || !bytes.Contains(g.clientBody, []byte("Hi.")) {
		t.Errorf("%q %s", g.clientHeaders, g.clientBody)
	}
	if len(g.h.maps[ResponseTrailers]) != 0 {
		t.Errorf("trailers %q", g.h.maps[ResponseTrailers])
	}

	// There is no body to put an error into.
	for _, config := range []string{""} {
		g = newGateway(t, config)
		g.chat(chatBody)
		g.answerHeaders(false, [2]string{":status", "429"}, [2]string{"retry-after", "7"})
		g.answerTrailers([2]string{"x", "y"})
		g.done()
		g.wantError(429, `"code":"rate_limit_exceeded"`)
		if headerOf(g.clientHeaders, "retry-after") != "7" {
			t.Errorf("%q", g.clientHeaders)
		}
	}
}

func TestEarlyAnswerOfTheUpstream(t *testing.T) {
	g := newGateway(t, `{"hold_headers":false}`)
	g.sendHeaders(goodRequest, false)
	g.sendBody(chatBody[:10], false)
	g.answer(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid"}}`)
	g.sendBody(chatBody[10:], true)
	g.done()
	g.wantError(401, `"code":"invalid_api_key"`)
	if len(g.upBody) != 0 {
		t.Errorf("untranslated bytes went up: %q", g.upBody)
	}
}

// TestHostRefusesResponseCalls: while no header has left, what the host will
// not take becomes a 500.
func TestHostRefusesResponseCalls(t *testing.T) {
	for _, event := range []string{"set response x-request-id", "set response content-length", "read response", "replace response"} {
		for _, body := range []string{chatBody, streamBody} {
			t.Run(event, func(t *testing.T) {
				g := newGateway(t, "")
				g.chat(body)
				g.h.refuse = event
				if body == chatBody {
					g.answer(200, message)
				} else {
					g.answerHeaders(false, [2]string{":status", "200"}, [2]string{"content-type", "text/event-stream"}, [2]string{"content-length", "1"})
					g.answerBody(overloaded, true)
				}
				g.done()
				g.wantError(500, `"type":"server_error"`)
			})
		}
	}
}

func TestResponseWithoutARequest(t *testing.T) {
	g := newGateway(t, "")
	g.answer(503, "no healthy upstream")
	g.done()
	if g.status() != "503" || string(g.clientBody) != "no healthy upstream" {
		t.Errorf("a reply to a request that was not seen has changed: %q %s", g.clientHeaders, g.clientBody)
	}
}

func TestPluginThatHasNotStarted(t *testing.T) {
	var none *plugin
	h := newFakeHost(t)
	x := none.newExchange(h, 1)
	h.maps[RequestHeaders] = goodRequest
	if x.RequestHeaders(false) != Pause || len(h.replies) != 1 || h.replies[0].status != 500 {
		t.Errorf("replies %v", h.replies)
	}
	x.ResponseHeaders(false)
	x.ResponseBody(3, true)
	x.Done()
}
