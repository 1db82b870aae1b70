package envoy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// patience bounds every wait of these tests; nothing good comes near it.
const patience = 30 * time.Second

const hello = `{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"Say hello."}]}`

// helloStream is the same as a stream.
var helloStream = strings.Replace(hello, "{", `{"stream":true,`, 1)

// upstream is a stand-in that listens.
type upstream struct {
	*standin.Server
	URL string
}

func newUpstream(t *testing.T) upstream {
	t.Helper()
	server := standin.New(standin.Options{})
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		listener.CloseClientConnections() // an answer that still waits is of no use to anyone
		listener.Close()
	})
	return upstream{server, listener.URL}
}

// start starts Envoy in front of one stand-in.
func start(t *testing.T, o envoy.Options) (*envoy.Envoy, upstream) {
	t.Helper()
	up := newUpstream(t)
	o.Upstreams = []string{up.URL}
	return envoy.New(t, o), up
}

// client returns an HTTP client of one protocol that neither keeps
// connections for long nor follows redirects.
func client(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// reply is an answer that has been read.
type reply struct {
	Status int
	Header http.Header
	Body   string
}

// do sends one request with a key. A pair of headers with an empty value is
// removed.
func do(t *testing.T, c *http.Client, method, url string, body io.Reader, headers ...string) reply {
	t.Helper()
	r, err := try(t.Context(), c, method, url, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return r
}

func try(ctx context.Context, c *http.Client, method, url string, body io.Reader, headers ...string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("authorization", "Bearer sk-ant-of-the-client")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	return send(c, req)
}

func send(c *http.Client, req *http.Request) (reply, error) {
	resp, err := c.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, fmt.Errorf("after %s and %q: %w", resp.Status, text, err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}, nil
}

func chat(t *testing.T, c *http.Client, e *envoy.Envoy, body string, headers ...string) reply {
	t.Helper()
	return do(t, c, http.MethodPost, e.URL+"/openai/v1/chat/completions", strings.NewReader(body), headers...)
}

// errorOf reads OpenAI's error envelope.
type errorOf struct {
	Error struct {
		Message string
		Type    string
		Param   *string
		Code    *string
	}
}

// wantError fails the test unless the reply is an error of OpenAI's shape.
func wantError(t *testing.T, r reply, status int, kind string) {
	t.Helper()
	var e errorOf
	decoder := json.NewDecoder(strings.NewReader(r.Body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		t.Errorf("not an error of OpenAI's shape: %v: %d %q", err, r.Status, r.Body)
		return
	}
	if r.Status != status || e.Error.Type != kind || e.Error.Message == "" {
		t.Errorf("got %d %q, want %d %s", r.Status, r.Body, status, kind)
	}
	if got := r.Header.Get("content-type"); got != "application/json" {
		t.Errorf("content-type %q of an error", got)
	}
}

func wantAnswer(t *testing.T, r reply) {
	t.Helper()
	if r.Status != 200 || !strings.Contains(r.Body, `"object":"chat.completion"`) {
		t.Errorf("not an answer: %d %q", r.Status, r.Body)
	}
}

// protocols runs a test over HTTP/1.1 and over HTTP/2.
func protocols(t *testing.T, test func(t *testing.T, c *http.Client)) {
	for _, http2 := range []bool{false, true} {
		name := map[bool]string{false: "http1", true: "http2"}[http2]
		t.Run(name, func(t *testing.T) { test(t, client(t, http2)) })
	}
}

// long makes a request whose body is exactly so many bytes.
func long(size int) io.Reader {
	head, end := hello[:strings.Index(hello, "Say hello.")], `."}]}`
	return io.MultiReader(strings.NewReader(head), io.LimitReader(letters{}, int64(size-len(head)-len(end))), strings.NewReader(end))
}

// letters reads as the letter a for ever.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte("a"), len(p)))
	return len(p), nil
}

// quiet takes the complaints of test servers about clients that go away.
var quiet = log.New(io.Discard, "", 0)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
