package main

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func getRequest(path string) [][2]string {
	return [][2]string{{":method", "GET"}, {":path", path}, {":authority", "gateway.test"}, {"authorization", "Bearer key-1"},
		{"x-request-id", "envoy-1"}, {"cookie", "a=b"}}
}

func page(id, last string) string {
	return `{"data":[{"type":"model","id":"` + id + `","display_name":"X","created_at":"2026-01-01T00:00:00Z"}],"has_more":` +
		strconv.FormatBool(last != "") + `,"first_id":"` + id + `","last_id":"` + id + `"}`
}

func listGateway(t *testing.T, config string) *gateway {
	g := newGateway(t, config)
	g.h.props["xds.cluster_name"] = "anthropic"
	g.sendHeaders(getRequest("/openai/v1/models?limit=3"), true)
	return g
}

func TestModelList(t *testing.T) {
	for _, config := range []string{"", `{"hold_headers":false}`} {
		g := listGateway(t, config)
		if headerOf(g.upHeaders, ":path") != "/v1/models?limit=1000" || headerOf(g.upHeaders, "x-api-key") != "key-1" ||
			headerOf(g.upHeaders, "cookie") != "" || headerOf(g.upHeaders, "anthropic-version") != "2023-06-01" || !g.upEnded {
			t.Errorf("%q", g.upHeaders)
		}
		g.answer(200, page("claude-1", ""))
		g.done()
		if g.status() != "200" || headerOf(g.clientHeaders, "content-type") != "application/json" {
			t.Errorf("%q", g.clientHeaders)
		}
		g.wantLength()
		g.wantIDs()
		const want = `{"object":"list","data":[{"id":"anthropic/claude-1","object":"model","created":1767225600,"owned_by":"anthropic"}]}`
		if string(g.clientBody) != want {
			t.Errorf("%s", g.clientBody)
		}
		if _, ok := g.h.kept[usageProperty]; ok {
			t.Error("a list of models has no usage")
		}
	}
}

// TestModelsWithoutAName: behind the prefix nothing is left to ask for, or what
// would leave the models path.
func TestModelsWithoutAName(t *testing.T) {
	for _, c := range []struct{ config, path string }{
		{"", "/openai/v1/models/anthropic/"}, {"", "/openai/v1/models/anthropic%2F"},
		{`{"upstream":{"model_prefix":"a."}}`, "/openai/v1/models/a.."}, {`{"upstream":{"model_prefix":"a."}}`, "/openai/v1/models/a...%2Fx"},
	} {
		g := newGateway(t, c.config)
		g.sendHeaders(getRequest(c.path), true)
		g.done()
		g.wantUpstreamUntouched()
		g.wantError(404, `"code":"model_not_found"`, `"param":"model"`)
	}
}

// TestModelListKeepsNoHeaders: while the upstream thinks, and while pages are on
// their way.
func TestModelListKeepsNoHeaders(t *testing.T) {
	g := listGateway(t, "")
	if g.x.requestHeaders != nil || g.x.key != "" {
		t.Error("the request's headers are kept")
	}
	g.answer(200, page("claude-1", "more"))
	if g.x.answerHeaders != nil {
		t.Error("the answer's headers are kept")
	}
	g.h.maps[ResponseHeaders] = append(g.h.maps[ResponseHeaders], [2]string{"set-cookie", "late"})
	g.callout(200, page("claude-2", ""))
	g.done()
	if g.status() != "200" || headerOf(g.clientHeaders, "set-cookie") != "" {
		t.Errorf("%q", g.clientHeaders)
	}
}

func TestModelListOfSeveralPages(t *testing.T) {
	for _, c := range []struct{ config, cluster, authority, key string }{
		{"", "anthropic", "gateway.test", "x-api-key: key-1"},
		{`{"hold_headers":false}`, "anthropic", "gateway.test", "x-api-key: key-1"},
		{`{"upstream":{"cluster":"pages","authority":"api.test","credentials":"bearer"}}`, "pages", "api.test", "authorization: Bearer key-1"},
		{`{"upstream":{"credentials":"gateway"}}`, "anthropic", "gateway.test", ""},
	} {
		g := listGateway(t, c.config)
		g.answer(200, page("claude-1", "more"))
		if len(g.h.calls) != 1 || g.clientEnded {
			t.Fatalf("%d callouts", len(g.h.calls))
		}
		call := g.h.calls[0]
		want := [][2]string{{":method", "GET"}, {":path", "/v1/models?limit=1000&after_id=claude-1"}, {":authority", c.authority},
			{"anthropic-version", "2023-06-01"}, {"accept-encoding", "identity"}}
		if name, value, ok := strings.Cut(c.key, ": "); ok {
			want = append(want, [2]string{name, value})
		}
		if call.cluster != c.cluster || call.timeoutMs != modelPageTimeoutMs || !slices.Equal(call.headers, want) {
			t.Errorf("%s: %+v", c.config, call)
		}
		g.callout(200, page("claude-2", "more"))
		g.callout(200, page("claude/3 x", "more"))
		if path := headerOf(g.h.calls[2].headers, ":path"); path != "/v1/models?limit=1000&after_id=claude%2F3%20x" {
			t.Errorf("%s", path)
		}
		g.callout(200, page("claude-4", ""))
		g.done()
		if g.status() != "200" || !g.clientEnded || g.h.resumed != 1 {
			t.Errorf("%q, resumed %d times", g.clientHeaders, g.h.resumed)
		}
		g.wantLength()
		for _, id := range []string{"claude-1", "claude-2", "claude/3 x", "claude-4"} {
			if !bytes.Contains(g.clientBody, []byte(`"id":"anthropic/`+id+`"`)) {
				t.Errorf("%s is not in %s", id, g.clientBody)
			}
		}
	}
}

func TestModelListHasConfiguredNames(t *testing.T) {
	g := listGateway(t, `{"models":{"mine":{"upstream":"claude-1"},"anthropic/claude-1":{}}}`)
	g.answer(200, page("claude-1", ""))
	if n := bytes.Count(g.clientBody, []byte(`"id":"mine"`)); n != 1 {
		t.Errorf("mine %d times in %s", n, g.clientBody)
	}
	if n := bytes.Count(g.clientBody, []byte(`"id":"anthropic/claude-1"`)); n != 1 {
		t.Errorf("claude-1 %d times in %s", n, g.clientBody)
	}
}

func TestModelListFaults(t *testing.T) {
	first := page("claude-1", "more")
	for _, c := range []struct {
		name   string
		run    func(g *gateway)
		status int
	}{
		{"not JSON", func(g *gateway) { g.answer(200, "<html>") }, 500},
		{"no list", func(g *gateway) { g.answer(200, message) }, 500},
		{"404: models_path leads nowhere", func(g *gateway) { g.answer(404, "{}") }, 500},
		{"401", func(g *gateway) { g.answer(401, "{}") }, 401},
		{"529", func(g *gateway) { g.answer(529, "{}") }, 503},
		{"page not JSON", func(g *gateway) { g.answer(200, first); g.callout(200, "<html>") }, 500},
		{"page 429", func(g *gateway) { g.answer(200, first); g.callout(429, "{}") }, 429},
		{"page 302", func(g *gateway) { g.answer(200, first); g.callout(302, "") }, 500},
		{"page fails", func(g *gateway) { g.answer(200, first); g.callout(0, "") }, 503},
		{"page empty", func(g *gateway) { g.answer(200, first); g.callout(200, "") }, 500},
		{"page too long", func(g *gateway) { g.answer(200, first); g.callout(200, strings.Repeat(" ", answerBodyBytesMax+1)) }, 500},
		{"no cluster", func(g *gateway) { g.h.refuse = "call"; g.answer(200, first) }, 500},
		{"endless", func(g *gateway) {
			g.answer(200, first)
			for i := 2; !g.clientEnded; i++ {
				if i > 1000 {
					t.Fatal("the pages have no limit")
				}
				g.callout(200, page("claude-"+strconv.Itoa(i), "more"))
			}
		}, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := listGateway(t, "")
			c.run(g)
			g.done()
			g.wantError(c.status)
		})
	}
}

func TestClientLeavesDuringPages(t *testing.T) {
	g := listGateway(t, "")
	g.answer(200, page("claude-1", "more"))
	g.done()
	g.callout(200, page("claude-2", ""))
	if g.h.resumed != 0 || g.clientHeaders != nil {
		t.Error("a stream that has gone was answered")
	}
	if g.x.key != "" {
		t.Error("the key is kept")
	}
}

func TestModelListWithTrailers(t *testing.T) {
	g := listGateway(t, "")
	g.answerHeaders(false, [2]string{":status", "200"})
	g.answerBody(page("claude-1", "more"), false)
	g.answerTrailers([2]string{"a", "b"})
	g.callout(200, page("claude-2", ""))
	g.done()
	if !bytes.Contains(g.clientBody, []byte("claude-2")) {
		t.Errorf("%s", g.clientBody)
	}
}

func TestOneModel(t *testing.T) {
	for _, c := range []struct{ config, path, asked, up string }{
		{"", "claude-1", "claude-1", "/v1/models/claude-1"},
		{"", "anthropic/claude-1", "anthropic/claude-1", "/v1/models/claude-1"},
		{"", "anthropic%2Fclaude-1", "anthropic/claude-1", "/v1/models/claude-1"},
		{"", "other/claude-1", "other/claude-1", "/v1/models/other%2Fclaude-1"},
		{"", "a%20b%3Fc", "a b?c", "/v1/models/a%20b%3Fc"},
		{`{"models":{"mine":{"upstream":"claude-x"}},"upstream":{"models_path":"/m"}}`, "mine", "mine", "/m/claude-x"},
		{`{"upstream":{"model_prefix":""}}`, "anthropic/claude-1", "anthropic/claude-1", "/v1/models/anthropic%2Fclaude-1"},
	} {
		g := newGateway(t, c.config)
		g.sendHeaders(getRequest("/openai/v1/models/"+c.path), true)
		if got := headerOf(g.upHeaders, ":path"); got != c.up {
			t.Errorf("%s: up %q", c.path, got)
		}
		g.answer(200, `{"type":"model","id":"claude-1","display_name":"X","created_at":"2026-01-01T00:00:00Z"}`)
		g.done()
		want := `{"id":"` + c.asked + `","object":"model","created":1767225600,"owned_by":"anthropic"}`
		if g.status() != "200" || string(g.clientBody) != want {
			t.Errorf("%s: %s", c.path, g.clientBody)
		}
	}
}

func TestOneModelFaults(t *testing.T) {
	for _, c := range []struct {
		config, path string
		up           bool
	}{
		{"", "gpt-9", true},
		{"", "..", false},
		{"", "%2e%2e/x", false},
		{"", "a%00b", false},
		{"", "%ff", false},
		{"", strings.Repeat("x", modelNameBytesMax+1), false},
		{`{"unknown_models":"refuse"}`, "gpt-9", false},
	} {
		g := newGateway(t, c.config)
		g.sendHeaders(getRequest("/openai/v1/models/"+c.path), true)
		if c.up {
			g.answer(404, `{"type":"error","error":{"type":"not_found_error","message":"model: gpt-9"}}`)
		} else {
			g.wantUpstreamUntouched()
		}
		g.done()
		g.wantError(404, `"param":"model","code":"model_not_found"`, "does not exist")
	}
	g := newGateway(t, "")
	g.sendHeaders(getRequest("/openai/v1/models/claude-1"), true)
	g.answer(200, `{"type":"list"}`)
	g.done()
	g.wantError(500)
}

func TestModelsNeedAKey(t *testing.T) {
	for _, path := range []string{"/openai/v1/models", "/openai/v1/models/x"} {
		g := newGateway(t, "")
		g.sendHeaders(without(getRequest(path), "authorization"), true)
		g.done()
		g.wantError(401, `"code":"invalid_api_key"`)
		g.wantUpstreamUntouched()

		g = newGateway(t, `{"upstream":{"credentials":"gateway"}}`)
		g.sendHeaders(without(getRequest(path), "authorization"), true)
		if g.upHeaders == nil {
			t.Error("a key is demanded")
		}
		g.answer(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
		g.done()
		g.wantError(500)
	}
}

func TestGetWithABody(t *testing.T) {
	g := newGateway(t, "")
	g.sendHeaders(append(getRequest("/openai/v1/models/x"), [2]string{"content-length", "4"}, [2]string{"content-type", "a/b"}), false)
	g.sendBody("body", false)
	g.sendTrailers([2]string{"a", "b"})
	if len(g.upBody) != 0 || headerOf(g.upHeaders, "content-length") != "" || len(g.h.maps[RequestTrailers]) != 0 {
		t.Errorf("%q %q", g.upHeaders, g.upBody)
	}
	if headerOf(g.upHeaders, timeoutHeader) != "590000" {
		t.Errorf("%q", g.upHeaders)
	}
}
