package cases

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Downloads plays the image servers of a case: it hands out the scripted answers and
// remembers what was asked for. Several downloads of one request may come in any order,
// so an answer is found by host and path.
type Downloads struct {
	mu   sync.Mutex
	left []Call
	sent []Sent
}

// PlayDownloads returns image servers that no one has asked yet.
func (c *Case) PlayDownloads() *Downloads { return &Downloads{left: slices.Clone(c.Downloads)} }

// Answer takes a request for an image. One that the case does not have gets a 500, and
// Compare says so.
func (d *Downloads) Answer(s Sent) Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = append(d.sent, s)
	i := slices.IndexFunc(d.left, func(c Call) bool { return c.Want.asks(s) })
	if i < 0 {
		return Answer{Status: 500}
	}
	answer := d.left[i].Answer
	d.left = slices.Delete(d.left, i, i+1)
	return answer
}

// Sent is what was asked for so far.
func (d *Downloads) Sent() []Sent {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.sent)
}

// IsDownload tells the request for an image from those that go upstream, where a level
// sees both in one place.
func IsDownload(h Header) bool {
	_, ok := h.Get("x-image-scheme")
	return ok
}

// asks tells whether this is the request that is wanted.
func (w *Wanted) asks(s Sent) bool {
	authority, _ := w.Must.Get("authority")
	got, _ := s.Header.Get("authority")
	return w.Method == s.Method && w.Path == s.Path && authority == got
}

// checkDownload refuses what would make a download match by chance.
func checkDownload(c Call) error {
	_, authority := c.Want.Must.Get("authority")
	_, scheme := c.Want.Must.Get("x-image-scheme")
	if c.Want.Method != "GET" || !authority || !scheme {
		return fmt.Errorf("a download needs a request line with GET, authority and x-image-scheme")
	}
	return nil
}

// downloads compares what was asked of image servers.
func (d *differences) downloads(want []Call, got []Sent) {
	left := slices.Clone(got)
	for _, call := range want {
		what := "download of " + call.Want.Path
		i := slices.IndexFunc(left, func(s Sent) bool { return call.Want.asks(s) })
		if i < 0 {
			d.addf("%s: it was not asked for", what)
			continue
		}
		d.download(what, call.Want, left[i])
		left = slices.Delete(left, i, i+1)
	}
	for _, s := range left {
		authority, _ := s.Header.Get("authority")
		d.addf("%s %s of %s was asked for, which the case does not have", s.Method, s.Path, authority)
	}
}

// download compares one request for an image, with what holds for every one of them:
// nothing of the client's goes along, nor what asks for a part of the file or another
// form of it. The core knows no headers but those that follow from the URL.
func (d *differences) download(what string, want Wanted, got Sent) {
	if d.level == Core {
		scheme, _ := want.Must.Get("x-image-scheme")
		d.headers(what, Header{{"x-image-scheme", scheme}}, nil, got.Header)
		return
	}
	d.headers(what, want.Must, want.MustNot, got.Header)
	if len(got.Body) > 0 {
		d.addf("%s: it has a body of %d bytes", what, len(got.Body))
	}
	d.headers(what, Header{{"accept-encoding", "identity"}}, []string{
		"authorization", "x-api-key", "anthropic-version", "content-type", "cookie", "range", "te", "traceparent",
	}, got.Header)
	for _, f := range got.Header {
		if name := strings.ToLower(f[0]); strings.HasPrefix(name, "openai-") || strings.HasPrefix(name, "x-stainless-") || strings.HasPrefix(name, "x-ezat-") {
			d.addf("%s: header %s: %s may not go along", what, name, f[1])
		}
	}
}
