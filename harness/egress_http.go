package harness

import (
	"bufio"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// target is where a download goes.
type target struct {
	https     bool
	authority string     // as the guest spells it; the Host header
	host      string     // the name, or the text of an address without brackets
	literal   netip.Addr // the host's address when it is one
	port      uint16
	path      string // the request target, as the guest spells it
}

// readTarget reads a callout's headers, and finds what Envoy's egress would not
// send.
func readTarget(h Headers) (target, error) {
	t := target{authority: h.Get(":authority"), path: h.Get(":path")}
	scheme := h.Get(imageSchemeHeader)
	t.https = scheme == "https"
	if fault := requestFault(h); fault != "" {
		return t, &egressFault{503, fault, ""}
	}
	switch {
	case h.Bytes() > headerBytesDefault:
		return t, errLongRequest
	case h.Get(":method") != http.MethodGet, t.path == "", !printable(t.path):
		return t, errBadRequest
	case t.authority == "", !printable(t.authority), strings.ContainsAny(t.authority, `\#/?"<>^{|}`+"`"):
		return t, errBadAuthority
	case t.path[0] != '/':
		return t, errAbsolutePath
	case strings.Contains(t.path, "#"):
		return t, errFragment
	case scheme != "http" && !t.https:
		return t, errNoRoute
	}
	return t, t.readAuthority()
}

// printable says whether a text is of ASCII without spaces and control bytes.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// readAuthority splits the authority into host and port.
func (t *target) readAuthority() error {
	host, port := t.authority, ""
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host, port = host[:colon], host[colon+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return errBadName
		}
		t.port = uint16(n)
	} else if t.port = 80; t.https {
		t.port = 443
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !ok || err != nil || !a.Is6() || a.Zone() != "" {
			return errBadName
		}
		t.host, t.literal = inner, a
		return nil
	}
	t.host = strings.ToLower(strings.TrimSuffix(host, "."))
	if a, err := netip.ParseAddr(t.host); err == nil && a.Is4() {
		t.literal = a
	} else if !isName(t.host) {
		return errBadName
	}
	return nil
}

// isName says whether a host can be a name of the DNS. Underscores do occur.
func isName(host string) bool {
	if len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// exchange sends the request and reads the answer.
func (d *download) exchange(conn net.Conn, h Headers) (*calloutAnswer, error) {
	if _, err := conn.Write(d.target.request(h)); err != nil {
		return nil, errClosed
	}
	in := &headReader{conn: conn, left: headerBytesDefault}
	// The body is never closed: that would read it to its end. The connection is.
	resp, err := readHead(bufio.NewReader(in))
	switch {
	case err != nil && in.ended && in.left == headerBytesDefault:
		return nil, errClosed
	case err != nil:
		return nil, errNotHTTP
	}
	in.left = math.MaxInt
	a := &calloutAnswer{headers: responseHeaders(resp)}
	if len(a.headers) > imageHeaderLinesMax {
		return nil, errNotHTTP
	}
	for _, f := range a.headers {
		if !validName(f.Name) || !validValue(f.Value) {
			return nil, errNotHTTP
		}
	}
	for _, name := range []string{egressDetailsHeader, egressFlagsHeader, "set-cookie"} {
		a.headers.Remove(name)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		a.body, err = d.readBody(resp)
	}
	return a, err
}

// request is what is written to the server: the callout's headers, in order,
// without those of the connection and those between guest and egress.
func (t *target) request(h Headers) []byte {
	b := []byte("GET " + t.path + " HTTP/1.1\r\nhost: " + t.authority + "\r\n")
	for _, f := range h {
		if strings.HasPrefix(f.Name, ":") || strings.HasPrefix(f.Name, "x-") || hopByHop[f.Name] || f.Name == "content-length" {
			continue
		}
		b = slices.Concat(b, []byte(f.Name), []byte(": "), []byte(f.Value), []byte("\r\n"))
	}
	return append(b, "\r\n"...)
}

// readHead reads status and headers, past answers that only announce the real one.
func readHead(r *bufio.Reader) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodGet})
		if err != nil || resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
	}
}

// headReader reads from a connection, at first no more than headers may have.
type headReader struct {
	conn  net.Conn
	left  int
	ended bool // the connection has
}

func (r *headReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errNotHTTP
	}
	n, err := r.conn.Read(p[:min(len(p), r.left)])
	r.left -= n
	r.ended = r.ended || err != nil
	return n, err
}

// validValue says whether a header value has no control bytes.
func validValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// readBody reads the body to its end. Its buffer grows with what has come, not
// with what the server promises, and counts in the egress's total.
func (d *download) readBody(resp *http.Response) ([]byte, error) {
	if resp.ContentLength > imageBytesMax {
		return nil, errTooLarge
	}
	most := imageBytesMax
	if resp.ContentLength >= 0 {
		most = int(resp.ContentLength)
	}
	var body []byte
	for {
		if len(body) == cap(body) {
			// One byte more than there may be tells the end from too much.
			grown := min(max(2*cap(body), readBytes), most+1)
			if err := d.reserve(grown); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, grown), body...)
		}
		n, err := resp.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > imageBytesMax:
			return nil, errTooLarge
		case err == io.EOF:
			return body, nil
		case err != nil:
			return nil, errBrokenOff
		}
	}
}

// reserve makes the download's part of the egress's total this many bytes.
func (d *download) reserve(bytes int) error {
	more := int64(bytes - d.reserved)
	if d.e.buffered.Add(more) > int64(d.e.o.BufferBytesMax) {
		d.e.buffered.Add(-more)
		return errOverloaded
	}
	d.reserved = bytes
	return nil
}
