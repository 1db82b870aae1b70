package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// shownBytesMax bounds how much of a body is printed.
const shownBytesMax = 4096

// keyHeaders are never printed.
var keyHeaders = []string{"Authorization", "X-Api-Key", "Cookie"}

// lines is a writer for several writers at once.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// show prints each request before the handler has it.
func show(next http.Handler, out io.Writer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head, err := io.ReadAll(io.LimitReader(r.Body, shownBytesMax))
		if err != nil {
			panic(http.ErrAbortHandler) // the other side has gone
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
		fmt.Fprint(out, shown(r, head))
		next.ServeHTTP(w, r)
	})
}

// shown writes a request as it stands on the wire, keys left out.
func shown(r *http.Request, body []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n→ %s %s\n  host: %s\n", r.Method, r.URL.RequestURI(), r.Host)
	for _, key := range slices.Sorted(maps.Keys(r.Header)) {
		value := strings.Join(r.Header[key], ", ")
		if slices.Contains(keyHeaders, key) {
			value = "…"
		}
		fmt.Fprintf(&b, "  %s: %s\n", strings.ToLower(key), value)
	}
	if len(body) > 0 {
		fmt.Fprintf(&b, "  %s\n", body)
	}
	if len(body) == shownBytesMax {
		b.WriteString("  … and so on\n")
	}
	return b.String() + "\n"
}

// upstreamURL reads the -upstream flag. The scheme has to be there: a key must
// not go out in plain text by oversight.
func upstreamURL(text string) (*url.URL, error) {
	target, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if target.Scheme != "http" && target.Scheme != "https" || target.Host == "" || strings.Trim(target.Path, "/") != "" {
		return nil, fmt.Errorf("upstream %q: use https://HOST[:PORT] or http://HOST:PORT", text)
	}
	return target, nil
}

// forwardTo passes requests on to another upstream, streams at once.
func forwardTo(target *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, target.Host
		},
	}
}
