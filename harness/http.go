package harness

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// hopByHop are the headers that belong to one connection: Envoy takes them off
// what it passes on.
var hopByHop = map[string]bool{
	"connection": true, "keep-alive": true, "proxy-connection": true,
	"transfer-encoding": true, "upgrade": true, "te": true, "trailer": true,
}

// headersFromHTTP turns Go's header map into an ordered one. Go has lost the
// order of the names, so they are sorted; the values of a name keep theirs.
func headersFromHTTP(m http.Header) Headers {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	var h Headers
	for _, name := range names {
		if hopByHop[strings.ToLower(name)] {
			continue
		}
		for _, v := range m[name] {
			h.Add(name, v)
		}
	}
	return h
}

// responseHeaders are an answer's, with the status.
func responseHeaders(resp *http.Response) Headers {
	h := Headers{{":status", strconv.Itoa(resp.StatusCode)}}
	for _, f := range headersFromHTTP(resp.Header) {
		h.Add(f.Name, f.Value)
	}
	return h
}

// newRequest turns headers into a request for a cluster's Transport.
func newRequest(ctx context.Context, c *Cluster, h Headers, body io.ReadCloser) (*http.Request, error) {
	scheme, authority := c.Scheme, c.Authority
	if scheme == "" {
		if scheme = h.Get(":scheme"); scheme == "" {
			scheme = "http"
		}
	}
	if authority == "" {
		authority = h.Get(":authority")
	}
	u, err := url.Parse(scheme + "://" + authority + h.Get(":path"))
	if err != nil {
		return nil, err
	}
	req := (&http.Request{
		Method: h.Get(":method"), URL: u, Host: h.Get(":authority"),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: body, ContentLength: -1,
	}).WithContext(ctx)
	for _, f := range h {
		if strings.HasPrefix(f.Name, ":") || hopByHop[f.Name] {
			continue
		}
		if f.Name == "content-length" {
			n, err := strconv.ParseInt(f.Value, 10, 64)
			if err != nil || n < 0 {
				return nil, errors.New("invalid content-length")
			}
			req.ContentLength = n
			continue
		}
		req.Header.Add(f.Name, f.Value)
	}
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header["User-Agent"] = nil // or Go adds its own
	}
	return req, nil
}

// isDial says whether an error is of a connection that never was.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
