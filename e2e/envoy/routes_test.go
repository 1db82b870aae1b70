package envoy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// TestAsShipped asks one Envoy, on which nothing but addresses is replaced.
func TestAsShipped(t *testing.T) {
	e, up := start(t, envoy.Options{Concurrency: 2})
	for name, test := range map[string]func(*testing.T, *envoy.Envoy, upstream){
		"paths": testPaths, "headers": testHeaders, "asked once": testAskedOnce, "usage": testUsageIsLogged,
		"ids": testIDs, "connections": testConnectionsStay,
		"bodies": testBodies, "stream": testStreamPasses,
	} {
		t.Run(name, func(t *testing.T) {
			up.Reset()
			test(t, e, up)
		})
	}
}

func testPaths(t *testing.T, e *envoy.Envoy, up upstream) {
	protocols(t, func(t *testing.T, c *http.Client) {
		for _, path := range []string{
			"/", "/v1/messages", "/openai", "/openai/v1x/models", "/openai/v2/models", "/OpenAI/v1/models",
			"/openai/v1/../../v1/messages", "/openai/v1/%2e%2e/%2E%2E/v1/messages", "//v1//messages",
		} {
			r := get404(t, c, e, path)
			if !strings.Contains(r.Body, "/openai/v1") {
				t.Errorf("%s: the answer does not say where the API is: %s", path, r.Body)
			}
		}
		// These reach the filter, which knows no such path; none may reach the upstream.
		for _, path := range []string{
			"/openai/v1", "/openai/v1/", "/openai/v1/messages", "/openai/v1/..%2f..%2fv1%2fmessages",
			"/openai/v1/chat%2Fcompletions", "/openai/v1/%5C..%5C..%5Cv1/messages",
		} {
			get404(t, c, e, path)
		}
		if sent := up.Requests(); len(sent) != 0 {
			t.Errorf("the upstream was asked for %s", sent[0].Path)
		}
		for path, want := range map[string]string{
			"/openai/v1/models?x=1":                              "/v1/models?limit=1000",
			"/openai/v1//models":                                 "/v1/models?limit=1000",
			"/openai/v1/./x/../models":                           "/v1/models?limit=1000",
			"/openai/v1/models/anthropic/claude-sonnet-5-5":      "/v1/models/claude-sonnet-5-5",
			"/openai/v1/models/anthropic%2Fclaude-sonnet-5-5":    "/v1/models/claude-sonnet-5-5",
			"/openai/v1/models/anthropic%2fclaude-sonnet-5-5?a=": "/v1/models/claude-sonnet-5-5",
		} {
			up.Reset()
			r := do(t, c, http.MethodGet, e.URL+path, nil)
			sent := up.Requests()
			if r.Status != 200 || len(sent) != 1 || sent[0].Path != want {
				t.Errorf("%s: %d %s; the upstream got %v", path, r.Status, r.Body, sent)
			}
		}
		up.Reset()
	})
}

// get404 asks for a path, as it is spelled, that nobody serves.
func get404(t *testing.T, c *http.Client, e *envoy.Envoy, path string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("authorization", "Bearer sk-ant-of-the-client")
	if strings.HasPrefix(path, "//") {
		req.URL.Path = path // an opaque part like this would be read as a host
	} else {
		req.URL.Opaque = path
	}
	r, err := send(c, req)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	wantError(t, r, 404, "invalid_request_error")
	return r
}

func testHeaders(t *testing.T, e *envoy.Envoy, up upstream) {
	protocols(t, func(t *testing.T, c *http.Client) {
		up.Script(func(*standin.Recorded) *standin.Response {
			r := standin.JSON(200, []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":2}}`))
			for _, key := range []string{"Alt-Svc", "Set-Cookie", "Strict-Transport-Security", "Server", "Nel", "Report-To", "Via",
				"X-Envoy-Upstream-Service-Time", "X-Envoy-Degraded", "X-Envoy-Ratelimited", "X-Envoy-Attempt-Count"} {
				r.Header.Set(key, "of-the-upstream")
			}
			return r
		})
		headers := []string{
			"x-forwarded-for", "192.0.2.1", "x-real-ip", "192.0.2.1", "forwarded", "for=192.0.2.1", "via", "1.1 proxy",
			"x-envoy-upstream-rq-timeout-ms", "1", "x-envoy-retry-on", "5xx", "x-envoy-max-retries", "3",
			"x_api_key", "of-someone-else", "x-request-id", "chosen-by-the-client",
		}
		for _, key := range []string{"x-original-url", "x-rewrite-url", "x-forwarded-host", "x-forwarded-prefix", "x-original-host",
			"x-http-method-override", "x-envoy-original-dst-host", "x-image-scheme", "x-egress-details", "true-client-ip"} {
			headers = append(headers, key, "chosen-by-the-client")
		}
		r := chat(t, c, e, hello, headers...)
		wantAnswer(t, r)
		for key, values := range r.Header {
			if slices.Contains(values, "of-the-upstream") {
				t.Errorf("the client got the upstream's %s", key)
			}
			if strings.HasPrefix(strings.ToLower(key), "x-envoy-") {
				t.Errorf("the client got %s", key)
			}
		}
		if r.Header.Get("server") != "ezat" {
			t.Errorf("server is %q", r.Header.Get("server"))
		}
		sent := up.Requests()
		if len(sent) != 1 {
			t.Fatalf("the upstream got %d requests", len(sent))
		}
		for key, values := range sent[0].Header {
			lower := strings.ToLower(key)
			if strings.HasPrefix(lower, "x-envoy-") || strings.Contains(lower, "_") || strings.HasPrefix(lower, "x-forwarded-") ||
				slices.Contains([]string{"x-real-ip", "forwarded", "via", "authorization"}, lower) || slices.Contains(values, "chosen-by-the-client") {
				t.Errorf("the upstream got %s: %q", key, values)
			}
		}
		if sent[0].Host != "api.anthropic.com" {
			t.Errorf("the upstream's host name is %q", sent[0].Host)
		}
		up.Reset()
	})
}

// testIDs: what Envoy answers past the filter has the request's ids, too.
func testIDs(t *testing.T, e *envoy.Envoy, up upstream) {
	protocols(t, func(t *testing.T, c *http.Client) {
		for _, path := range []string{"/", "/v1/messages", "/openai/v1/messages"} {
			r := get404(t, c, e, path)
			if id := r.Header.Get("request-id"); id == "" || r.Header.Get("x-request-id") != id {
				t.Errorf("%s: request-id %q, x-request-id %q", path, id, r.Header.Get("x-request-id"))
			}
		}
	})
}

// exchange sends a request on a connection and reads the answer.
func exchange(t *testing.T, conn io.Writer, r *bufio.Reader, text string) (status int, closes bool) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Close
}

// testConnectionsStay: a refused request leaves the connection to the next one; what
// is no HTTP, or could be read in two ways, does not.
func testConnectionsStay(t *testing.T, e *envoy.Envoy, up upstream) {
	const begin = "POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\n"
	with := func(body string) string { return fmt.Sprintf("%scontent-length: %d\r\n\r\n%s", begin, len(body), body) }
	conn := dial(t, e, "")
	r := bufio.NewReader(conn)
	for _, step := range []struct {
		text   string
		status int
	}{
		{with("{}"), 400}, {with(hello), 200}, {with(strings.Replace(hello, "{", `{"n":2,`, 1)), 400}, {with("{"), 400},
		{"GET /elsewhere HTTP/1.1\r\nhost: x\r\n\r\n", 404}, {with(hello), 200},
	} {
		if status, closes := exchange(t, conn, r, step.text); status != step.status || closes {
			t.Fatalf("%.80q: %d, closes: %v; want %d on a connection that stays", step.text, status, closes, step.status)
		}
	}
	up.Reset()
	for _, broken := range []string{
		begin + "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
		begin + "content-length: 4\r\ncontent-length: 5\r\n\r\nabcde",
		begin + "content-length: 4\r\ncontent-length: 4\r\n\r\nabcd",
		begin + "content-length: 4, 4\r\n\r\nabcd",
		begin + "content-length: +4\r\n\r\nabcd",
		begin + "transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		begin + "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
		begin + "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n",
		begin + "transfer-encoding: chunked\r\n\r\nzz\r\n\r\n",
		begin + "a : b\r\n\r\n",
		begin + "a: \x00\r\n\r\n",
	} {
		conn := dial(t, e, "")
		status, closes := exchange(t, conn, bufio.NewReader(conn), broken)
		if status != 400 && status != 501 || !closes {
			t.Errorf("%q: %d, closes: %v", broken, status, closes)
		}
	}
	if sent := up.Requests(); len(sent) != 0 {
		t.Errorf("the upstream got %d requests", len(sent))
	}
}

// testAskedOnce: an upstream that breaks off was still asked once.
func testAskedOnce(t *testing.T, e *envoy.Envoy, up upstream) {
	c := client(t, false)
	up.Script(func(*standin.Recorded) *standin.Response { return &standin.Response{Cut: true} })
	r := chat(t, c, e, hello)
	wantError(t, r, 503, "server_error")
	if sent := up.Requests(); len(sent) != 1 {
		t.Errorf("the upstream was asked %d times", len(sent))
	}
	for range 8 {
		chat(t, c, e, hello)
	}
	if sent := up.Requests(); len(sent) != 9 {
		t.Errorf("9 requests became %d", len(sent))
	}
	// The only address stays in use, whatever came from it.
	up.Reset()
	wantAnswer(t, chat(t, c, e, hello))
}

// TestSessions: requests of one conversation go to one address.
func TestSessions(t *testing.T) {
	ups := []upstream{newUpstream(t), newUpstream(t), newUpstream(t)}
	e := envoy.New(t, envoy.Options{Upstreams: []string{ups[0].URL, ups[1].URL, ups[2].URL}})
	c := client(t, false)
	served := func(body string, headers ...string) int {
		for _, up := range ups {
			up.Reset()
		}
		wantAnswer(t, chat(t, c, e, body, headers...))
		for i, up := range ups {
			if len(up.Requests()) == 1 {
				return i
			}
		}
		t.Fatal("no upstream was asked")
		return -1
	}
	used := map[int]bool{}
	for i := range 60 {
		session := fmt.Sprintf("conversation-%d", i)
		first := served(hello, "x-ezat-session", session)
		used[first] = true
		byKey := strings.Replace(hello, "{", `{"prompt_cache_key":"`+session+`",`, 1)
		for range 3 {
			if again := served(byKey); again != first {
				t.Errorf("%s went to %d, then to %d", session, first, again)
			}
		}
	}
	if len(used) != len(ups) {
		t.Errorf("60 conversations went to %d of %d addresses", len(used), len(ups))
	}
}
