package main

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestHeadersAddedWhileTheBodyComes: a filter in front may put some on the request,
// or change them, while ours holds it.
func TestHeadersAddedWhileTheBodyComes(t *testing.T) {
	g := newGateway(t, "")
	g.sendHeaders(append(slices.Clone(goodRequest), [2]string{"x-ezat-session", "first"}), false)
	g.sendBody(chatBody[:9], false)
	if g.x.requestHeaders != nil || g.x.key != "" || g.x.session != "" {
		t.Error("the headers are kept while the body comes")
	}
	held := without(without(g.h.maps[RequestHeaders], "authorization"), "x-ezat-session")
	g.h.maps[RequestHeaders] = append(held, [2]string{"Authorization", "Bearer other-key"}, [2]string{"cookie", "a=b"}, [2]string{"x-api-key", "none"},
		[2]string{"x-ezat-session", "second"}, [2]string{"x-forwarded-host", "evil.test"}, [2]string{"x-added", "yes"})
	g.sendBody(chatBody[9:], true)
	for name, want := range map[string]string{"authorization": "", "cookie": "", "x-api-key": "other-key", "x-ezat-session": "second",
		"x-forwarded-host": "", "x-added": "yes"} {
		if got := headerOf(g.upHeaders, name); got != want {
			t.Errorf("%s goes up as %q, want %q", name, got, want)
		}
	}
	g.answer(200, message)
	g.done()
	if g.x.requestHeaders != nil || g.x.key != "" {
		t.Error("the headers are kept behind the request")
	}
	g = newGateway(t, "")
	g.sendHeaders(goodRequest, false)
	g.h.maps[RequestHeaders] = without(g.h.maps[RequestHeaders], "authorization")
	g.sendBody(chatBody, true)
	g.done()
	g.wantUpstreamUntouched()
	g.wantError(401)
	g = newGateway(t, `{"upstream":{"credentials":"gateway"}}`)
	g.sendHeaders(goodRequest, false)
	g.h.maps[RequestHeaders] = nil // a host that will not show them
	g.sendBody(chatBody, true)
	g.done()
	g.wantUpstreamUntouched()
	g.wantError(500)
}

// TestHostThatRefusesAReply: nothing else can end the request.
func TestHostThatRefusesAReply(t *testing.T) {
	for name, send := range map[string]func(g *gateway){
		"headers":  func(g *gateway) { g.sendHeaders(without(goodRequest, "authorization"), false) },
		"body":     func(g *gateway) { g.chat("{") },
		"trailers": func(g *gateway) { g.sendHeaders(goodRequest, false); g.sendBody("{", false); g.sendTrailers() },
		"answer": func(g *gateway) {
			g.chat(chatBody)
			g.answerHeaders(true, [2]string{":status", "500"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "")
			g.h.refuse = "reply"
			send(g)
			if !g.cut {
				t.Errorf("the stream hangs: %q", g.h.events)
			}
			g.x.Done()
		})
	}
}

// TestUsageThatIsRefused is said once, not for each request.
func TestUsageThatIsRefused(t *testing.T) {
	g := newGateway(t, "")
	g.h.refuse = "property"
	g.chat(chatBody)
	g.answer(200, message)
	g.done()
	for id := range uint32(3) {
		more := newStream(t, g.x.plugin, g.h, 20+id)
		g.h.maps, g.h.bodies = [4][][2]string{}, [3][]byte{}
		more.chat(chatBody)
		more.answer(200, message)
		more.done()
	}
	lines := slices.DeleteFunc(slices.Clone(g.h.logs), func(line string) bool { return !strings.HasPrefix(line, "error: usage could not be recorded") })
	if len(lines) != 1 || g.h.counts["ezat.requests.ok"] != 4 {
		t.Errorf("log %q, counts %v", g.h.logs, g.h.counts)
	}
}

func TestForeignPathsPassUntouched(t *testing.T) {
	g := newGateway(t, "")
	headers := [][2]string{{":method", "POST"}, {":path", "/v1/messages"}, {"cookie", "a=b"}, {"x-stainless-os", "x"}}
	g.sendHeaders(headers, false)
	g.sendBody("anything", true)
	g.answer(418, "tea", [2]string{"set-cookie", "c=d"})
	g.answerTrailers([2]string{"x", "y"})
	g.done()
	if !slices.Equal(g.upHeaders, headers) || string(g.upBody) != "anything" {
		t.Errorf("the request has changed: %q %q", g.upHeaders, g.upBody)
	}
	if g.status() != "418" || string(g.clientBody) != "tea" || headerOf(g.clientHeaders, "set-cookie") != "c=d" {
		t.Errorf("the answer has changed: %q %q", g.clientHeaders, g.clientBody)
	}
	if len(g.h.events) != 0 {
		t.Errorf("the host was told %q", g.h.events)
	}
}

func TestPathsAndMethods(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"POST", "/openai/v1/responses", 404, ""},
		{"GET", "/openai/v1", 404, ""},
		{"DELETE", "/openai/v1/nothing", 404, ""},
		{"GET", "/openai/v1/chat/completions", 405, "POST"},
		{"post", "/openai/v1/chat/completions", 405, "POST"},
		{"OPTIONS", "/openai/v1/chat/completions?x", 405, "POST"},
		{"POST", "/openai/v1/models", 405, "GET"},
		{"HEAD", "/openai/v1/models/a/b", 405, "GET"},
		{"DELETE", "/openai/v1/models/a", 405, "GET"},
	} {
		g := newGateway(t, "")
		// Neither needs a key.
		g.sendHeaders([][2]string{{":method", c.method}, {":path", c.path}, {"x-request-id", "envoy-1"}}, true)
		g.done()
		g.wantError(c.status, `"type":"invalid_request_error"`, `"param":null,"code":null`)
		g.wantUpstreamUntouched()
		if got := headerOf(g.clientHeaders, "allow"); got != c.allow {
			t.Errorf("%s %s: allow %q", c.method, c.path, got)
		}
		if got := headerOf(g.clientHeaders, "request-id"); got != "envoy-1" {
			t.Errorf("request-id %q", got)
		}
	}
}

func TestRequestIsTranslated(t *testing.T) {
	g := newGateway(t, "")
	g.chat(chatBody, [][2]string{
		{"cookie", "session=1"}, {"openai-organization", "o"}, {"openai-beta", "b"}, {"x-stainless-lang", "go"},
		{"x-ezat-cache", "on"}, {"x-ezat-anything", "1"}, {"accept-encoding", "gzip, br"}, {"content-length", strconv.Itoa(len(chatBody))},
		{"x-api-key", "smuggled"}, {"api-key", "smuggled"}, {"proxy-authorization", "smuggled"}, {"anthropic-version", "1"}, {"anthropic-beta", "x"},
		{"anthropic-dangerous-direct-browser-access", "true"}, {"origin", "https://page.test"}, {"referer", "https://page.test"},
		{"sec-fetch-mode", "cors"}, {"if-none-match", "x"}, {"range", "bytes=0-1"}, {"x-envoy-upstream-rq-timeout-ms", "1"},
		{"x-envoy-upstream-rq-per-try-timeout-ms", "1"}, {"content-md5", "x"},
		{"user-agent", "OpenAI/Python"}, {"traceparent", "00-1-2-03"}, {"x-operator", "kept"},
	}...)
	want := [][2]string{
		{":authority", "gateway.test"}, {":method", "POST"}, {":path", "/v1/messages"}, {":scheme", "http"},
		{"accept-encoding", "identity"}, {"anthropic-version", "2023-06-01"}, {"content-length", strconv.Itoa(len(g.upBody))},
		{"content-type", "application/json"}, {"traceparent", "00-1-2-03"}, {"user-agent", "OpenAI/Python"},
		{"x-api-key", "key-1"}, {"x-envoy-upstream-rq-timeout-ms", "590000"}, {"x-operator", "kept"}, {"x-request-id", "envoy-1"},
	}
	got := slices.Clone(g.upHeaders)
	slices.SortFunc(got, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	if !slices.Equal(got, want) {
		t.Errorf("headers %q\nwant    %q", got, want)
	}
	if body := string(g.upBody); !strings.HasPrefix(body, `{"model":"claude-sonnet-5-5","max_tokens":64,`) || !strings.Contains(body, "secret words") {
		t.Errorf("body %s", body)
	}
	if !g.upEnded || g.requestHeld {
		t.Error("the request has not ended")
	}
	if n := len(g.h.observed["ezat.translate_us"]); n != 1 {
		t.Errorf("%d translations are measured", n)
	}
	g.answer(200, message)
	g.done()
}

func TestUpperCaseHeadersAreKnown(t *testing.T) {
	g := newGateway(t, "")
	g.sendHeaders([][2]string{{":method", "POST"}, {":path", "/openai/v1/chat/completions"}, {"Authorization", "bearer key-1"},
		{"Content-Length", "33554433"}}, false)
	g.done()
	g.wantError(413, `"code":"request_too_large"`)
}

func TestCredentials(t *testing.T) {
	for _, c := range []struct {
		mode, authorization string
		status              int
		apiKey, bearer      string
	}{
		{"client", "Bearer key-1", 0, "key-1", ""},
		{"client", "bearer  key-1 ", 0, "key-1", ""},
		{"client", "", 401, "", ""},
		{"client", "Bearer", 401, "", ""},
		{"client", "Bearer ", 401, "", ""},
		{"client", "Basic key-1", 401, "", ""},
		{"client", "key-1", 401, "", ""},
		{"client", "Bearer key-1 key-2", 401, "", ""},
		{"bearer", "BEARER key-1", 0, "", "Bearer key-1"},
		{"bearer", "", 401, "", ""},
		{"gateway", "Bearer key-1", 0, "", ""},
		{"gateway", "", 0, "", ""},
	} {
		g := newGateway(t, `{"upstream":{"credentials":"`+c.mode+`"}}`)
		headers := without(goodRequest, "authorization")
		if c.authorization != "" {
			headers = append(headers, [2]string{"authorization", c.authorization})
		}
		headers = append(headers, [2]string{"x-api-key", "smuggled"})
		g.sendHeaders(headers, false)
		if c.status != 0 {
			g.done()
			g.wantError(c.status, `"type":"invalid_request_error"`, `"code":"invalid_api_key"`)
			g.wantUpstreamUntouched()
			g.wantUsage(`"outcome":"refused"`, `"status":401`)
			continue
		}
		g.sendBody(chatBody, true)
		g.answer(200, message)
		g.done()
		if got := headerOf(g.upHeaders, "x-api-key"); got != c.apiKey {
			t.Errorf("%+v: x-api-key %q", c, got)
		}
		if got := headerOf(g.upHeaders, "authorization"); got != c.bearer {
			t.Errorf("%+v: authorization %q", c, got)
		}
	}
}

func TestRefusalsInTheHeaders(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers [][2]string
		end     bool
		status  int
		part    string
	}{
		{"too long", [][2]string{{"content-length", "33554433"}}, false, 413, `"code":"request_too_large"`},
		{"longer than numbers", [][2]string{{"content-length", "99999999999999999999999"}}, false, 413, `"code":"request_too_large"`},
		{"gzip", [][2]string{{"content-encoding", "gzip"}}, false, 400, "content-encoding: is not supported"},
		{"two encodings", [][2]string{{"content-encoding", "identity, br"}}, false, 400, "content-encoding: is not supported"},
		{"no body", nil, true, 400, "request body: "},
		{"length 0", [][2]string{{"content-length", "0"}}, false, 400, "request body: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGateway(t, "")
			g.sendHeaders(append(slices.Clone(goodRequest), c.headers...), c.end)
			g.done()
			g.wantError(c.status, c.part, `"type":"invalid_request_error"`)
			g.wantUpstreamUntouched()
			g.wantUsage(`"outcome":"refused"`)
			if slices.Contains(g.h.events, "read request") {
				t.Error("the body was read")
			}
		})
	}
}

func TestGoodEncodingsAndLengthsPass(t *testing.T) {
	for _, header := range [][2]string{{"content-encoding", "identity"}, {"content-encoding", " Identity "}, {"content-encoding", ""},
		{"content-length", "33554432"}, {"content-length", "nonsense"}} {
		g := newGateway(t, "")
		g.chat(chatBody, header)
		g.answer(200, message)
		g.done()
		if g.status() != "200" {
			t.Errorf("%q: %s", header, g.clientBody)
		}
	}
}

func TestEmptyBodies(t *testing.T) {
	for name, send := range map[string]func(g *gateway){
		"one empty piece":           func(g *gateway) { g.sendBody("", true) },
		"empty pieces":              func(g *gateway) { g.sendBody("", false); g.sendBody("", true) },
		"trailers only":             func(g *gateway) { g.sendTrailers([2]string{"a", "b"}) },
		"empty piece, then trailer": func(g *gateway) { g.sendBody("", false); g.sendTrailers([2]string{"a", "b"}) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "")
			g.sendHeaders(goodRequest, false)
			send(g)
			g.done()
			g.wantError(400, "request body: ")
			g.wantUpstreamUntouched()
		})
	}
}

func TestBodyInPieces(t *testing.T) {
	reference := newGateway(t, "")
	reference.chat(chatBody)
	for _, c := range []struct {
		name   string
		pieces []string
		trails bool
	}{
		{"in two", []string{chatBody[:30], chatBody[30:]}, false},
		{"byte by byte", strings.Split(chatBody, ""), false},
		{"last piece empty", []string{chatBody, ""}, false},
		{"first piece empty", []string{"", chatBody}, false},
		{"trailers", []string{chatBody}, true},
		{"two and trailers", []string{chatBody[:30], chatBody[30:]}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGateway(t, "")
			g.sendHeaders(goodRequest, false)
			for i, piece := range c.pieces {
				g.sendBody(piece, !c.trails && i == len(c.pieces)-1)
			}
			if c.trails {
				g.sendTrailers([2]string{"cookie", "a=b"}, [2]string{"x", "y"})
				if len(g.h.maps[RequestTrailers]) != 0 {
					t.Errorf("trailers went up: %q", g.h.maps[RequestTrailers])
				}
				if headerOf(g.upHeaders, "content-length") != "" {
					t.Error("a length in front of trailers")
				}
			}
			if !bytes.Equal(g.upBody, reference.upBody) || !g.upEnded {
				t.Errorf("%q %v", g.upBody, g.upEnded)
			}
			reads := 0
			for _, e := range g.h.events {
				if strings.HasPrefix(e, "read request") {
					reads++
				}
			}
			if reads != 1 {
				t.Errorf("the body was read %d times", reads)
			}
			g.answer(200, message)
			g.done()
		})
	}
}

func TestBodyOverTheLimit(t *testing.T) {
	piece := strings.Repeat(" ", 16<<20)
	g := newGateway(t, "")
	g.sendHeaders(goodRequest, false)
	g.sendBody(piece, false)
	g.sendBody(piece, false)
	if g.dead {
		t.Fatal("32 MB are refused")
	}
	g.sendBody("x", false)
	g.done()
	g.wantError(413, `"code":"request_too_large"`)
	g.wantUpstreamUntouched()
	for _, e := range g.h.events {
		if strings.HasPrefix(e, "read") {
			t.Errorf("too long a body was copied: %s", e)
		}
	}
	if g.h.counts["ezat.refusals.request_body"] != 1 || g.h.counts["ezat.requests.refused"] != 1 {
		t.Errorf("counts %v", g.h.counts)
	}
}

func TestBodyOfExactlyTheLimitPasses(t *testing.T) {
	g := newGateway(t, "")
	g.chat(chatBody + strings.Repeat(" ", requestBodyBytesMax-len(chatBody)))
	if g.dead || g.upBody == nil {
		t.Fatalf("refused: %s", g.clientBody)
	}
	g.answer(200, message)
	g.done()
}

func TestRefusalsInTheBody(t *testing.T) {
	for _, c := range []struct {
		body, part, field string
	}{
		{`{`, "request body: ", "request_body"},
		{`[]`, "request body: ", "request_body"},
		{`{"messages":[]}`, "model: ", "model"},
		{strings.Replace(chatBody, `"max_tokens":64`, `"n":2`, 1), "n: only 1 choice per request is supported", "n"},
	} {
		g := newGateway(t, "")
		g.chat(c.body)
		g.done()
		g.wantError(400, c.part, `"type":"invalid_request_error"`)
		g.wantUpstreamUntouched()
		g.wantUsage(`"outcome":"refused"`, `"status":400`, `"prompt_tokens":0`, `"completion_tokens":0`)
		if g.h.counts["ezat.refusals."+c.field] != 1 || g.h.counts["ezat.requests.refused"] != 1 {
			t.Errorf("%s: counts %v", c.body, g.h.counts)
		}
	}
}

func TestRefusalDoesNotCopyTheBodyBack(t *testing.T) {
	g := newGateway(t, "")
	g.chat(strings.Replace(chatBody, `"max_tokens":64`, `"n":2`, 1))
	for _, e := range g.h.events {
		if strings.HasPrefix(e, "replace request") || strings.HasPrefix(e, "append request") {
			t.Errorf("%s", e)
		}
	}
}

func TestUnknownModels(t *testing.T) {
	body := strings.Replace(chatBody, "anthropic/claude-sonnet-5-5", "gpt-9", 1)
	g := newGateway(t, `{"unknown_models":"refuse"}`)
	g.chat(body)
	g.done()
	g.wantError(404, "The model `gpt-9` does not exist", `"code":"model_not_found"`)
	g.wantUpstreamUntouched()

	g = newGateway(t, "")
	g.chat(body)
	if !bytes.Contains(g.upBody, []byte(`"model":"gpt-9"`)) {
		t.Errorf("an unknown model does not go up: %s", g.upBody)
	}
}

func TestConfigurationReachesTheRequest(t *testing.T) {
	g := newGateway(t, `{"route_prefix":"/a/b","upstream":{"authority":"api.test","messages_path":"/x/messages","anthropic_version":"2024-01-01"},
		"models":{"mine":{"upstream":"claude-x"}}}`)
	headers := append(without(goodRequest, ":path"), [2]string{":path", "/a/b/chat/completions?x=y"})
	g.sendHeaders(headers, false)
	g.sendBody(strings.Replace(chatBody, "anthropic/claude-sonnet-5-5", "mine", 1), true)
	for name, want := range map[string]string{":authority": "api.test", ":path": "/x/messages", "anthropic-version": "2024-01-01"} {
		if got := headerOf(g.upHeaders, name); got != want {
			t.Errorf("%s %q", name, got)
		}
	}
	if !bytes.HasPrefix(g.upBody, []byte(`{"model":"claude-x"`)) {
		t.Errorf("%s", g.upBody)
	}
	g.answer(200, message)
	g.done()
	if !bytes.Contains(g.clientBody, []byte(`"model":"mine"`)) {
		t.Errorf("%s", g.clientBody)
	}
}

func TestTimeouts(t *testing.T) {
	for body, want := range map[string]string{chatBody: "590000", streamBody: "0"} {
		g := newGateway(t, "")
		g.chat(body)
		if got := headerOf(g.upHeaders, timeoutHeader); got != want {
			t.Errorf("%s: %q", body, got)
		}
		// Headers that have gone cannot be told, and a wrong limit would cut streams.
		g = newGateway(t, `{"hold_headers":false}`)
		g.chat(body, [2]string{timeoutHeader, "1"})
		if got := headerOf(g.upHeaders, timeoutHeader); got != "" {
			t.Errorf("without held headers %s: %q", body, got)
		}
	}
}

func TestSessions(t *testing.T) {
	keyed := strings.Replace(chatBody, `"max_tokens"`, `"prompt_cache_key":"conversation 42","max_tokens"`, 1)
	for _, c := range []struct {
		name, config, body, header, want string
	}{
		{"none", "", chatBody, "", ""},
		{"header", "", chatBody, "s-1", "s-1"},
		{"key", "", keyed, "", "conversation%2042"},
		{"header wins", "", keyed, "s-1", "s-1"},
		{"headers have gone: header", `{"hold_headers":false}`, chatBody, "s-1", "s-1"},
		{"headers have gone: key", `{"hold_headers":false}`, keyed, "", ""},
	} {
		g := newGateway(t, c.config)
		headers := slices.Clone(goodRequest)
		if c.header != "" {
			headers = append(headers, [2]string{sessionHeader, c.header})
		}
		g.sendHeaders(headers, false)
		g.sendBody(c.body, true)
		got := headerOf(g.upHeaders, sessionHeader)
		if c.name == "key" && strings.ReplaceAll(got, "%20", " ") == "conversation 42" {
			got = c.want // a blank may stand in a header
		}
		if got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestHoldHeadersFalse(t *testing.T) {
	g := newGateway(t, `{"hold_headers":false}`)
	g.sendHeaders(goodRequest, false)
	if g.requestHeld || headerOf(g.upHeaders, ":path") != "/v1/messages" || headerOf(g.upHeaders, "x-api-key") != "key-1" {
		t.Errorf("the headers did not go ahead, rewritten: %q", g.upHeaders)
	}
	g.sendBody(chatBody[:20], false)
	if len(g.upBody) != 0 {
		t.Errorf("untranslated bytes went up: %q", g.upBody)
	}
	g.sendBody(chatBody[20:], true)
	if headerOf(g.upHeaders, "content-length") != "" {
		t.Error("a length after the headers have gone")
	}
	if !bytes.HasPrefix(g.upBody, []byte(`{"model":"claude-sonnet-5-5"`)) {
		t.Errorf("%s", g.upBody)
	}
	g.answer(200, message)
	g.done()

	g = newGateway(t, `{"hold_headers":false}`)
	g.sendHeaders(goodRequest, false)
	g.sendBody(`{"model":"x","n":2}`, true)
	g.done()
	g.wantError(400, "n: only 1")
	if len(g.upBody) != 0 {
		t.Errorf("a refused body went up: %q", g.upBody)
	}
}

// TestHostRefusesRequestCalls: what cannot be rewritten must not go up.
func TestHostRefusesRequestCalls(t *testing.T) {
	for _, event := range []string{"remove request authorization", "set request :path", "set request x-api-key", "set request anthropic-version",
		"set request accept-encoding", "set request x-envoy", "set request content-length", "read request", "replace request"} {
		t.Run(event, func(t *testing.T) {
			g := newGateway(t, "")
			g.h.refuse = event
			g.chat(chatBody)
			g.h.refuse = ""
			g.done()
			g.wantError(500, `"type":"server_error"`)
			g.wantUpstreamUntouched()
			g.wantUsage(`"outcome":"failed"`)
			if !slices.ContainsFunc(g.h.logs, func(line string) bool { return strings.HasPrefix(line, "error: ") }) {
				t.Errorf("log %q", g.h.logs)
			}
		})
	}
}

// TestHostAnswersFromWithinACall: Envoy answers 413 by itself while the new
// body is being written, when that is longer than its buffers.
func TestHostAnswersFromWithinACall(t *testing.T) {
	g := newGateway(t, "")
	big := strings.Replace(chatBody, "secret words", strings.Repeat("x", 100_000), 1)
	inside := 0
	g.h.onAppend = func() {
		inside++
		g.h.props["response.code_details"] = "request_payload_too_large"
		held := g.h.bodies[RequestBody]
		g.answerHeaders(false, [2]string{":status", "413"}, [2]string{"content-type", "text/plain"}, [2]string{"content-length", "17"})
		g.answerBody("Payload Too Large", true)
		g.h.bodies[RequestBody] = held
		g.dead = true
	}
	g.chat(big)
	g.done()
	if inside != 1 {
		t.Errorf("%d appends after the host had answered", inside)
	}
	g.wantError(413, `"code":"request_too_large"`)
	g.wantUpstreamUntouched()
	g.wantUsage(`"outcome":"refused"`, `"status":413`)
}

func TestRequestIDs(t *testing.T) {
	for _, c := range []struct{ envoy, upstream, want string }{
		{"envoy-1", "req_011CABC", "req_011CABC"},
		{"envoy-1", "", "envoy-1"},
		{"envoy-1", "bad id", "envoy-1"},
		{"envoy-1", "bad\"id", "envoy-1"},
		{"envoy-1", strings.Repeat("x", 129), "envoy-1"},
		{"envoy-1", strings.Repeat("x", 128), strings.Repeat("x", 128)},
		{"", "req_1", "req_1"},
		{"", "", "req_"},
		{"<script>", "", "req_"},
	} {
		g := newGateway(t, "")
		g.h.props["connection.id"] = "\x2a\x00\x00\x00\x00\x00\x00\x00"
		g.sendHeaders(append(without(goodRequest, "x-request-id"), [2]string{"x-request-id", c.envoy}), false)
		g.sendBody(chatBody, true)
		headers := [][2]string{{":status", "200"}, {"content-type", "application/json"}}
		if c.upstream != "" {
			headers = append(headers, [2]string{"request-id", c.upstream})
		}
		g.answerHeaders(false, headers...)
		g.answerBody(message, true)
		g.done()
		g.wantIDs()
		id := headerOf(g.clientHeaders, "request-id")
		if id != c.want && (c.want != "req_" || !strings.HasPrefix(id, "req_") || !strings.HasSuffix(id, "_2a_7")) {
			t.Errorf("%+v: %q", c, id)
		}
		if !bytes.HasPrefix(g.clientBody, []byte(`{"id":"chatcmpl-`+id+`"`)) {
			t.Errorf("%+v: %s", c, g.clientBody)
		}
	}
}
