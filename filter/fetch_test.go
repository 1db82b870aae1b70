package main

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/translate"
)

// fakeVM plays several streams of one plugin, and answers the callouts of all.
type fakeVM struct {
	t       testing.TB
	plugin  *plugin
	at      *fakeHost // the stream that host calls work on; nil for none
	streams []*gateway
	calls   []vmCall // those that have not been answered, oldest first
}

type vmCall struct {
	fakeCall
	host *fakeHost
}

func (c vmCall) url() string {
	return headerOf(c.headers, "x-image-scheme") + "://" + headerOf(c.headers, ":authority") + headerOf(c.headers, ":path")
}

func newVM(t testing.TB, configuration string) *fakeVM {
	t.Helper()
	h := newFakeHost(t)
	p := startPlugin(h, []byte(configuration))
	if p == nil {
		t.Fatalf("the plugin does not start: %q", h.logs)
	}
	return &fakeVM{t: t, plugin: p}
}

// stream begins one more stream.
func (v *fakeVM) stream() *gateway {
	h := newFakeHost(v.t)
	h.vm = v
	g := newStream(v.t, v.plugin, h, uint32(len(v.streams)+1))
	v.streams = append(v.streams, g)
	return g
}

// on runs callbacks of a stream's.
func (v *fakeVM) on(g *gateway, callbacks func()) {
	v.at = g.h
	callbacks()
	if v.at != g.h && !g.h.gone {
		v.t.Error("a callback ends on another stream")
	}
	v.at = nil
	v.check()
}

// ask sends a whole chat request.
func (v *fakeVM) ask(body string) *gateway {
	g := v.stream()
	v.on(g, func() { g.chat(body) })
	return g
}

// end ends a stream.
func (v *fakeVM) end(g *gateway) {
	v.t.Helper()
	v.on(g, g.done)
	g.h.gone = true
}

// answer answers the callout for a URL.
func (v *fakeVM) answer(url string, status int, body string, headers ...[2]string) {
	v.t.Helper()
	i := slices.IndexFunc(v.calls, func(c vmCall) bool { return c.url() == url })
	if i < 0 {
		v.t.Fatalf("no callout for %s: %q", url, v.urls())
	}
	v.answerNumber(i, status, body, headers...)
}

func (v *fakeVM) answerNumber(i int, status int, body string, headers ...[2]string) {
	call := v.calls[i]
	v.calls = slices.Delete(v.calls, i, i+1)
	if !call.host.gone {
		v.at = call.host
	}
	call.host.answerCall(call.fakeCall, status, body, headers...)
	v.at = nil
	v.check()
}

func (v *fakeVM) urls() []string {
	urls := []string{}
	for _, c := range v.calls {
		urls = append(urls, c.url())
	}
	return urls
}

func (v *fakeVM) wantURLs(urls ...string) {
	v.t.Helper()
	if got := v.urls(); !slices.Equal(got, urls) {
		v.t.Errorf("callouts under way %q, want %q", got, urls)
	}
}

// check adds up what is under way and what is here, and looks for somebody who
// waits without need.
func (v *fakeVM) check() {
	v.t.Helper()
	m := v.plugin.images
	outside, inside, waiting := 0, 0, 0
	for _, g := range v.streams {
		all := g.x.downloads
		if all == nil {
			continue
		}
		here := 0
		for i := range all.list {
			here += len(all.list[i].image.Data)
		}
		if here != all.held() {
			v.t.Errorf("%d bytes are here, and %d are counted", here, all.held())
		}
		if all.inLane {
			inside += here
		} else {
			outside += here
		}
		if all.waiting() {
			waiting++
			v.checkWaiting(all)
		}
		if all.waits.in != v.place(all) || (all.holds.in == &m.holding) != (here > 0 && !all.inLane) {
			v.t.Errorf("a request is in the wrong place: %+v", all)
		}
	}
	if bound := v.plugin.config.images.memoryBytes; outside != m.bytes || outside+inside > bound {
		v.t.Errorf("%d bytes are here, and %d in the lane; %d are counted, the bound is %d", outside, inside, m.bytes, bound)
	}
	if n := m.fresh.Len() + m.more.Len() + m.lane.Len(); n < waiting || len(m.unseen) > 0 || m.running {
		v.t.Errorf("%d wait, %d are queued, %d not seen, at work: %v", waiting, n, len(m.unseen), m.running)
	}
	underWay := 0
	for _, call := range v.calls {
		if lookup(call.headers, "x-image-scheme") != "" {
			underWay++
		}
	}
	if m.underWay != underWay || m.underWay > m.most {
		v.t.Errorf("%d are under way, %d are counted of at most %d", underWay, m.underWay, m.most)
	}
}

// place is where a request has to be.
func (v *fakeVM) place(all *downloads) *queue {
	m := v.plugin.images
	switch {
	case all.inLane:
		return &m.lane
	case !all.waiting():
		return nil
	case all.underWay > 0:
		return &m.more
	}
	return &m.fresh
}

// checkWaiting fails the test when a download could begin and does not.
func (v *fakeVM) checkWaiting(all *downloads) {
	v.t.Helper()
	m := v.plugin.images
	may := m.underWay < m.shared || m.underWay < m.most && all.underWay == 0
	if all.inLane {
		free := all.bytesMax() - m.bytes
		may = may && m.lane.first() == all && (all.started > 0 || free >= m.need(all))
	}
	if may {
		v.t.Errorf("a request waits though %d are under way and %d bytes here: %+v", m.underWay, m.bytes, all)
	}
	if !all.exchange.plugin.ticking {
		v.t.Error("a request waits and the plugin does not tick")
	}
}

// tick is a tick of the plugin's at a time after the streams' begin.
func (v *fakeVM) tick(after time.Duration) *fakeHost {
	root := newFakeHost(v.t)
	root.vm, root.now = v, root.now+after.Nanoseconds()
	v.at = root
	v.plugin.tick(root)
	v.at = nil
	v.check()
	return root
}

// silent asks for images that never come, in as many requests, of so many each.
func (v *fakeVM) silent(requests, each int) (all []*gateway) {
	for n := range requests {
		all = append(all, v.ask(withImages(urlsOf("silent"+strconv.Itoa(n), each)...)))
	}
	return all
}

// urlsOf are n URLs on a host.
func urlsOf(name string, n int) (urls []string) {
	for i := range n {
		urls = append(urls, "http://"+name+".test/"+strconv.Itoa(i))
	}
	return urls
}

// wantEmpty checks that nothing is held, and that nobody waits.
func (v *fakeVM) wantEmpty() {
	v.t.Helper()
	if l := v.plugin.ledger; l.bytes != 0 || len(l.heavy) != 0 {
		v.t.Errorf("%d bytes are still in the ledger", l.bytes)
	}
	m := v.plugin.images
	if m.underWay != 0 || m.bytes != 0 || m.fresh.Len()+m.more.Len()+m.lane.Len()+m.holding.Len() != 0 || len(v.calls) != 0 {
		v.t.Errorf("left: %d bytes, %d under way, in queues %d, %d, %d, %d, callouts %q", m.bytes, m.underWay,
			m.fresh.Len(), m.more.Len(), m.lane.Len(), m.holding.Len(), v.urls())
	}
}

// withImages is a request with image URLs, one part each.
func withImages(urls ...string) string {
	body := strings.Builder{}
	body.WriteString(`{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":[{"type":"text","text":"secret words"}`)
	for _, url := range urls {
		body.WriteString(`,{"type":"image_url","image_url":{"url":"` + url + `"}}`)
	}
	body.WriteString(`]}]}`)
	return body.String()
}

// file is a PNG file of size bytes, different for each name.
func file(name string, size int) string {
	begin := "\x89PNG\r\n\x1a\n" + name
	return begin + strings.Repeat("\x00", max(size-len(begin), 0))
}

const mb = 1 << 20

// sent is an image part as it goes upstream.
func sent(kind, data string) string {
	return `{"type":"image","source":{"type":"base64","media_type":"` + kind + `","data":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"}`
}

func TestImagesAreDownloadedSideBySide(t *testing.T) {
	for _, configuration := range []string{"", `{"hold_headers":false}`} {
		v := newVM(t, configuration)
		g := v.ask(withImages("http://a.test/1.png?x=y", "HTTPS://B.test:444/2", "http://a.test/1.png?x=y", "http://c.test"))
		v.wantURLs("http://a.test/1.png?x=y", "https://b.test:444/2", "http://c.test/")
		if g.upEnded || len(g.upBody) > 0 || g.h.lent != 0 {
			t.Error("the request does not wait in the host")
		}
		for _, call := range v.calls {
			scheme := headerOf(call.headers, "x-image-scheme")
			want := [][2]string{{":method", "GET"}, {":path", headerOf(call.headers, ":path")}, {":authority", headerOf(call.headers, ":authority")},
				{"accept", "image/jpeg, image/png, image/gif, image/webp"}, {"accept-encoding", "identity"},
				{"user-agent", "ezat-chat-completions"}, {"x-image-scheme", scheme}}
			if !slices.Equal(call.headers, want) || call.cluster != "image_"+scheme {
				t.Errorf("callout to %s: %q", call.cluster, call.headers)
			}
			if call.timeoutMs > 15_000 || call.timeoutMs < 14_900 {
				t.Errorf("timeout %d", call.timeoutMs)
			}
		}
		gif := "GIF89a-"
		v.answer("http://c.test/", 200, gif, [2]string{"content-type", "text/html"}, [2]string{"content-encoding", "identity"})
		v.answer("http://a.test/1.png?x=y", 200, file("one", 100))
		if g.upEnded || v.plugin.images.bytes != 100+len(gif) || g.x.downloads.held() != 100+len(gif) {
			t.Errorf("%d bytes are held", v.plugin.images.bytes)
		}
		v.answer("https://b.test:444/2", 200, file("two", 50_000))
		want := `{"type":"text","text":"secret words"},` + sent("image/png", file("one", 100)) + `},` + sent("image/png", file("two", 50_000)) + `},` +
			sent("image/png", file("one", 100)) + `},` + sent("image/gif", gif)
		if !g.upEnded || !strings.Contains(string(g.upBody), want) {
			t.Errorf("sent %.300s", g.upBody)
		}
		if n := headerOf(g.upHeaders, "content-length"); configuration == "" && n != strconv.Itoa(len(g.upBody)) {
			t.Errorf("content-length %s of %d bytes", n, len(g.upBody))
		}
		if n := len(g.h.observed["ezat.translate_us"]); n != 1 {
			t.Errorf("%d translations are measured", n)
		}
		v.wantEmpty()
		v.on(g, func() { g.answer(200, message) })
		v.end(g)
		if g.status() != "200" || g.h.counts["ezat.image_downloads.ok"] != 3 || g.h.counts["ezat.image_downloads.failed"] != 0 {
			t.Errorf("status %s, counts %v", g.status(), g.h.counts)
		}
		g.wantUsage(`"outcome":"ok"`)
	}
}

func TestImagesBehindTrailers(t *testing.T) {
	v := newVM(t, "")
	g := v.stream()
	v.on(g, func() {
		g.sendHeaders(goodRequest, false)
		g.sendBody(withImages("http://a.test/"), false)
		g.sendTrailers([2]string{"x-checksum", "1"})
	})
	if g.upEnded {
		t.Fatal("the trailers are not held")
	}
	v.answer("http://a.test/", 200, file("a", 10))
	if !g.upEnded || headerOf(g.upHeaders, "content-length") != "" || !strings.Contains(string(g.upBody), sent("image/png", file("a", 10))) {
		t.Errorf("sent %q %.300s", g.upHeaders, g.upBody)
	}
	v.end(g)
	v.wantEmpty()
}

func TestImagesInToolResults(t *testing.T) {
	v := newVM(t, "")
	g := v.ask(`{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"x"},` +
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":[{"type":"image_url","image_url":{"url":"http://a.test/"}}]}]}`)
	v.answer("http://a.test/", 404, "")
	v.end(g)
	g.wantError(400, "messages[2].content[0].image_url.url: could not download the image (HTTP 404)")
}

// TestDownloadFailures: each way in which one download can fail, and its reason.
func TestDownloadFailures(t *testing.T) {
	served := [2]string{"x-envoy-upstream-service-time", "3"}
	egress := func(details string) [2]string { return [2]string{"x-egress-details", details} }
	big := file("big", 10*mb+1)
	for _, c := range []struct {
		url, reason string
		status      int
		body        string
		headers     [][2]string
	}{
		{"", "HTTP 404", 404, "gone", [][2]string{served}},
		{"", "HTTP 500", 500, file("x", 10), [][2]string{served}},
		{"", "HTTP 503", 503, "", [][2]string{served}},
		{"", "HTTP 504", 504, "", [][2]string{served}},
		{"", "HTTP 206", 206, file("x", 10), [][2]string{served}},
		{"", "HTTP 204", 204, "", [][2]string{served}},
		{"", "HTTP 101", 101, "", [][2]string{served}},
		{"", "HTTP 304", 304, "", [][2]string{served, {"location", "/elsewhere"}}},
		{"", "HTTP 300", 300, "", [][2]string{served, {"location", "/elsewhere"}}},
		{"", "HTTP 302", 302, "", [][2]string{served}},
		{"", "HTTP 302", 302, "", [][2]string{served, {"location", " "}}},
		{"", reasonNotImage, 200, "", nil},
		{"", reasonNotImage, 200, "<html>", [][2]string{{"content-type", "image/png"}}},
		{"", reasonNotImage, 200, "%PDF-1.7", nil},
		{"", reasonNotImage, 200, "\x89PN", nil},
		{"", reasonNotImage, 200, file("x", 10), [][2]string{{"content-encoding", "gzip"}}},
		{"", reasonTooLarge, 200, big, nil},
		{"", reasonNoConnection, 0, "", nil},
		{"", reasonNoConnection, 503, "upstream connect error", nil},
		{"", reasonBusy, 503, "", [][2]string{{"x-envoy-overloaded", "true"}}},
		{"", reasonTimeout, 504, "upstream request timeout", nil},

		// The egress listener's own replies.
		{"", reasonNotPublic, 503, "", [][2]string{served, egress("dns_resolution_failure{address_denied}")}},
		{"", reasonNoName, 503, "", [][2]string{served, egress("dns_resolution_failure{cares_norecords:Domain_name_not_found}")}},
		{"http://printer/", reasonNotPublic, 503, "", [][2]string{served, egress("dns_resolution_failure{cares_norecords:Domain_name_not_found}")}},
		{"http://db.corp:8080/", reasonNotPublic, 503, "", [][2]string{served, egress("dns_resolution_failure{cares_norecords:Domain_name_not_found}")}},
		{"http://x.home.arpa/", reasonNotPublic, 503, "", [][2]string{served, egress("dns_resolution_failure{resolve_timeout}")}},
		{"http://internal.test/", reasonNoName, 503, "", [][2]string{served, egress("dns_resolution_failure{cares_norecords:Domain_name_not_found}")}},
		{"", reasonTimeout, 503, "", [][2]string{served, egress("dns_resolution_failure{resolve_timeout}")}},
		{"", reasonTimeout, 503, "", [][2]string{served, egress("dns_resolution_failure{cares_failure:Timeout_while_contacting_DNS_servers}")}},
		{"", reasonBadURL, 503, "", [][2]string{served, egress("dns_resolution_failure{cares_failure:Misformatted_domain_name}")}},
		{"", reasonTLS, 503, "", [][2]string{served, egress("upstream_reset_before_response_started{remote_connection_failure|TLS_error:_secret.internal}")}},
		{"", reasonNoConnection, 503, "", [][2]string{served, egress("upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}")}},
		{"", reasonNoConnection, 503, "", [][2]string{served, egress("upstream_reset_before_response_started{connection_timeout}")}},
		{"", reasonBroken, 502, "", [][2]string{served, egress("upstream_reset_after_response_started{protocol_error}")}},
		{"", reasonTimeout, 504, "", [][2]string{served, egress("response_timeout")}},
		{"", reasonTooLarge, 500, "", [][2]string{served, egress("response_payload_too_large")}},
		{"", reasonBusy, 503, "", [][2]string{served, egress("dns_cache_overflow")}},
		{"", reasonBusy, 503, "", [][2]string{served, egress("overload")}},
		{"", reasonBusy, 503, "", [][2]string{served, egress("upstream_reset_before_response_started{overflow}")}},
		{"", reasonBadURL, 404, "", [][2]string{served, egress("absolute_path_rejected")}},
		{"", reasonBadURL, 431, "", [][2]string{served, egress("request_headers_too_large")}},
		{"", reasonNoConnection, 500, "", [][2]string{served, egress("something_new_of_10.0.0.1")}},
	} {
		v := newVM(t, "")
		url := c.url
		if url == "" {
			url = "http://a.test/"
		}
		g := v.ask(withImages("https://first.test/", url))
		v.answer(url, c.status, c.body, c.headers...)
		g.wantError(400, `{"error":{"message":"messages[0].content[2].image_url.url: could not download the image (`+c.reason+`)","type":"invalid_request_error"`)
		g.wantUpstreamUntouched()
		g.wantUsage(`"outcome":"refused"`, `"status":400`, `"model":"anthropic/claude-sonnet-5-5"`)
		if n := g.h.counts["ezat.image_downloads.failed"]; n != 1 || g.h.counts["ezat.refusals.messages"] != 1 {
			t.Errorf("counts %v", g.h.counts)
		}
		if v.plugin.images.underWay != 1 {
			t.Errorf("%d downloads are under way, want the other image's", v.plugin.images.underWay)
		}
		v.end(g)
		v.answer("https://first.test/", 200, file("late", 10))
		v.wantEmpty()
	}
}

// TestReasonsOfTheCore: the reasons that stand in both packages are the same.
func TestReasonsOfTheCore(t *testing.T) {
	for url, want := range map[string]string{"http://127.0.0.1/": reasonNotPublic, "http://u@a/": reasonBadURL} {
		if _, got := translate.ParseImageURL(url, false); got != want {
			t.Errorf("%s: %q", url, got)
		}
	}
	v := newVM(t, "")
	g := v.ask(withImages("http://a.test/", "http://10.0.0.1/"))
	v.end(g)
	g.wantError(400, "messages[0].content[2].image_url.url: could not download the image (not a public address)")
	v.wantEmpty()
	if reasonTooLarge != "larger than "+strconv.Itoa(translate.ImageBytesMax>>20)+" MB" || reasonRedirects != "more than "+strconv.Itoa(imageRedirectsMax)+" redirects" {
		t.Error("a reason names another limit")
	}
}

func TestRedirects(t *testing.T) {
	to := func(location string) [2]string { return [2]string{"location", location} }
	for _, status := range []int{301, 302, 303, 307, 308} {
		v := newVM(t, "")
		g := v.ask(withImages("http://a.test/x/1"))
		g.h.now += 2_000_000_000
		v.answer("http://a.test/x/1", status, "moved", to("2?q#f"))
		g.h.now += 3_000_000_000
		if left := v.calls[0].timeoutMs; left > 13_000 || left < 12_900 {
			t.Errorf("%d ms are left for the second hop", left)
		}
		v.answer("http://a.test/x/2?q", status, "", to("//b.test/3"))
		v.answer("http://b.test/3", status, "", to("https://c.test/4"))
		if left := v.calls[0].timeoutMs; v.calls[0].cluster != "image_https" || left > 10_000 || left < 9_900 {
			t.Errorf("%d ms are left for the last hop, on %s", left, v.calls[0].cluster)
		}
		v.answer("https://c.test/4", 200, file("a", 10))
		if !g.upEnded || g.h.counts["ezat.image_downloads.ok"] != 1 {
			t.Errorf("counts %v", g.h.counts)
		}
		v.end(g)
		v.wantEmpty()
	}
	for _, c := range []struct {
		configuration, from, location, reason string
	}{
		{"", "http://a.test/", "http://127.0.0.1/", reasonNotPublic},
		{"", "http://a.test/", "//[::ffff:10.0.0.1]/", reasonNotPublic},
		{"", "http://a.test/", "http://localhost:8080/", reasonNotPublic},
		{"", "http://a.test/", "http://0x7f.1/", reasonNotPublic},
		{"", "http://a.test/", "file:///etc/passwd", reasonBadURL},
		{"", "http://a.test/", "http://u:p@b.test/", reasonBadURL},
		{"", "https://a.test/", "http://b.test/", "a redirect from https to http"},
		{`{"images":{"https_cluster":""}}`, "http://a.test/", "https://b.test/", "a redirect to https, which is turned off here"},
		{`{"images":{"http_cluster":""}}`, "https://a.test/", "http://b.test/", "a redirect from https to http"},
	} {
		v := newVM(t, c.configuration)
		g := v.ask(withImages(c.from))
		v.answer(c.from, 302, "", to(c.location))
		v.end(g)
		g.wantError(400, "messages[0].content[1].image_url.url: could not download the image ("+c.reason+")")
		v.wantEmpty()
	}
}

func TestTooManyRedirects(t *testing.T) {
	v := newVM(t, "")
	g := v.ask(withImages("http://a.test/"))
	for range 4 {
		if len(v.calls) == 0 {
			t.Fatal("refused too early")
		}
		v.answer("http://a.test/", 302, "", [2]string{"location", "/"})
	}
	v.end(g)
	g.wantError(400, "(more than 3 redirects)")
	v.wantEmpty()
}

func TestRedirectAfterTheDeadline(t *testing.T) {
	for _, step := range []int64{16_000_000_000, -60_000_000_000} {
		v := newVM(t, "")
		g := v.ask(withImages("http://a.test/"))
		g.h.now += step
		v.answer("http://a.test/", 302, "", [2]string{"location", "/2"})
		if step < 0 {
			// A clock that is set back gives no more time than there ever was.
			if v.calls[0].timeoutMs != 15_000 {
				t.Errorf("timeout %d", v.calls[0].timeoutMs)
			}
			v.answer("http://a.test/2", 200, file("a", 10))
			v.end(g)
			continue
		}
		v.end(g)
		g.wantError(400, "(timed out)")
		v.wantEmpty()
	}
	// A file that comes late is there all the same.
	v := newVM(t, "")
	g := v.ask(withImages("http://a.test/"))
	g.h.now += 60_000_000_000
	v.answer("http://a.test/", 200, file("a", 10))
	if !g.upEnded {
		t.Error("a late file is refused")
	}
	v.end(g)
}

func TestPrivateImages(t *testing.T) {
	v := newVM(t, `{"images":{"allow_private":true,"http_cluster":"lab"}}`)
	g := v.ask(withImages("http://127.0.0.1:8080/a"))
	if len(v.calls) != 1 || v.calls[0].cluster != "lab" {
		t.Fatalf("%+v", v.calls)
	}
	v.answer("http://127.0.0.1:8080/a", 302, "", [2]string{"location", "http://localhost/b"})
	v.answer("http://localhost/b", 200, file("a", 10))
	if !g.upEnded {
		t.Error("the request waits")
	}
	v.end(g)
	v.wantEmpty()
}

func TestSchemesTurnedOff(t *testing.T) {
	for configuration, url := range map[string]string{
		`{"images":{"http_cluster":""}}`:  "http://a.test/",
		`{"images":{"https_cluster":""}}`: "https://a.test/",
	} {
		v := newVM(t, configuration)
		g := v.ask(withImages(url))
		v.end(g)
		g.wantError(400, "messages[0].content[1].image_url.url: image downloads are turned off here")
		v.wantEmpty()
	}
}

func TestImagesTogetherTooLarge(t *testing.T) {
	// Exactly 32 MB pass, in any order.
	v := newVM(t, "")
	g := v.ask(withImages("http://a.test/", "http://b.test/", "http://b.test/", "http://c.test/"))
	v.answer("http://c.test/", 200, file("c", 2*mb))
	v.answer("http://b.test/", 200, file("b", 10*mb))
	v.answer("http://a.test/", 200, file("a", 10*mb))
	if !g.upEnded {
		t.Fatal("32 MB are refused")
	}
	v.end(g)
	v.wantEmpty()
	// One byte more does not; the part is the one that goes over, whichever came last.
	for _, order := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
		v := newVM(t, "")
		g := v.ask(withImages("http://a.test/", "http://b.test/", "http://b.test/", "http://c.test/"))
		sizes := map[string]int{"a": 10*mb + 0, "b": 10 * mb, "c": 2*mb + 1}
		for _, name := range order {
			v.answer("http://"+name+".test/", 200, file(name, sizes[name]))
		}
		v.end(g)
		g.wantError(400, "messages[0].content[4].image_url.url: could not download the image (all images together are larger than 32 MB)")
		if g.h.counts["ezat.image_downloads.ok"] != 2 || g.h.counts["ezat.image_downloads.failed"] != 1 {
			t.Errorf("counts %v", g.h.counts)
		}
		v.wantEmpty()
	}
}

// TestCalloutsThatFailAtOnce: of several failures that are known at one moment
// the first part's is reported, and nothing more is started.
func TestCalloutsThatFailAtOnce(t *testing.T) {
	v := newVM(t, "")
	g := v.stream()
	g.h.refuse = "call image_https"
	v.on(g, func() {
		g.chat(withImages("http://a.test/", "https://b.test/", "https://c.test/"))
	})
	v.end(g)
	g.wantError(400, "messages[0].content[2].image_url.url: could not download the image (no connection)")
	v.wantURLs("http://a.test/")
	v.answer("http://a.test/", 0, "")
	v.wantEmpty()
	if !slices.Contains(g.h.logs, "error: images: the host refused the callout: bad argument") {
		t.Errorf("log %q", g.h.logs)
	}

	// Between two hops.
	g = v.ask(withImages("http://a.test/"))
	g.h.refuse = "call"
	v.answer("http://a.test/", 302, "", [2]string{"location", "/2"})
	v.end(g)
	g.wantError(400, "(no connection)")
	v.wantEmpty()
}

func TestHostThatKeepsTheAnswer(t *testing.T) {
	v := newVM(t, "")
	g := v.ask(withImages("http://a.test/"))
	g.h.refuse = "read callout"
	v.answer("http://a.test/", 200, file("a", 10))
	v.end(g)
	g.wantError(400, "(the answer broke off)")
	v.wantEmpty()
}

// TestRequestEndsBeforeItsImages: whoever ends it, late answers change nothing,
// and memory comes back.
func TestRequestEndsBeforeItsImages(t *testing.T) {
	for name, end := range map[string]func(v *fakeVM, g *gateway){
		"the client left": func(v *fakeVM, g *gateway) {
			g.x.Done()
			if line := g.h.kept[usageProperty]; !strings.Contains(line, `"outcome":"client_left"`) || !strings.Contains(line, "claude-sonnet-5-5") {
				v.t.Errorf("usage %s", line)
			}
		},
		"the host answered": func(v *fakeVM, g *gateway) {
			g.h.props["response.code_details"] = "stream_idle_timeout"
			g.answerHeaders(false, [2]string{":status", "504"}, [2]string{"content-type", "text/plain"})
			g.answerBody("stream timeout", true)
			g.wantError(504, `"code":"timeout"`)
		},
		"the upstream answered": func(v *fakeVM, g *gateway) {
			g.answer(401, "{}")
			g.wantError(401)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, configuration := range []string{"", `{"hold_headers":false}`} {
				v := newVM(t, configuration)
				g := v.ask(withImages("http://a.test/", "http://b.test/", "http://c.test/"))
				v.answer("http://b.test/", 200, file("b", mb))
				v.on(g, func() { end(v, g) })
				if m := v.plugin.images; m.underWay != 2 || m.bytes != 0 {
					t.Errorf("%d are under way, %d bytes held", m.underWay, m.bytes)
				}
				events := len(g.h.events)
				v.answer("http://a.test/", 200, file("a", mb))
				v.end(g)
				v.answer("http://c.test/", 302, "", [2]string{"location", "/2"})
				if g.h.requestResumed != 0 || g.upEnded || slices.ContainsFunc(g.h.events[events:], func(e string) bool {
					return strings.HasPrefix(e, "read") || strings.HasPrefix(e, "reply") || strings.HasPrefix(e, "replace") || strings.HasPrefix(e, "call")
				}) {
					t.Errorf("late answers did something: %q", g.h.events[events:])
				}
				v.wantEmpty()
			}
		})
	}
}

// TestHostAnswersWhileImagesAreWritten: appending past the buffers makes Envoy
// answer 413 from inside the call.
func TestHostAnswersWhileImagesAreWritten(t *testing.T) {
	v := newVM(t, "")
	g := v.ask(withImages("http://a.test/"))
	g.h.onAppend = func() {
		g.h.onAppend = nil
		g.h.props["response.code_details"] = "request_payload_too_large"
		g.answerHeaders(false, [2]string{":status", "413"}, [2]string{"content-type", "text/plain"})
		g.answerBody("Payload Too Large", true)
		g.dead = true
	}
	v.answer("http://a.test/", 200, file("a", 5*mb))
	if g.h.requestResumed != 0 {
		t.Error("resumed after an answer")
	}
	v.end(g)
	g.wantError(413, `"code":"request_too_large"`)
	v.wantEmpty()
}

func TestRequestBodyThatChanges(t *testing.T) {
	for _, body := range []string{withImages(), withImages("http://a.test/"), "{", ""} {
		v := newVM(t, "")
		g := v.ask(withImages("http://a.test/", "http://b.test/"))
		g.h.careless = true
		g.h.bodies[RequestBody] = []byte(body + strings.Repeat(" ", max(g.x.bodySize-len(body), 0)))
		v.answer("http://a.test/", 200, file("a", 10))
		v.answer("http://b.test/", 200, file("a", 10))
		v.end(g)
		if g.upEnded || g.status() != "500" && g.status() != "400" {
			t.Errorf("%q: status %s", body, g.status())
		}
		v.wantEmpty()
	}
}

func TestHostThatWillNotResume(t *testing.T) {
	v := newVM(t, "")
	g := v.ask(withImages("http://a.test/"))
	g.h.refuse = "resume"
	v.answer("http://a.test/", 200, file("a", 10))
	v.end(g)
	g.wantError(500)
	v.wantEmpty()
}

// TestDownloadsInTurns: the shared downloads are used by whoever comes; past them a
// request has one at a time, and gets its next one in turn.
func TestDownloadsInTurns(t *testing.T) {
	v := newVM(t, "")
	one := v.ask(withImages(urlsOf("one", 20)...))
	two := v.ask(withImages(urlsOf("two", 20)...))
	v.wantURLs(append(urlsOf("one", 20), urlsOf("two", imageDownloadsShared-20)...)...)
	three := v.ask(withImages(urlsOf("three", 3)...))
	four := v.ask(withImages(urlsOf("four", 1)...))
	last := func(n int) []string { return v.urls()[len(v.calls)-n:] }
	if want := []string{"http://three.test/0", "http://four.test/0"}; !slices.Equal(last(2), want) {
		t.Errorf("begun %q, want %q", last(2), want)
	}
	v.answer("http://four.test/0", 200, file("4", 10))
	if !four.upEnded {
		t.Error("a small request waits behind larger ones")
	}
	// One at a time for the third, as long as the shared ones are taken.
	v.answer("http://three.test/0", 200, file("3", 10))
	v.answer("http://three.test/1", 200, file("3", 10))
	if want := []string{"http://three.test/2"}; !slices.Equal(last(1), want) || len(v.calls) != imageDownloadsShared+1 {
		t.Errorf("begun %q, want %q", last(1), want)
	}
	v.answer("http://three.test/2", 200, file("3", 10))
	// When shared ones come free those that wait get them in turns.
	five := v.ask(withImages(urlsOf("five", 20)...))
	for i := range 5 {
		v.answer("http://one.test/"+strconv.Itoa(i), 200, file("1", 10))
	}
	want := []string{"http://five.test/0", "http://two.test/4", "http://five.test/1", "http://two.test/5", "http://five.test/2"}
	if !slices.Equal(last(5), want) {
		t.Errorf("begun %q, want %q", last(5), want)
	}
	for _, g := range []*gateway{one, two, three, four, five} {
		v.end(g)
	}
	for len(v.calls) > 0 {
		v.answerNumber(0, 0, "")
	}
	v.wantEmpty()
}

// TestSilentServers: a hundred requests with twenty images each that never come do
// not keep another one from its own for a moment.
func TestSilentServers(t *testing.T) {
	v := newVM(t, "")
	bad := v.silent(100, 20)
	if n := len(v.calls); n != imageDownloadsShared+98 {
		t.Errorf("%d downloads are under way", n)
	}
	for range 3 {
		g := v.ask(withImages("http://a.test/", "http://b.test/"))
		v.answer("http://a.test/", 200, file("a", 10))
		v.answer("http://b.test/", 200, file("b", 10))
		if !g.upEnded {
			t.Fatal("another request waits")
		}
		v.end(g)
	}
	// More than there may ever be: the next one waits, but only for one to end.
	bad = append(bad, v.silent(60, 1)...)
	if n := len(v.calls); n != imageDownloadsMax {
		t.Errorf("%d downloads are under way", n)
	}
	for _, g := range bad[99:] {
		v.end(g)
	}
	g := v.ask(withImages("http://a.test/"))
	if n := len(v.calls); n != imageDownloadsMax {
		t.Errorf("%d downloads are under way: those that were left still count", n)
	}
	v.answerNumber(len(v.calls)-1, 504, "")
	v.answer("http://a.test/", 200, file("a", 10))
	if !g.upEnded {
		t.Error("a request waits though a download has ended")
	}
	for _, g := range v.streams {
		if !g.h.gone {
			v.end(g)
		}
	}
	for len(v.calls) > 0 {
		v.answerNumber(0, 504, "")
	}
	v.wantEmpty()
}

// TestWaitsTooLong: who has waited for 15 s is told so, and may come again.
func TestWaitsTooLong(t *testing.T) {
	v := newVM(t, "")
	v.silent(imageDownloadsMax-1, 1)
	many := v.ask(withImages("http://many.test/0", "http://many.test/1"))
	g := v.ask(withImages("http://a.test/"))
	if n := slices.Index(many.h.events, "tick 250"); n < 0 || slices.Contains(g.h.events, "tick 250") {
		t.Errorf("ticks are asked for by %q and %q", many.h.events, g.h.events)
	}
	if root := v.tick(14 * time.Second); len(root.events) > 0 || g.clientHeaders != nil {
		t.Errorf("after 14 s: %q", root.events)
	}
	later := v.stream()
	later.h.now += (10 * time.Second).Nanoseconds()
	v.on(later, func() { later.chat(withImages("http://later.test/")) })
	v.tick(15100 * time.Millisecond)
	many.wantError(503, `{"error":{"message":"messages[0].content[2].image_url.url: could not download the image (too many downloads were waiting)",`+
		`"type":"server_error","param":null,"code":"overloaded"}}`)
	g.wantError(503, `"messages[0].content[1].image_url.url: could not download the image (too many downloads were waiting)"`)
	for _, g := range []*gateway{many, g} {
		if headerOf(g.clientHeaders, "retry-after") != "1" || g.h.counts["ezat.image_downloads.failed"] != 1 {
			t.Errorf("headers %q, counts %v", g.clientHeaders, g.h.counts)
		}
		g.wantUpstreamUntouched()
		g.wantUsage(`"outcome":"refused"`, `"status":503`)
	}
	if later.clientHeaders != nil {
		t.Error("one who has waited for 5 s is refused")
	}
	// A clock that is set back by an hour makes nobody wait for an hour.
	v.tick(-time.Hour)
	v.tick(15100*time.Millisecond - time.Hour)
	later.wantError(503)
	if root := v.tick(15500*time.Millisecond - time.Hour); !slices.Equal(root.events, []string{"tick 0"}) || v.plugin.ticking {
		t.Errorf("with nobody waiting the plugin goes on to tick: %q", root.events)
	}
	for len(v.calls) > 0 {
		v.answerNumber(0, 504, "")
	}
	for _, g := range v.streams {
		v.end(g)
	}
	v.wantEmpty()
}

// TestHostThatWillNotTick is asked once, and everything goes on.
func TestHostThatWillNotTick(t *testing.T) {
	v := newVM(t, "")
	v.silent(imageDownloadsMax, 1)
	logs := 0
	for range 3 {
		g := v.stream()
		g.h.refuse = "tick"
		v.on(g, func() { g.chat(withImages("http://a.test/")) })
		v.end(g)
		logs += len(g.h.logs)
	}
	if logs != 1 {
		t.Errorf("%d lines in the log", logs)
	}
}

// TestWaitingStartsAnew: the 15 s begin with the callout, not with the request.
func TestWaitingStartsAnew(t *testing.T) {
	v := newVM(t, "")
	v.silent(imageDownloadsMax, 1)
	g := v.ask(withImages("http://a.test/"))
	g.h.now += 10_000_000_000
	v.answerNumber(0, 504, "")
	if call := v.calls[len(v.calls)-1]; call.url() != "http://a.test/" || call.timeoutMs < 14_900 {
		t.Errorf("timeout %d for %s", call.timeoutMs, call.url())
	}
}

// TestImagesWithoutRoom: the request that holds most begins again, alone and with
// its whole need reserved; others go on beside it.
func TestImagesWithoutRoom(t *testing.T) {
	v := newVM(t, `{"images":{"memory_bytes":62914560}}`) // 60 MB: a request's 32 MB and 28 MB
	large := v.ask(withImages(urlsOf("large", 4)...))
	other := v.ask(withImages(urlsOf("other", 4)...))
	for i := range 3 {
		v.answer("http://large.test/"+strconv.Itoa(i), 200, file("l", 9*mb+i))
		v.answer("http://other.test/"+strconv.Itoa(i), 200, file("o", 9*mb))
	}
	small := v.ask(withImages("http://small.test/"))
	v.wantURLs("http://large.test/3", "http://other.test/3", "http://small.test/")
	v.answer("http://small.test/", 200, file("s", 7*mb))
	if !small.upEnded {
		t.Error("a small request has no room")
	}
	if all := large.x.downloads; !all.inLane || all.waiting() || other.x.downloads.inLane || v.plugin.images.bytes != 27*mb {
		t.Errorf("%d bytes are held, the largest has begun %d", v.plugin.images.bytes, all.started)
	}
	v.answer("http://large.test/3", 200, file("late", 10)) // for nobody
	if large.x.downloads.held() != 0 {
		t.Error("an answer to what was asked before counts")
	}
	v.answer("http://other.test/3", 200, file("o", mb))
	if !other.upEnded {
		t.Error("the other request waits")
	}
	for i := range 4 {
		v.answer("http://large.test/"+strconv.Itoa(i), 200, file("l", 8*mb))
	}
	if !large.upEnded || large.h.counts["ezat.image_downloads.failed"] != 0 {
		t.Error("the largest request is not served")
	}
	for _, g := range v.streams {
		v.end(g)
	}
	v.wantEmpty()
}

// TestLaneKeepsItsOrder: those that begin again go one by one, and a client that
// leaves is passed by. What only they hold up is not held up for long.
func TestLaneKeepsItsOrder(t *testing.T) {
	v := newVM(t, `{"images":{"memory_bytes":12582912}}`) // 12 MB: less than a request may need
	var all []*gateway
	for _, name := range []string{"one", "two", "three", "four"} {
		all = append(all, v.ask(withImages(urlsOf(name, 2)...)))
	}
	for _, name := range []string{"one", "two", "three", "four"} {
		v.answer("http://"+name+".test/0", 200, file(name, 5*mb))
	}
	// The third and the fourth had no room.
	fifth := v.ask(withImages("http://five.test/0"))
	v.wantURLs("http://one.test/1", "http://two.test/1", "http://three.test/1", "http://four.test/1")
	v.answer("http://three.test/1", 200, file("late", 1))
	v.answer("http://four.test/1", 200, file("late", 1))
	v.answer("http://one.test/1", 200, file("1", 3*mb)) // no room either, and it is the largest
	v.wantURLs("http://two.test/1")
	v.end(all[3])
	v.answer("http://two.test/1", 200, file("2", mb))
	if all[1].clientHeaders != nil || all[1].upEnded {
		t.Error("the lane's reserve was given away")
	}
	// What they asked for before has all been answered, and each gets all of the memory.
	for _, next := range []struct {
		name string
		g    *gateway
	}{{"three", all[2]}, {"five", fifth}, {"one", all[0]}, {"two", all[1]}} {
		urls := urlsOf(next.name, len(next.g.x.downloads.list))
		v.wantURLs(urls...)
		for i, url := range urls {
			v.answer(url, 200, file(next.name, 8*mb-i*4*mb))
		}
		if !next.g.upEnded {
			t.Errorf("%s is not served", next.name)
		}
	}
	for _, g := range v.streams {
		if !g.h.gone {
			v.end(g)
		}
	}
	v.wantEmpty()
}

// TestRequestLargerThanMemory: what can never be here together is refused at once.
func TestRequestLargerThanMemory(t *testing.T) {
	configuration := `{"images":{"memory_bytes":12582912}}`
	v := newVM(t, configuration)
	g := v.ask(withImages("http://a.test/1", "http://a.test/2", "http://a.test/3"))
	v.answer("http://a.test/1", 200, file("1", 8*mb))
	v.answer("http://a.test/2", 200, file("1", 3*mb))
	v.answer("http://a.test/3", 200, file("1", mb))
	if !g.upEnded {
		t.Error("a request that fits is not sent")
	}
	v.end(g)
	v.wantEmpty()
	for _, sizes := range [][]int{{8 * mb, 3 * mb, mb + 1}, {8 * mb, 4 * mb, 1}} {
		v := newVM(t, configuration)
		g := v.ask(withImages("http://a.test/1", "http://a.test/2", "http://a.test/3"))
		for i, size := range sizes {
			v.answer("http://a.test/"+strconv.Itoa(i+1), 200, file("1", size))
		}
		v.end(g)
		g.wantError(400, "messages[0].content[3].image_url.url: could not download the image (all images together are larger than 12 MB)")
		v.wantEmpty()
	}
}

// TestPluginsShareMemory: what is under way and what is held are the VM's, and each
// plugin has its own number for the latter, and its own ticks.
func TestPluginsShareMemory(t *testing.T) {
	v := newVM(t, `{"images":{"memory_bytes":52428800}}`)
	one := v.ask(withImages(urlsOf("one", 3)...))
	first := v.plugin
	second := startPlugin(newFakeHost(t), []byte(`{"images":{"memory_bytes":10485760,"http_cluster":"second"}}`))
	second.images = first.images
	v.answer("http://one.test/1", 200, file("1", 5*mb))
	v.answer("http://one.test/2", 200, file("2", mb))
	v.plugin = second
	two := v.stream()
	v.at = two.h
	two.chat(withImages("http://two.test/"))
	v.plugin = first
	if cluster := v.calls[1].cluster; cluster != "second" {
		t.Errorf("cluster %s", cluster)
	}
	// 6 MB are here, so 7 MB have no room in the second plugin's 10 MB.
	v.answer("http://two.test/", 200, file("2", 7*mb))
	if all := two.x.downloads; !all.inLane || !second.ticking || first.ticking {
		t.Errorf("the second plugin's request does not wait: %+v", all)
	}
	v.wantURLs("http://one.test/0")
	v.answer("http://one.test/0", 200, file("3", 1))
	v.wantURLs("http://two.test/")
	v.answer("http://two.test/", 200, file("1", 7*mb))
	if !one.upEnded || !two.upEnded {
		t.Error("a request waits")
	}
	v.end(one)
	v.end(two)
	v.wantEmpty()
}

// TestRequestBeginsAgainInTheOthersCallback: its plugin is made to tick although
// another stream's callback is running.
func TestRequestBeginsAgainInTheOthersCallback(t *testing.T) {
	v := newVM(t, `{"images":{"memory_bytes":36700160}}`) // 35 MB
	large := v.ask(withImages(urlsOf("large", 3)...))
	v.answer("http://large.test/0", 200, file("l", 10*mb))
	v.answer("http://large.test/1", 200, file("l", 10*mb))
	others := []*gateway{}
	for i := range 3 {
		others = append(others, v.ask(withImages(urlsOf("other"+strconv.Itoa(i), 2)...)))
	}
	for i := range 2 {
		v.answer("http://other"+strconv.Itoa(i)+".test/0", 200, file("o", 6*mb))
	}
	if !v.plugin.images.holding.first().inLane && v.plugin.ticking {
		t.Fatal("somebody waits too early")
	}
	v.answer("http://other2.test/0", 200, file("o", 6*mb))
	if !large.x.downloads.inLane || !v.plugin.ticking || !slices.Contains(large.h.events, "tick 250") {
		t.Errorf("the largest goes on: %q", large.h.events)
	}
	v.tick(20 * time.Second)
	large.wantError(503, "messages[0].content[1].image_url.url: could not download the image (too many downloads were waiting)")
	for _, g := range others {
		if g.clientHeaders != nil {
			t.Error("another one is refused")
		}
	}
	for len(v.calls) > 0 {
		v.answerNumber(0, 200, file("x", 1))
	}
	for _, g := range v.streams {
		v.end(g)
	}
	v.wantEmpty()
}

// full is a VM in which nothing more may begin, and the stream whose download ends
// next.
func full(t *testing.T) (*fakeVM, *gateway) {
	v := newVM(t, "")
	v.plugin.images.shared, v.plugin.images.most = 1, 1
	return v, v.ask(withImages("http://one.test/"))
}

// TestWaitingRequestIsRefused: a callout that fails at once when its turn comes,
// during the callback of another stream, ends its own stream only.
func TestWaitingRequestIsRefused(t *testing.T) {
	v, one := full(t)
	two := v.ask(withImages("http://two.test/"))
	three := v.ask(withImages("http://three.test/"))
	two.h.refuse = "call"
	v.answer("http://one.test/", 200, file("1", 1))
	two.wantError(400, "(no connection)")
	if !one.upEnded {
		t.Error("the first request waits")
	}
	v.wantURLs("http://three.test/")
	v.answer("http://three.test/", 200, file("1", 1))
	for _, g := range []*gateway{one, two, three} {
		v.end(g)
	}
	v.wantEmpty()
}

// TestStreamThatVanishes: a host that deletes a stream without a word.
func TestStreamThatVanishes(t *testing.T) {
	v, one := full(t)
	two := v.ask(withImages("http://two.test/"))
	three := v.ask(withImages("http://three.test/"))
	four := v.ask(withImages("http://four.test/"))
	two.h.gone = true
	v.answer("http://one.test/", 200, file("1", 1))
	v.wantURLs("http://three.test/")
	four.h.gone = true
	v.tick(20 * time.Second)
	v.answer("http://three.test/", 200, file("1", 1))
	v.end(one)
	v.end(three)
	v.wantEmpty()
}

// TestBugWhileDownloading: a panic ends the stream that it belongs to, and gives
// back what it has.
func TestBugWhileDownloading(t *testing.T) {
	v := newVM(t, "")
	v.plugin.images.shared, v.plugin.images.most = 2, 2
	one := v.ask(withImages("http://one.test/1", "http://one.test/2"))
	two := v.ask(withImages("http://two.test/"))
	three := v.ask(withImages("http://three.test/"))
	one.x.host = &takeBug{one.h}
	two.x.host = &callBug{two.h}
	v.answer("http://one.test/2", 200, file("1", 1))
	one.wantError(500)
	two.wantError(500)
	v.wantURLs("http://one.test/1", "http://three.test/")
	v.answer("http://one.test/1", 200, file("1", 1))
	v.answer("http://three.test/", 200, file("1", 1))
	if !three.upEnded {
		t.Error("the third request waits")
	}
	for _, g := range v.streams {
		g.h.logs = slices.DeleteFunc(g.h.logs, func(line string) bool { return strings.HasPrefix(line, "critical: bug in the filter") })
		v.end(g)
	}
	v.wantEmpty()
}

type takeBug struct{ Host }

func (*takeBug) TakeBody(Body, int) ([]byte, error) {
	var none []int
	return nil, errStatus(none[len(none)])
}

type callBug struct{ Host }

func (*callBug) Call(string, [][2]string, int, func(CallResult)) error {
	var none []int
	return errStatus(none[len(none)])
}

func errStatus(int) error { return errRefused }

func TestGarbageIsCollected(t *testing.T) {
	v := newVM(t, "")
	for range 10 {
		g := v.ask(withImages("http://a.test/"))
		v.answer("http://a.test/", 200, file("a", 10*mb))
		v.end(g)
		if n := v.plugin.images.garbage; n > imageGarbageBytesMax+10*mb {
			t.Fatalf("%d bytes of garbage", n)
		}
	}
	if n := v.plugin.images.garbage; n == 0 || n > 40*mb {
		t.Errorf("%d bytes of garbage after ten images", n)
	}
}

// FuzzDownloads lets a few streams and a host do anything in any order. Each
// byte of the script is a step. What must hold after each is in check; in the
// end nothing is left.
func FuzzDownloads(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0, 16, 32, 0, 3, 19, 3, 0, 2, 3, 3, 3})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) <= 300 {
			playDownloads(t, script)
		}
	})
}

func TestDownloadsInAnyOrder(t *testing.T) {
	for seed := range uint64(1000) {
		script := make([]byte, 120)
		state := seed*0x9E3779B97F4A7C15 + 1
		for i := range script {
			state ^= state << 13
			state ^= state >> 7
			state ^= state << 17
			script[i] = byte(state >> 32)
		}
		playDownloads(t, script)
		if t.Failed() {
			t.Fatalf("script % x", script)
		}
	}
}

func playDownloads(t *testing.T, script []byte) {
	if len(script) == 0 {
		return
	}
	v := newVM(t, []string{"", `{"hold_headers":false}`}[script[0]&1])
	// Small numbers, so that all of them are met: memory for less than one request,
	// for one, for some.
	m := v.plugin.images
	m.shared, m.most, m.requestBytes = 1+int(script[0]>>1&3), 4+int(script[0]>>6), 20_000
	v.plugin.config.images.memoryBytes = []int{12_000, 20_000, 30_000, 60_000, 12_000, 25_000, 32_000, 40_000}[script[0]>>3&7]
	if script[0] >= 0x80 {
		v.plugin.ledger.bytesMax = 30_000 // some fail though their images have room
	}
	for _, step := range script[1:] {
		how := int(step >> 4)
		switch step & 15 {
		case 0, 1, 2, 3:
			askForSome(v, how)
		case 4:
			if g := v.some(how); g != nil {
				v.end(g)
			}
		case 5:
			if g := v.some(how); g != nil && g.clientHeaders == nil {
				v.on(g, func() {
					g.h.props["response.code_details"] = "stream_idle_timeout"
					g.answerHeaders(true, [2]string{":status", "504"})
				})
			}
		case 6:
			if g := v.some(how); g != nil {
				g.h.refuse = []string{"call", "read callout", "resume", "reply", "append", "", "", ""}[how%8]
			}
		case 7:
			if g := v.some(how); g != nil {
				g.h.now += int64(how) * 2_000_000_000
			}
			if how > 7 {
				v.tick(time.Duration(how) * 2 * time.Second)
			}
		default:
			answerSome(v, int(step&7), how)
		}
	}
	for len(v.calls) > 0 {
		answerSome(v, 0, 0)
	}
	if root := v.tick(0); v.plugin.ticking || root.ticks != 0 {
		t.Error("the plugin ticks though nobody waits")
	}
	for _, g := range v.streams {
		if !g.h.gone {
			if g.x.downloads != nil || g.x.request == requestFetching {
				t.Errorf("a stream waits for ever: %q", g.h.events)
			}
			v.end(g)
		}
		if bytes.Contains(g.upBody, []byte(".test/")) {
			t.Errorf("untranslated bytes went up: %.200s", g.upBody)
		}
		if n := g.h.counts["ezat.image_downloads.failed"]; n > 1 {
			t.Errorf("%d failures in one request", n)
		}
		if g.upEnded && g.h.refuse == "" && !strings.Contains(string(g.upBody), `"data":"iVBOR`) {
			t.Errorf("a request went up without its images: %.200s", g.upBody)
		}
	}
	v.wantEmpty()
}

// some is one of the streams that live.
func (v *fakeVM) some(how int) *gateway {
	var live []*gateway
	for _, g := range v.streams {
		if !g.h.gone {
			live = append(live, g)
		}
	}
	if len(live) == 0 {
		return nil
	}
	return live[how%len(live)]
}

func askForSome(v *fakeVM, how int) {
	urls := []string{"http://a.test/", "https://b.test/", "http://a.test/", "http://c.test/", "https://d.test/", "http://e.test/", "http://f.test/"}
	v.ask(withImages(urls[how%4 : how%4+1+how/4]...))
}

var (
	smallFile = file("small", 1000)
	largeFile = file("large", 9000)
)

func answerSome(v *fakeVM, kind, how int) {
	if len(v.calls) == 0 {
		return
	}
	i := how % len(v.calls)
	switch kind {
	case 0, 1, 2:
		v.answerNumber(i, 200, smallFile)
	case 3:
		v.answerNumber(i, 200, largeFile)
	case 4, 5:
		v.answerNumber(i, 302, "", [2]string{"location", "/" + strconv.Itoa(how)})
	case 6:
		v.answerNumber(i, 404, "")
	case 7:
		v.answerNumber(i, 0, "")
	}
}
