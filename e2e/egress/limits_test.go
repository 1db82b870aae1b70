package egress_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// imageBytesMax is the contract's 10 MB for an image, imagesBytesMax its 32 MB for
// the images of a request.
const (
	imageBytesMax  = 10 << 20
	imagesBytesMax = 32 << 20
)

const (
	notImage = "not a JPEG, PNG, GIF or WebP image"
	tooLarge = "larger than 10 MB"
	timedOut = "timed out"
	broken   = "the answer broke off"
)

// statuses are answers that are no file, some of them dressed as Envoy's own.
func statuses(w *world) []attempt {
	host := w.host(publicIP)
	w.page("status", func(rw http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscanf(r.URL.Path, "/status/%d", &n)
		rw.Header().Set("x-egress-details", "dns_resolution_failure{address_denied}")
		rw.Header().Set("x-egress-flags", "DF")
		rw.Header().Set("x-envoy-overloaded", "true")
		rw.WriteHeader(n)
	})
	var all []attempt
	for _, status := range []int{204, 206, 300, 302, 304, 400, 401, 403, 404, 410, 429, 500, 503, 504, 599} {
		reason := "HTTP " + strconv.Itoa(status)
		all = append(all, attempt{name: reason, url: w.plain(host, "/status/"+strconv.Itoa(status)), reason: reason})
	}
	return all
}

// files are told by their first bytes, not by what the server calls them.
func files(w *world) []attempt {
	host := w.host(publicIP)
	w.file("named-text", "text/html", png)
	w.file("named-png", "image/png", jpeg)
	w.file("unnamed", "", gif)
	w.file("webp", "image/webp", webp)
	w.file("html", "image/png", []byte("<html><img src=\"x.png\"></html>"))
	w.file("svg", "image/svg+xml", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))
	w.file("pdf", "image/png", []byte("%PDF-1.7\n"))
	w.file("bmp", "image/bmp", []byte("BM\x00\x00\x00\x00\x00\x00"))
	w.file("empty", "image/png", nil)
	w.file("short", "image/png", png[:3])
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	zip.Write(png)
	zip.Close()
	w.page("gzip", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("content-encoding", "gzip")
		rw.Write(packed.Bytes())
	})
	// Not packed at all, whatever it says: the file is right, but it may not be believed.
	w.page("said-gzip", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("content-encoding", "br")
		rw.Write(png)
	})
	all := []attempt{
		{name: "a PNG called text", url: w.plain(host, "/named-text"), mediaType: "image/png", file: png},
		{name: "a JPEG called PNG", url: w.plain(host, "/named-png"), mediaType: "image/jpeg", file: jpeg},
		{name: "a GIF without a type", url: w.plain(host, "/unnamed"), mediaType: "image/gif", file: gif},
		{name: "a WebP", url: w.tls(host, "/webp"), mediaType: "image/webp", file: webp},
	}
	for _, name := range []string{"html", "svg", "pdf", "bmp", "empty", "short", "gzip", "said-gzip"} {
		all = append(all, attempt{name: name, url: w.plain(host, "/"+name), reason: notImage})
	}
	return all
}

// sizes are files around the limit, with and without their lengths.
func sizes(w *world) []attempt {
	host := w.host(publicIP)
	// /size/n has n bytes, and says so; /chunked/n does not.
	size := func(r *http.Request) []byte {
		_, text, _ := strings.Cut(r.URL.Path[1:], "/")
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		return pngOf(n, n)
	}
	w.page("size", func(rw http.ResponseWriter, r *http.Request) {
		data := size(r)
		rw.Header().Set("content-length", strconv.Itoa(len(data)))
		rw.Write(data)
	})
	w.page("chunked", func(rw http.ResponseWriter, r *http.Request) {
		flush(rw)
		rw.Write(size(r))
	})
	var all []attempt
	for _, n := range []int{imageBytesMax, imageBytesMax + 1, 11 << 20} {
		for _, kind := range []string{"size", "chunked"} {
			a := attempt{name: fmt.Sprintf("%s %d", kind, n), url: w.plain(host, fmt.Sprintf("/%s/%d", kind, n))}
			if n > imageBytesMax {
				a.reason = tooLarge
			} else {
				a.mediaType, a.file = "image/png", pngOf(n, n)
			}
			all = append(all, a)
		}
	}
	return all
}

// flush sends what there is, which also takes the length away.
func flush(w http.ResponseWriter) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(http.ErrAbortHandler) // the other side has gone
	}
}

// testEndlessFile: a file without an end is not read on.
func (w *world) testEndlessFile(t *testing.T) {
	var written atomic.Int64
	ended := make(chan struct{})
	w.page("endless", func(rw http.ResponseWriter, r *http.Request) {
		defer close(ended)
		piece := pngOf(1<<20, 0)
		for {
			n, err := rw.Write(piece)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	})
	w.try(t, attempt{url: w.plain(w.host(publicIP), "/endless"), reason: tooLarge})
	within(t, "the server is let go", ended)
	// What has been written but not read lies in the buffers of two sockets.
	if n := written.Load(); n > 4*imageBytesMax {
		t.Errorf("%d bytes were taken of an endless file", n)
	}
}

// slowServers take longer than the 15 s of a download, in every way.
func slowServers(w *world) []attempt {
	host := w.host(publicIP)
	wait := func(r *http.Request, d time.Duration) {
		select {
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-time.After(d):
		}
	}
	w.page("never", func(rw http.ResponseWriter, r *http.Request) { wait(r, patience) })
	w.page("drip", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("content-length", strconv.Itoa(len(png)*1000))
		for i := 0; ; i = (i + 1) % len(png) {
			rw.Write(png[i : i+1])
			flush(rw)
			wait(r, 50*time.Millisecond)
		}
	})
	w.raw("drip-headers", func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for i := 0; i < 2000; i++ {
			if _, err := fmt.Fprintf(conn, "x-%d: y\r\n", i%90); err != nil {
				return
			}
			time.Sleep(300 * time.Millisecond)
		}
	})
	// Three hops of 6 s each: no single one takes too long, but the whole does.
	w.page("slow-hops", func(rw http.ResponseWriter, r *http.Request) {
		wait(r, 6*time.Second)
		if strings.HasSuffix(r.URL.Path, "xx") {
			rw.Write(png)
			return
		}
		http.Redirect(rw, r, r.URL.Path+"x", http.StatusFound)
	})
	w.page("half-slow", func(rw http.ResponseWriter, r *http.Request) {
		rw.Write(png[:20])
		flush(rw)
		wait(r, 8*time.Second)
		rw.Write(png[20:])
	})
	return []attempt{
		{name: "no answer", url: w.plain(host, "/never"), reason: timedOut},
		{name: "no answer over TLS", url: w.tls(host, "/never"), reason: timedOut},
		{name: "a body that drips", url: w.plain(host, "/drip"), reason: timedOut},
		{name: "headers that drip", url: w.plain(host, "/drip-headers"), reason: timedOut},
		{name: "hops that are slow together", url: w.plain(host, "/slow-hops/"), reason: timedOut},
		{name: "8 s", url: w.plain(host, "/half-slow")},
	}
}

// brokenServers break HTTP.
func brokenServers(w *world) []attempt {
	host := w.host(publicIP)
	answers := map[string]string{
		"shorter":      fmt.Sprintf("HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s", len(png)+1, png),
		"longer":       fmt.Sprintf("HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s and more", len(png), png),
		"no-length":    "HTTP/1.0 200 OK\r\n\r\n" + string(png),
		"hints":        fmt.Sprintf("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s", len(png), png),
		"huge-headers": "HTTP/1.1 200 OK\r\nx: " + strings.Repeat("y", 200_000) + "\r\ncontent-length: 0\r\n\r\n",
		"bad-chunk":    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnone\r\n",
		"half-chunk":   "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4000\r\n" + string(png),
		"half-headers": "HTTP/1.1 200 OK\r\ncontent-le",
		"garbage":      "SSH-2.0-OpenSSH_9.9\r\n",
		"two-lengths":  "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
		"switching":    "HTTP/1.1 101 Switching Protocols\r\nupgrade: image\r\nconnection: upgrade\r\n\r\n" + string(png),
		"nothing":      "",
	}
	for name, text := range answers {
		w.raw(name, func(conn net.Conn) { io.WriteString(conn, text) })
	}
	w.raw("reset", func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n"+string(png))
		time.Sleep(300 * time.Millisecond) // so that the beginning is read before the reset
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
	})
	return []attempt{
		{name: "shorter than its length", url: w.plain(host, "/shorter"), reason: broken},
		{name: "the same over TLS", url: w.tls(host, "/shorter"), reason: broken},
		{name: "reset in the middle", url: w.plain(host, "/reset"), reason: broken},
		{name: "a bad chunk", url: w.plain(host, "/bad-chunk"), reason: broken},
		{name: "half a chunk", url: w.plain(host, "/half-chunk"), reason: broken},
		{name: "longer than its length", url: w.plain(host, "/longer")},
		{name: "HTTP/1.0 without a length", url: w.plain(host, "/no-length")},
		{name: "early hints first", url: w.plain(host, "/hints")},
		{name: "200 kB of headers", url: w.plain(host, "/huge-headers"), reason: noConnection},
		{name: "half the headers", url: w.plain(host, "/half-headers"), reason: noConnection},
		{name: "another protocol", url: w.plain(host, "/garbage"), reason: noConnection},
		{name: "two lengths", url: w.plain(host, "/two-lengths"), reason: noConnection},
		{name: "another protocol, announced", url: w.plain(host, "/switching"), reason: "HTTP 101"},
		{name: "nothing", url: w.plain(host, "/nothing"), reason: noConnection},
	}
}

// testCounts: 20 image URLs, each counted as often as it is used, and downloaded once.
func (w *world) testCounts(t *testing.T) {
	const urlsMax = 20
	host := w.host(publicIP)
	w.page("counted", func(rw http.ResponseWriter, r *http.Request) { rw.Write(pngOf(500, len(r.URL.RawQuery))) })
	w.file("counted-once", "image/png", png)
	w.file("not-counted", "image/png", png)
	var different []string
	var files, copies [][]byte
	for i := range urlsMax {
		query := strings.Repeat("q", i)
		different = append(different, w.plain(host, "/counted?"+query))
		files, copies = append(files, pngOf(500, len(query))), append(copies, png)
	}
	ask := func(urls ...string) outcome {
		o, err := w.ask(t.Context(), urls...)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	wantServed(t, ask(different...), "image/png", files...)

	once := w.plain(host, "/counted-once")
	wantServed(t, ask(repeat(once, urlsMax)...), "image/png", copies...)
	if n := len(w.requests("counted-once")); n != 1 {
		t.Errorf("one URL was downloaded %d times", n)
	}

	const message = "messages[0].content[21].image_url.url: a request may have at most 20 image URLs"
	wantRefused(t, ask(repeat(w.plain(host, "/not-counted"), urlsMax+1)...), message)
	if n := len(w.requests("not-counted")); n != 0 {
		t.Errorf("%d downloads were begun for a request with too many", n)
	}
}

func repeat(text string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = text
	}
	return all
}

// testTotals: 32 MB of downloads, a file used twice counted twice.
func (w *world) testTotals(t *testing.T) {
	host := w.host(publicIP)
	const quarter = imagesBytesMax / 4
	w.page("quarter", func(rw http.ResponseWriter, r *http.Request) { rw.Write(pngOf(quarter, len(r.URL.RawQuery))) })
	w.page("more", func(rw http.ResponseWriter, r *http.Request) { rw.Write(pngOf(quarter+1, 0)) })
	quarters := []string{w.plain(host, "/quarter?1"), w.plain(host, "/quarter?22"), w.plain(host, "/quarter?333"), w.plain(host, "/quarter?4444")}
	o, err := w.ask(t.Context(), quarters...)
	if err != nil {
		t.Fatal(err)
	}
	// 32 MB of images are more than 32 MB in base64: the upstream's refusal comes back.
	if o.status != 413 || !o.reached {
		t.Errorf("status %d, upstream asked: %v, %s", o.status, o.reached, o.body)
	}
	const message = "].image_url.url: could not download the image (all images together are larger than 32 MB)"
	for _, urls := range [][]string{
		append(quarters[:3:3], w.plain(host, "/more")),
		repeat(w.plain(host, "/more"), 4),
	} {
		o, err := w.ask(t.Context(), urls...)
		if err != nil {
			t.Fatal(err)
		}
		if o.status != 400 || o.reached || !strings.Contains(o.body, message) {
			t.Errorf("status %d, upstream asked: %v, %s", o.status, o.reached, o.body)
		}
	}
}
