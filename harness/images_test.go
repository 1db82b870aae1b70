package harness_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ezat.io/chat-completions/harness"
)

// These tests take the module's image downloads through an Egress to servers on
// loopback: 127.0.0.1 plays the public network, 127.0.0.2 a private one.

// imageBytesMax is the contract's "10 MB per image".
const imageBytesMax = 10 << 20

// picture makes a PNG of a size, as far as its first bytes go.
func picture(bytes int) []byte {
	p := make([]byte, bytes)
	for i := range p {
		p[i] = byte(i * 7)
	}
	copy(p, "\x89PNG\r\n\x1a\n")
	return p
}

// imageNames is a resolver: names below .public.example are public, those below
// .private.example private, and others do not exist.
type imageNames struct{}

func (imageNames) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	public, private := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	switch {
	case strings.HasSuffix(host, ".public.example."), host == "example.com.":
		return []netip.Addr{public}, nil
	case strings.HasSuffix(host, ".private.example."), host == "intranet.":
		return []netip.Addr{private}, nil
	case strings.HasSuffix(host, ".mixed.example."):
		return []netip.Addr{private, public}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// imageHost is a host whose image clusters have an egress.
func imageHost(t *testing.T, change func(*harness.Config, *harness.EgressOptions)) *harness.Host {
	t.Helper()
	options := harness.EgressOptions{Resolver: imageNames{}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	return newHost(t, func(c *harness.Config) {
		c.Clock = harness.RealClock()
		if change != nil {
			change(c, &options)
		}
		egress := harness.NewEgress(options)
		c.Clusters["image_http"], c.Clusters["image_https"] = harness.Cluster{Egress: egress}, harness.Cluster{Egress: egress}
		c.Routes = []harness.Route{{Prefix: "/", Cluster: "anthropic"}}
	})
}

// withImages is a request with an image part for each URL.
func withImages(t *testing.T, urls ...string) []byte {
	t.Helper()
	type imageURL struct {
		URL string `json:"url"`
	}
	type part struct {
		Type     string   `json:"type"`
		ImageURL imageURL `json:"image_url"`
	}
	var parts []part
	for _, u := range urls {
		parts = append(parts, part{"image_url", imageURL{u}})
	}
	body, err := json.Marshal(map[string]any{
		"model": "anthropic/claude-sonnet-5-5", "messages": []any{map[string]any{"role": "user", "content": parts}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// images are the files of a request that went upstream.
func images(t *testing.T, sent harness.Message) (files [][]byte) {
	t.Helper()
	var body struct {
		Messages []struct {
			Content []struct {
				Source struct {
					Type      string
					MediaType string `json:"media_type"`
					Data      string
				}
			}
		}
	}
	if err := json.Unmarshal(sent.Body, &body); err != nil {
		t.Errorf("%v: %.200s", err, sent.Body)
	}
	for _, m := range body.Messages {
		for _, part := range m.Content {
			if part.Source.Type != "base64" || part.Source.MediaType != "image/png" {
				t.Errorf("a part is %s of %s", part.Source.Type, part.Source.MediaType)
			}
			file, err := base64.StdEncoding.DecodeString(part.Source.Data)
			if err != nil {
				t.Error(err)
			}
			files = append(files, file)
		}
	}
	return files
}

// wantReason checks the error for the first image.
func wantReason(t *testing.T, client, sent harness.Message, reason string) {
	t.Helper()
	var e struct{ Error struct{ Message string } }
	if err := json.Unmarshal(client.Body, &e); err != nil {
		t.Fatalf("%v: %s", err, client.Body)
	}
	want := "messages[0].content[0].image_url.url: could not download the image (" + reason + ")"
	if client.Headers.Get(":status") != "400" || e.Error.Message != want {
		t.Errorf("got %s %q, want %q", client.Headers.Get(":status"), e.Error.Message, want)
	}
	if sent.Began {
		t.Errorf("it went upstream: %.200s", sent.Body)
	}
}

// TestImagesAreInlined downloads images of all sizes, over redirects and more than once.
func TestImagesAreInlined(t *testing.T) {
	files := map[string][]byte{"/small": picture(20), "/large": picture(imageBytesMax), "/odd": picture(100_001)}
	var asked sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := asked.LoadOrStore(r.URL.Path, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		if next := r.URL.Query().Get("next"); next != "" {
			http.Redirect(w, r, next, http.StatusFound)
			return
		}
		if !strings.HasSuffix(r.Host, ".public.example:"+portOf(t, r.Host)) || len(r.Header) != 3 {
			t.Errorf("the server sees host %s and headers %v", r.Host, r.Header)
		}
		_, _ = w.Write(files[r.URL.Path])
	}))
	defer server.Close()
	base := "http://a.public.example:" + portOf(t, server.URL)
	client, sent := ask(t, imageHost(t, nil), withImages(t,
		base+"/small", base+"/large", base+"/odd", base+"/small",
		base+"/1?next="+url.QueryEscape("/2?next="+url.QueryEscape(strings.Replace(base, "a.", "b.", 1)+"/odd")),
	), answerWhole)
	if client.Headers.Get(":status") != "200" {
		t.Fatalf("%s", client.Body)
	}
	got := images(t, sent)
	for i, name := range []string{"/small", "/large", "/odd", "/small", "/odd"} {
		if len(got) != 5 || !bytes.Equal(got[i], files[name]) {
			t.Fatalf("%d images went up, number %d is not %s", len(got), i, name)
		}
	}
	for name, want := range map[string]int64{"/small": 1, "/large": 1, "/odd": 2, "/1": 1, "/2": 1} {
		if n, ok := asked.Load(name); !ok || n.(*atomic.Int64).Load() != want {
			t.Errorf("%s was not asked for %d times", name, want)
		}
	}
}

func portOf(t *testing.T, s string) string {
	t.Helper()
	_, port, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://"), ":")
	if !ok {
		t.Fatalf("%s has no port", s)
	}
	return port
}

// imageServer answers for TestImageReasons; its paths say how.
func imageServer(w http.ResponseWriter, r *http.Request) {
	switch kind, rest, _ := strings.Cut(r.URL.Path[1:], "/"); kind {
	case "status":
		code, _ := strconv.Atoi(rest)
		w.WriteHeader(code)
	case "redirects":
		if n, _ := strconv.Atoi(rest); n > 0 {
			http.Redirect(w, r, "/redirects/"+strconv.Itoa(n-1), http.StatusFound)
			return
		}
		_, _ = w.Write(picture(20))
	case "to":
		w.Header().Set("Location", r.URL.Query().Get("url"))
		w.WriteHeader(http.StatusFound)
	case "size":
		n, _ := strconv.Atoi(rest)
		_, _ = w.Write(picture(n))
	case "text":
		w.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(w, "<html>")
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(picture(20))
	case "short":
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write(picture(20))
	case "fake":
		w.Header().Set("X-Egress-Details", "dns_resolution_failure{address_denied}")
		w.WriteHeader(http.StatusServiceUnavailable)
	case "close":
		panic(http.ErrAbortHandler)
	}
}

// TestImageReasons shows each reason for which a download fails, as the client reads
// it. Nothing that is private is ever connected to.
func TestImageReasons(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(imageServer))
	defer server.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(imageServer))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of refused handshakes
	secure.StartTLS()
	defer secure.Close()
	var touched atomic.Int64
	private, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer private.Close()
	go func() {
		for {
			c, err := private.Accept()
			if err != nil {
				return
			}
			touched.Add(1)
			_ = c.Close()
		}
	}()
	plain, tls := portOf(t, server.URL), portOf(t, secure.URL)
	inside := portOf(t, private.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	host := imageHost(t, func(_ *harness.Config, o *harness.EgressOptions) { o.Roots = roots })
	base := "http://a.public.example:" + plain
	for url, reason := range map[string]string{
		base + "/size/20":                              "",
		base + "/redirects/3":                          "",
		"https://example.com:" + tls + "/size/20":      "",
		"http://a.mixed.example:" + plain + "/size/20": "",
		base + "/status/404":                           "HTTP 404",
		base + "/status/503":                           "HTTP 503",
		base + "/status/504":                           "HTTP 504",
		base + "/status/304":                           "HTTP 304",
		base + "/fake":                                 "HTTP 503",
		base + "/redirects/4":                          "more than 3 redirects",
		base + "/size/10485761":                        "larger than 10 MB",
		base + "/text":                                 "not a JPEG, PNG, GIF or WebP image",
		base + "/gzip":                                 "not a JPEG, PNG, GIF or WebP image",
		base + "/size/0":                               "not a JPEG, PNG, GIF or WebP image",
		base + "/short":                                "the answer broke off",
		base + "/close":                                "no connection",
		"http://a.public.example:" + inside + "/":      "no connection",
		"http://nowhere.example/":                      "name not found",
		"http://a..public.example/":                    "not a valid URL",
		"https://a.public.example:" + tls + "/":        "TLS failure", // its certificate is for example.com
		"https://example.com:" + plain + "/":           "TLS failure",
		"https://example.com:" + tls + "/to?url=http://a.public.example/": "a redirect from https to http",

		"http://a.private.example:" + inside + "/":                "not a public address",
		"http://intranet:" + inside + "/":                         "not a public address",
		"http://no-such-intranet/":                                "not a public address",
		"http://127.0.0.2:" + inside + "/":                        "not a public address",
		"http://2130706434:" + inside + "/":                       "not a public address",
		base + "/to?url=http://a.private.example:" + inside + "/": "not a public address",
		base + "/to?url=http://127.0.0.2:" + inside + "/":         "not a public address",
		base + "/to?url=//[::ffff:127.0.0.2]:" + inside + "/":     "not a public address",
		"http://a.mixed.example:" + inside + "/":                  "no connection",
	} {
		t.Run(strings.NewReplacer(plain, "PLAIN", tls, "TLS", inside, "INSIDE").Replace(url), func(t *testing.T) {
			client, sent := ask(t, host, withImages(t, url), answerWhole)
			if reason != "" {
				wantReason(t, client, sent, reason)
				return
			}
			if got := images(t, sent); len(got) != 1 || !bytes.Equal(got[0], picture(20)) || client.Headers.Get(":status") != "200" {
				t.Errorf("%s: %d images went up", client.Body, len(got))
			}
		})
	}
	if n := touched.Load(); n > 0 {
		t.Errorf("private connections: %d", n)
	}
	wantGood(t, host)
}

// TestImageTimesOut lets 15 seconds pass by the clock of host and egress.
func TestImageTimesOut(t *testing.T) {
	reached := make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(picture(20))
		_ = http.NewResponseController(w).Flush()
		close(reached)
		<-r.Context().Done()
	}))
	defer server.Close()
	clock := harness.NewFakeClock()
	host := imageHost(t, func(c *harness.Config, o *harness.EgressOptions) { c.Clock, o.Clock = clock, clock })
	body := withImages(t, "http://a.public.example:"+portOf(t, server.URL)+"/")
	type result struct {
		client, sent harness.Message
		err          error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.client, r.sent, r.err = host.Do(t.Context(), harness.Exchange{Request: harness.Message{Headers: chatHeaders(), Body: body}})
		done <- r
	}()
	<-reached
	clock.Advance(15*time.Second - time.Millisecond)
	select {
	case r := <-done:
		t.Fatalf("it is over before its time: %s", r.client.Body)
	case <-time.After(20 * time.Millisecond):
	}
	clock.Advance(time.Millisecond)
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	wantReason(t, r.client, r.sent, "timed out")
}

// TestManyImages has 50 requests with four images each on one worker. The server gives
// none of them away before a text chat was answered beside them.
func TestManyImages(t *testing.T) {
	const requests, each = 50, 4
	chatted := make(chan bool)
	var waiting atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waiting.Add(1)
		<-chatted
		n, _ := strconv.Atoi(r.URL.Path[1:])
		_, _ = w.Write(picture(10_000 + n))
	}))
	defer server.Close()
	host := imageHost(t, func(c *harness.Config, _ *harness.EgressOptions) {
		c.PluginConfig = `{"images":{"memory_bytes":52428800}}`
	})
	var work sync.WaitGroup
	for i := range requests {
		var urls []string
		for j := range each {
			urls = append(urls, fmt.Sprintf("http://a.public.example:%s/%d", portOf(t, server.URL), i*each+j))
		}
		body := withImages(t, urls...)
		work.Go(func() {
			client, sent, err := host.Do(t.Context(), harness.Exchange{
				Request: harness.Message{Headers: chatHeaders(), Body: body}, Upstream: answerWhole,
			})
			if err != nil || client.Headers.Get(":status") != "200" {
				t.Errorf("%v %s", err, client.Body)
				return
			}
			for j, file := range images(t, sent) {
				if !bytes.Equal(file, picture(10_000+i*each+j)) {
					t.Errorf("image %d of request %d is another one", j, i)
				}
			}
		})
	}
	for end := time.Now().Add(time.Minute); waiting.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no download begins")
		}
	}
	for range 10 {
		wantGood(t, host)
	}
	// 24 that anybody may use, and past them one for each request.
	if n := waiting.Load(); n > 24+requests {
		t.Errorf("%d downloads are under way at once", n)
	}
	close(chatted)
	work.Wait()
}
