package harness

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
)

// Recorder is a Transport that keeps what goes upstream. Set Next before use.
type Recorder struct {
	Next http.RoundTripper
	// CountMax is the number of requests kept, the oldest go first; default 256.
	CountMax int
	// BodyBytesMax is how much of each body is kept; default 64 MiB.
	BodyBytesMax int
	// OnRequest takes each request once its body has been read to the end, or
	// was given up. It runs on the Transport's goroutine.
	OnRequest func(Recorded)

	mu       sync.Mutex
	requests []*Recorded
}

// Recorded is one request that went upstream.
type Recorded struct {
	Method, URL, Host string
	Header            http.Header
	Body              []byte
	Truncated         bool // the body was longer than BodyBytesMax
}

// secretHeaders hold keys.
var secretHeaders = []string{"Authorization", "X-Api-Key", "Proxy-Authorization", "Cookie"}

// Redacted is a copy whose headers hold no keys.
func (r Recorded) Redacted() Recorded {
	r.Header = r.Header.Clone()
	for _, name := range secretHeaders {
		if r.Header.Get(name) != "" {
			r.Header.Set(name, "(not shown)")
		}
	}
	return r
}

// RoundTrip records the request and hands it on.
func (c *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	rec := &Recorded{Method: req.Method, URL: req.URL.String(), Host: req.Host, Header: req.Header.Clone()}
	c.mu.Lock()
	limit := 256
	if c.CountMax > 0 {
		limit = c.CountMax
	}
	if len(c.requests) >= limit {
		c.requests = slices.Delete(c.requests, 0, len(c.requests)-limit+1)
	}
	c.requests = append(c.requests, rec)
	c.mu.Unlock()
	if req.Body == nil || req.Body == http.NoBody {
		c.done(rec)
		return c.Next.RoundTrip(req)
	}
	out := req.Clone(req.Context())
	out.Trailer = req.Trailer // the sender fills it in while the body is read
	out.Body = &recordedBody{c: c, rec: rec, body: req.Body}
	return c.Next.RoundTrip(out)
}

func (c *Recorder) done(rec *Recorded) {
	if c.OnRequest != nil {
		c.mu.Lock()
		r := *rec
		c.mu.Unlock()
		c.OnRequest(r)
	}
}

// Requests returns what has gone upstream, oldest first. A body that is still
// on its way is there as far as it has come.
func (c *Recorder) Requests() []Recorded {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Recorded, len(c.requests))
	for i, r := range c.requests {
		out[i] = *r
		out[i].Header = r.Header.Clone()
		out[i].Body = bytes.Clone(r.Body)
	}
	return out
}

type recordedBody struct {
	c    *Recorder
	rec  *Recorded
	body io.ReadCloser
	once sync.Once
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	limit := 64 << 20
	if b.c.BodyBytesMax > 0 {
		limit = b.c.BodyBytesMax
	}
	b.c.mu.Lock()
	keep := min(n, limit-len(b.rec.Body))
	b.rec.Body = append(b.rec.Body, p[:keep]...)
	b.rec.Truncated = b.rec.Truncated || keep < n
	b.c.mu.Unlock()
	if err != nil {
		b.once.Do(func() { b.c.done(b.rec) })
	}
	return n, err
}

func (b *recordedBody) Close() error {
	b.once.Do(func() { b.c.done(b.rec) })
	return b.body.Close()
}
