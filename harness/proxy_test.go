package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience bounds every wait of these tests; nothing that works comes near it.
const patience = 30 * time.Second

// proxied is a guest between a real client and a real upstream.
type proxied struct {
	*httptest.Server
	host   *Host
	client *http.Client

	mu     sync.Mutex
	faults []error
}

// newProxy serves a script in front of an upstream.
func newProxy(t *testing.T, script string, upstream http.Handler, change func(*Config), options ProxyOptions) *proxied {
	t.Helper()
	p := &proxied{}
	config := Config{GoWASI: true, PluginConfig: script, Clock: RealClock()}
	if upstream != nil {
		up := httptest.NewServer(upstream)
		t.Cleanup(up.Close)
		tr := NewTransport()
		t.Cleanup(tr.CloseIdleConnections)
		config.Clusters = map[string]Cluster{"up": {Transport: tr, Authority: up.Listener.Addr().String()}}
	}
	if change != nil {
		change(&config)
	}
	h, err := New(t.Context(), guestModule(t), config)
	want(t, err)
	p.host = h
	options.Log = func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = append(p.faults, err)
	}
	p.Server = httptest.NewServer(h.Proxy(options))
	tr := NewTransport()
	p.client = &http.Client{Transport: tr, Timeout: patience}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		p.Server.Close()
		want(t, h.Close(context.Background()))
	})
	return p
}

func (p *proxied) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.faults)
}

// fetch sends a request and reads the whole answer.
func (p *proxied) fetch(t *testing.T, method, path string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, body)
	want(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := p.client.Do(req)
	want(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	want(t, err)
	return resp, string(text)
}

// echo answers with what it got.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Got", fmt.Sprintf("%s %s %s %d", r.Method, r.RequestURI, r.Host, len(body)))
	for name, values := range r.Trailer {
		w.Header().Set("X-Trailer-"+name, strings.Join(values, ","))
	}
	w.Header().Set("X-Names", fmt.Sprintf("[%s] [%s] [%s] %v", r.Header.Get("Connection"), r.Header.Get("Keep-Alive"),
		r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Request-Id") != ""))
	fmt.Fprintf(w, "%s", body)
})

// TestProxyCarries takes requests of all kinds to the upstream and back.
func TestProxyCarries(t *testing.T) {
	p := newProxy(t, "", echo, nil, ProxyOptions{Prefix: "/in"})
	for name, test := range map[string]struct {
		method, path string
		body         io.Reader
		want         string
	}{
		"no body":        {"GET", "/in/x?a=%20b", nil, "GET /in/x?a=%20b HOST 0"},
		"content-length": {"POST", "/in/y", strings.NewReader("hello"), "POST /in/y HOST 5"},
		"chunked":        {"PUT", "/in", io.MultiReader(strings.NewReader("hello"), strings.NewReader("!")), "PUT /in HOST 6"},
		"escapes":        {"GET", "/in/a%2Fb", nil, "GET /in/a%2Fb HOST 0"},
		"query at once":  {"GET", "/in?a", nil, "GET /in?a HOST 0"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := p.fetch(t, test.method, test.path, test.body, "Keep-Alive", "x")
			wanted := strings.Replace(test.want, "HOST", p.Listener.Addr().String(), 1)
			if got := resp.Header.Get("X-Got"); got != wanted || resp.StatusCode != 200 {
				t.Errorf("upstream got %q (%d)", got, resp.StatusCode)
			}
			if got := resp.Header.Get("X-Names"); got != "[] [] [http] true" {
				t.Errorf("headers upstream: %s", got)
			}
			if test.body != nil && !strings.HasPrefix(body, "hello") {
				t.Errorf("body %q", body)
			}
		})
	}
	t.Run("other paths", func(t *testing.T) {
		for _, path := range []string{"/", "/other", "/inside", "/in2/x"} {
			if resp, body := p.fetch(t, "GET", path, nil); resp.StatusCode != 404 || body != "" {
				t.Errorf("%s: %d %q", path, resp.StatusCode, body)
			}
		}
	})
	t.Run("HEAD", func(t *testing.T) {
		if resp, body := p.fetch(t, "HEAD", "/in", nil); resp.StatusCode != 200 || body != "" {
			t.Errorf("%d %q", resp.StatusCode, body)
		}
	})
	t.Run("large headers", func(t *testing.T) {
		if resp, _ := p.fetch(t, "GET", "/in", nil, "X-Big", strings.Repeat("x", 70000)); resp.StatusCode != 431 {
			t.Errorf("%d", resp.StatusCode)
		}
		if resp, _ := p.fetch(t, "GET", "/in", nil, slices.Repeat([]string{"X-Many", "x"}, 100)...); resp.StatusCode != 431 {
			t.Errorf("%d", resp.StatusCode)
		}
	})
	if said := p.said(); said != "[]" {
		t.Errorf("said %s", said)
	}
}

// TestProxyTrailers takes trailers both ways.
func TestProxyTrailers(t *testing.T) {
	p := newProxy(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Trailer", "X-Down")
		fmt.Fprintf(w, "got %s", r.Trailer.Get("X-Up"))
		w.Header().Set("X-Down", "2")
	}), nil, ProxyOptions{})
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.URL, io.MultiReader(strings.NewReader("hello")))
	want(t, err)
	req.Trailer = http.Header{"X-Up": {"1"}}
	resp, err := p.client.Do(req)
	want(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	want(t, err)
	if string(body) != "got 1" || resp.Trailer.Get("X-Down") != "2" {
		t.Errorf("body %q, trailers %v", body, resp.Trailer)
	}
	wantLine(t, p.host, "request_trailers 1")
	wantLine(t, p.host, "response_trailers 1")
}

// TestProxyStreams shows that a piece reaches the client while the upstream is
// still writing: the upstream waits for the client to say that it has it.
func TestProxyStreams(t *testing.T) {
	seen := make(chan string)
	p := newProxy(t, "response_headers: pause", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 5 {
			fmt.Fprintf(w, "event %d\n", i)
			w.(http.Flusher).Flush()
			select {
			case got := <-seen:
				if got != fmt.Sprintf("event %d\n", i) {
					panic(http.ErrAbortHandler)
				}
			case <-r.Context().Done():
				return
			}
		}
	}), nil, ProxyOptions{})
	resp, err := p.client.Get(p.URL)
	want(t, err)
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for range 5 {
		line, err := r.ReadString('\n')
		want(t, err)
		seen <- line
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// TestProxyLargeBodies takes 33 MB through, held as a whole, with and without
// content-length, and back.
func TestProxyLargeBodies(t *testing.T) {
	p := newProxy(t, "request_headers: pause", echo, func(c *Config) { c.BufferBytesMax = 64 << 20 }, ProxyOptions{})
	body := bytes.Repeat([]byte("0123456789abcdef"), 33<<20/16+1)
	for name, reader := range map[string]io.Reader{"content-length": bytes.NewReader(body), "chunked": io.MultiReader(bytes.NewReader(body))} {
		t.Run(name, func(t *testing.T) {
			if _, got := p.fetch(t, "POST", "/", reader); got != string(body) {
				t.Errorf("%d bytes came back, of %d", len(got), len(body))
			}
		})
	}
}

// TestProxyTooLarge shows Envoy's own 413 while the client is still sending, and
// that the connection is not used again.
func TestProxyTooLarge(t *testing.T) {
	p := newProxy(t, "request_headers: pause\nrequest_body: pause", echo, func(c *Config) { c.BufferBytesMax = 100 << 10 }, ProxyOptions{})
	conn, err := net.Dial("tcp", p.Listener.Addr().String())
	want(t, err)
	defer conn.Close()
	want(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 100000000\r\n\r\n%s", strings.Repeat("x", 200<<10))
	want(t, err)
	// The rest of the body is not even sent.
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	want(t, err)
	text, err := io.ReadAll(resp.Body)
	want(t, err)
	if resp.StatusCode != 413 || string(text) != "Payload Too Large" || !resp.Close {
		t.Errorf("%d %q, close %v", resp.StatusCode, text, resp.Close)
	}
}

// TestProxyEarlyReply shows a reply of the guest to a client that goes on
// sending: the client gets it.
func TestProxyEarlyReply(t *testing.T) {
	p := newProxy(t, `request_headers: local 401 "" denied`, echo, nil, ProxyOptions{})
	resp, body := p.fetch(t, "POST", "/", bytes.NewReader(make([]byte, 8<<20)))
	if resp.StatusCode != 401 || body != "denied" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}

// TestProxyClientLeaves shows that a client that goes ends the upstream request,
// in every phase, and that the guest is told.
func TestProxyClientLeaves(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/streams" {
			fmt.Fprint(w, "one")
			w.(http.Flusher).Flush()
		}
		began <- struct{}{}
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			<-r.Context().Done()
		}
		ended <- struct{}{}
	})
	for name, test := range map[string]struct{ path, body string }{
		"waiting":         {"/waits", ""},
		"in the response": {"/streams", ""},
		"in the request":  {"/waits", "POST"},
	} {
		t.Run(name, func(t *testing.T) {
			logged := make(chan Access, 1)
			p := newProxy(t, "", upstream, func(c *Config) { c.AccessLog = func(a Access) { logged <- a } }, ProxyOptions{})
			conn, err := net.Dial("tcp", p.Listener.Addr().String())
			want(t, err)
			if test.body == "" {
				_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nhost: test\r\n\r\n", test.path)
			} else {
				_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\nsome", test.path)
			}
			want(t, err)
			await(t, began)
			want(t, conn.Close())
			await(t, ended)
			select {
			case a := <-logged:
				if a.Details != "downstream_remote_disconnect" {
					t.Errorf("%+v", a)
				}
			case <-time.After(patience):
				t.Fatal("nothing was logged")
			}
			awaitLine(t, p.host, "delete") // which comes behind the access log
		})
	}
}

// awaitLine waits for what the guest logs while the test already goes on.
func awaitLine(t *testing.T, h *Host, line string) {
	t.Helper()
	for end := time.Now().Add(patience); !slices.Contains(messages(h), line) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	wantLine(t, h, line)
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("it did not happen")
	}
}

// TestProxyUpstreamFails shows Envoy's own replies through the guest, and a
// client whose answer is cut.
func TestProxyUpstreamFails(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	want(t, err)
	want(t, dead.Close())
	hijacked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		switch r.URL.Path {
		case "/half":
			fmt.Fprint(buf, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
		case "/garbage":
			fmt.Fprint(buf, "What?\r\n\r\n")
		}
		_ = buf.Flush()
	})
	p := newProxy(t, "response_headers: property response code_details", hijacked, func(c *Config) {
		c.Clusters["dead"] = Cluster{Transport: c.Clusters["up"].Transport, Authority: dead.Addr().String()}
		c.Clusters["none"] = Cluster{}
		c.Routes = []Route{{Prefix: "/dead", Cluster: "dead"}, {Prefix: "/none", Cluster: "none"}, {Prefix: "/", Cluster: "up"}}
	}, ProxyOptions{})
	for path, details := range map[string]string{
		"/dead":    "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}",
		"/nothing": "upstream_reset_before_response_started{connection_termination}",
		"/garbage": "upstream_reset_before_response_started{connection_termination}",
		"/none":    "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}",
	} {
		resp, body := p.fetch(t, "GET", path, nil)
		if resp.StatusCode != 503 || !strings.HasPrefix(body, "upstream connect error or disconnect/reset before headers. reset reason: ") {
			t.Errorf("%s: %d %q", path, resp.StatusCode, body)
		}
		found := false
		for _, m := range messages(p.host) {
			found = found || strings.Contains(m, brief64(details))
		}
		if !found {
			t.Errorf("%s: details %s are not in %q", path, details, messages(p.host))
		}
	}
	resp, err := p.client.Get(p.URL + "/half")
	want(t, err)
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil || string(body) != "half" {
		t.Errorf("half an answer: %q, %v", body, err)
	}
}

// brief64 is how the script guest logs a long value.
func brief64(s string) string {
	if len(s) <= 64 {
		return s
	}
	return s[:30] + "…" + fmt.Sprint(len(s)) + "…" + s[len(s)-30:]
}

// TestProxyTimeout shows the guest's own bound on the upstream's time.
func TestProxyTimeout(t *testing.T) {
	p := newProxy(t, "request_headers@/slow: map 0 set x-envoy-upstream-rq-timeout-ms 50", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
		if v := r.Header.Get("x-envoy-upstream-rq-timeout-ms"); v != "" {
			w.WriteHeader(500)
		}
	}), nil, ProxyOptions{})
	if resp, body := p.fetch(t, "GET", "/slow", nil); resp.StatusCode != 504 || body != "upstream request timeout" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	if resp, _ := p.fetch(t, "GET", "/fast", nil); resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
}

// TestProxyGuestFails shows that streams of a dead VM end at once, though nothing
// more happens on them.
func TestProxyGuestFails(t *testing.T) {
	began, release := make(chan struct{}, 2), make(chan struct{})
	var count atomic.Int32
	p := newProxy(t, "request_headers@/bad: panic gone\nrequest_headers@/held: pause", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		began <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}), nil, ProxyOptions{})
	defer close(release)
	results := make(chan string, 2)
	for _, path := range []string{"/waits", "/held"} {
		go func() {
			resp, err := p.client.Get(p.URL + path)
			if err != nil {
				results <- err.Error()
				return
			}
			resp.Body.Close()
			results <- fmt.Sprint(path, " ", resp.StatusCode)
		}()
	}
	await(t, began)
	deadline := time.Now().Add(patience)
	for strings.Count(strings.Join(messages(p.host), "\n"), "request_headers 1") < 2 {
		if time.Now().After(deadline) {
			t.Fatal("the held request does not come")
		}
		time.Sleep(time.Millisecond)
	}
	if resp, _ := p.fetch(t, "GET", "/bad", nil); resp.StatusCode != 503 {
		t.Errorf("the failing request: %d", resp.StatusCode)
	}
	for range 2 {
		select {
		case got := <-results:
			if !strings.HasSuffix(got, " 503") {
				t.Errorf("another stream on the VM: %s", got)
			}
		case <-time.After(patience):
			t.Fatal("a stream of a dead VM does not end")
		}
	}
}

// TestProxyWrongLength shows that an answer whose content-length is not true is
// told.
func TestProxyWrongLength(t *testing.T) {
	for name, test := range map[string]struct{ script, says string }{
		"longer":  {`response_body#1: buffer 1 set max 0 more`, "longer than its content-length"},
		"shorter": {`response_body#1: buffer 1 set 0 1 ""`, "has 4 bytes, its content-length says 5"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, test.script, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "5")
				fmt.Fprint(w, "hello")
			}), nil, ProxyOptions{})
			resp, err := p.client.Get(p.URL)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil && name == "shorter" {
				t.Error("the client takes it")
			}
			if said := p.said(); !strings.Contains(said, test.says) {
				t.Errorf("said %s", said)
			}
		})
	}
}

// TestProxyBlocked shows a request that is stopped as a whole: reading stops at
// the limit, and goes on when a callout resumes the request.
func TestProxyBlocked(t *testing.T) {
	release := make(chan struct{})
	p := newProxy(t, `request_headers: pause; call callout 0 "" :method GET :path / :authority c
http_call_response: effective; resume 0`, echo, func(c *Config) {
		c.NoHeadersStopIteration, c.BufferBytesMax = true, 200<<10
		c.Routes = []Route{{Prefix: "/", Cluster: "up"}}
		c.Clusters["callout"] = Cluster{Transport: transport(func(*http.Request) (*http.Response, error) {
			<-release
			return respondWith(200, strings.NewReader("")), nil
		})}
	}, ProxyOptions{})
	body := bytes.Repeat([]byte("x"), 4<<20)
	go func() {
		defer close(release)
		for deadline := time.Now().Add(patience); !p.blocked(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Error("reading does not stop")
				return
			}
		}
	}()
	if _, got := p.fetch(t, "POST", "/", bytes.NewReader(body)); got != string(body) {
		t.Errorf("%d bytes came back", len(got))
	}
}

// blocked says whether a stream's client has to stop sending.
func (p *proxied) blocked() bool {
	blocked := false
	w := p.host.workers[0]
	w.do(func() {
		for s := range w.vm.streams {
			blocked = blocked || s.request.blocked
		}
	})
	return blocked
}

// TestProxyClientDoesNotRead shows that a client that takes nothing of an endless
// answer is cut off, and the upstream with it; what waits for it is bounded.
func TestProxyClientDoesNotRead(t *testing.T) {
	ended := make(chan struct{})
	p := newProxy(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		piece := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}), func(c *Config) { c.StreamIdleTimeout = 300 * time.Millisecond }, ProxyOptions{})
	conn, err := net.Dial("tcp", p.Listener.Addr().String())
	want(t, err)
	defer conn.Close()
	_, err = fmt.Fprint(conn, "GET / HTTP/1.1\r\nhost: test\r\n\r\n")
	want(t, err)
	await(t, ended)
}

// TestProxyEdge shows what untrusted clients cannot do.
func TestProxyEdge(t *testing.T) {
	p := newProxy(t, "request_headers: map 0 get :path; map 0 get x-request-id; map 0 get x-envoy-max-retries", echo, nil,
		ProxyOptions{Edge: true, Prefix: "/in"})
	resp, _ := p.fetch(t, "GET", "/other/..//in/./x%2Fy", nil, "X-Request-Id", "mine", "X-Envoy-Max-Retries", "9")
	if resp.StatusCode != 200 {
		t.Fatalf("%d", resp.StatusCode)
	}
	wantLine(t, p.host, `map get :path 0 "/in/x%2Fy"`)
	wantLine(t, p.host, `map get x-envoy-max-retries 1 ""`)
	for _, m := range messages(p.host) {
		if strings.Contains(m, "mine") {
			t.Error("the client's request id is used")
		}
	}
	for path, normal := range map[string]string{
		"/":                "/",
		"//":               "/",
		"/a/":              "/a/",
		"/a//b":            "/a/b",
		"/a/../..":         "/",
		"/a/%2e%2E/b?c=..": "/b?c=..",
		"/../a/.":          "/a/",
		"/a%2F..":          "/a%2F..",
	} {
		if got := normalizePath(path); got != normal {
			t.Errorf("%s became %s, want %s", path, got, normal)
		}
	}
}

// TestProxyHammer sends many requests at once, some through callouts, some that
// the client leaves, some that kill their VM, over several workers.
func TestProxyHammer(t *testing.T) {
	script := `
request_headers@/callout: pause; call callout 0 "" :method GET :path / :authority c
request_headers@/bad: panic gone
http_call_response: effective; resume 0
request_headers: pause
response_headers: pause
response_body: buffer 1 set max 0 "."`
	p := newProxy(t, script, echo, func(c *Config) {
		c.Workers = 2
		c.Routes = []Route{{Prefix: "/", Cluster: "up"}}
		c.Clusters["callout"] = Cluster{Transport: transport(func(*http.Request) (*http.Response, error) {
			return respondWith(200, strings.NewReader("fine")), nil
		})}
	}, ProxyOptions{})
	var work sync.WaitGroup
	faults := make(chan error, 1000)
	for i := range 8 {
		work.Go(func() {
			for n := range 25 {
				kind := (i*7 + n) % 10
				if err := p.hit(t.Context(), kind, n); err != nil {
					faults <- fmt.Errorf("kind %d: %w", kind, err)
				}
			}
		})
	}
	work.Wait()
	close(faults)
	for err := range faults {
		t.Error(err)
	}
	for _, w := range p.host.workers {
		w.do(func() {
			if n := len(w.vm.streams) + len(w.vm.contexts) - 1; n != 0 && w.vm.failure == nil {
				t.Errorf("worker %d: %d streams and %d contexts are left", w.index, len(w.vm.streams), len(w.vm.contexts)-1)
			}
		})
	}
}

// hit sends one request and checks its answer. Any of them may meet a VM that
// another has killed.
func (p *proxied) hit(ctx context.Context, kind, n int) error {
	path, body := "/plain", strings.Repeat("x", n*100)
	switch kind {
	case 0:
		path = "/bad"
	case 1, 2:
		path = "/callout"
	case 3:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(n)*100*time.Microsecond)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, "POST", p.URL+path, io.MultiReader(strings.NewReader(body)))
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		if kind == 3 {
			return nil
		}
		return maybeCut(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	switch {
	case kind == 3 && err != nil:
		return nil
	case err != nil:
		return maybeCut(err)
	case resp.StatusCode == 503 || kind == 0:
		return nil
	case resp.StatusCode != 200 || strings.Trim(string(got), ".") != body || !strings.HasSuffix(string(got), "."):
		return fmt.Errorf("%d, %d bytes of %d", resp.StatusCode, len(got), len(body))
	}
	return nil
}

// maybeCut takes a connection that was cut for an answer of a VM that died while
// it was streaming; anything else stays an error.
func maybeCut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
