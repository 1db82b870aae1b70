package egress_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

// testRequests: a server sees the URL in clean form and a few headers, and nothing of
// the client or of Envoy.
func (w *world) testRequests(t *testing.T) {
	host := w.host(publicIP)
	w.file("seen", "image/png", png)
	w.file("", "image/png", png)
	for url, want := range map[string]string{
		w.plain(host, "/seen/a b?q=ä&x=\"1\"#part"): "/seen/a%20b?q=%C3%A4&x=%221%22",
		w.plain(host, "/seen/%2e%2e/x/../y/.//z"):   "/seen/%2e%2e/y//z",
		w.tls(host, "/seen/plus+and;semi"):          "/seen/plus+and;semi",
		w.tls(host, "?q"):                           "/?q",
		w.plain(host, ""):                           "/",
	} {
		before := len(w.requests("seen")) + len(w.requests(""))
		w.try(t, attempt{url: url})
		all := append(w.requests("seen"), w.requests("")...)
		if len(all) != before+1 {
			t.Fatalf("%s: %d requests", url, len(all)-before)
		}
		if !slices.ContainsFunc(all, func(r *http.Request) bool { return r.RequestURI == want }) {
			t.Errorf("%s was not asked for as %s", url, want)
		}
	}
	for _, r := range append(w.requests("seen"), w.requests("")...) {
		if r.TLS != nil && r.TLS.DidResume {
			t.Error("a TLS session is resumed: that of one host could be offered to another")
		}
		names := slices.Sorted(maps.Keys(r.Header))
		if want := []string{"Accept", "Accept-Encoding", "User-Agent"}; !slices.Equal(names, want) {
			t.Errorf("a server sees the headers %v, want %v", r.Header, want)
		}
		if got := r.Header.Get("accept-encoding"); got != "identity" {
			t.Errorf("accept-encoding: %s", got)
		}
		port := w.plainPort
		if r.TLS != nil {
			port = w.tlsPort
		}
		if r.Method != http.MethodGet || r.Host != host+":"+port {
			t.Errorf("%s to the host %s", r.Method, r.Host)
		}
	}
}

// testPorts: without a port it is the scheme's own. Nobody is there, so the log has to
// show where the connection went.
func (w *world) testPorts(t *testing.T) {
	for scheme, port := range map[string]string{"http": ":80", "https": ":443"} {
		host := w.host(deadIP)
		w.try(t, attempt{url: scheme + "://" + host + "/png", reason: noConnection})
		line := w.waitImage(t, func(a envoy.ImageAccess) bool { return a.Host == host })
		if line.Scheme != scheme || line.Fields["first"] != deadIP+port {
			t.Errorf("%s", line.Line)
		}
	}
}

// waitImage waits for a line of the egress's log.
func (w *world) waitImage(t *testing.T, match func(envoy.ImageAccess) bool) envoy.ImageAccess {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		all, err := w.envoy.ImageLog()
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(all, match); i >= 0 {
			return all[i]
		}
		if time.Now().After(end) {
			t.Fatal("no such line in the egress's log")
		}
	}
}

// wantSilentLogs fails the test when a log has what must not be in it: the paths of
// images, the client's key, what an image has in it.
func (w *world) wantSilentLogs(t *testing.T) {
	t.Helper()
	images, err := w.envoy.ImageLog()
	if err != nil {
		t.Fatal(err)
	}
	access, err := w.envoy.AccessLog()
	if err != nil {
		t.Fatal(err)
	}
	text := w.envoy.Log()
	for _, line := range images {
		text += line.Line + "\n"
	}
	for _, line := range access {
		text += line.Line + "\n"
	}
	for _, secret := range []string{"of-the-client", "/seen", "/png", "?q", "mark-", "IHDR"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in a log", secret)
		}
	}
}

// testMetrics: downloads are counted by how they end.
func (w *world) testMetrics(t *testing.T) {
	host := w.host(publicIP)
	w.try(t, attempt{url: w.plain(host, "/png")})
	w.try(t, attempt{url: w.plain(host, "/nowhere"), reason: "HTTP 404"})
	stats, err := w.envoy.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ok", "failed"} {
		if stats["wasmcustom.ezat.image_downloads."+name] == 0 {
			t.Errorf("no downloads are counted as %s", name)
		}
	}
}

// testToolResults: images in tool results are downloaded like those of the user, and
// named by their place.
func (w *world) testToolResults(t *testing.T) {
	host := w.host(publicIP)
	w.file("of-a-tool", "image/png", png)
	ask := func(url string) outcome {
		o, err := w.chat(t.Context(), func(text any) []any {
			call := map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": "look", "arguments": "{}"}}
			return []any{
				map[string]any{"role": "user", "content": []any{text, imagePart(w.plain(host, "/png"))}},
				map[string]any{"role": "assistant", "tool_calls": []any{call}},
				map[string]any{"role": "tool", "tool_call_id": "call_1", "content": []any{imagePart(url)}},
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	wantServed(t, ask(w.plain(host, "/of-a-tool")), "image/png", png, png)
	wantRefused(t, ask(w.plain(host, "/nowhere")), "messages[2].content[0].image_url.url: could not download the image (HTTP 404)")
}

// testClientsThatLeave: a client that goes while its image comes leaves nothing
// behind, and nothing goes upstream for it.
func (w *world) testClientsThatLeave(t *testing.T) {
	host := w.host(publicIP)
	arrived, leave := make(chan struct{}), make(chan struct{})
	w.page("left", func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-leave
		rw.Write(png)
	})
	left, err := w.leave(t, arrived, w.plain(host, "/left"))
	if err == nil {
		t.Errorf("an answer came: %d %s", left.status, left.body)
	}
	close(leave)
	// The download ends all the same, into nothing.
	line := w.waitImage(t, func(a envoy.ImageAccess) bool { return strings.HasPrefix(a.Host, host) })
	if line.Status != "200" && line.Status != "0" {
		t.Errorf("%s", line.Line)
	}
	if left.reached {
		t.Error("the upstream was asked for a client that had left")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	access, err := w.envoy.WaitAccess(ctx, func(a envoy.Access) bool { return strings.Contains(string(a.Usage), `"client_left"`) })
	if err != nil {
		t.Fatal(err)
	}
	var usage map[string]any
	if err := json.Unmarshal(access.Usage, &usage); err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []string{"prompt_tokens", "completion_tokens"} {
		if usage[tokens] != 0.0 {
			t.Errorf("a client that left before anything went up pays for %v: %s", tokens, access.Usage)
		}
	}
	w.try(t, attempt{url: w.plain(host, "/png")})
}

// testStreamsMeanwhile: while a request waits for its image, a stream on the same
// worker goes on, event by event.
func (w *world) testStreamsMeanwhile(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	w.page("held", func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		rw.Write(png)
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.try(t, attempt{url: w.plain(w.host(publicIP), "/held")})
	}()
	within(t, "the image is asked for", arrived)
	stream := w.openStream(t, "one", "two", "three")
	for range 3 {
		stream.next(t)
	}
	stream.end(t)
	select {
	case <-done:
		t.Error("the image has not waited")
	default:
	}
	close(release)
	within(t, "the image is served", done)
}
