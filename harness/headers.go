package harness

import (
	"fmt"
	"slices"
	"strings"

	"ezat.io/chat-completions/harness/internal/abi"
)

// Header is one line of a header or trailer map. Names are lower case; those
// of HTTP/2's pseudo headers begin with a colon.
type Header struct{ Name, Value string }

// Headers is a header or trailer map as Envoy keeps it: in order, with
// duplicates, names in lower case, pseudo headers first. The zero value is an
// empty map.
type Headers []Header

// NewHeaders builds a map from names and values by turns:
//
//	harness.NewHeaders(":method", "GET", ":path", "/", ":authority", "example.com")
//
// It panics when a value is missing.
func NewHeaders(pairs ...string) Headers {
	if len(pairs)%2 != 0 {
		panic("harness: NewHeaders needs a value for each name")
	}
	var h Headers
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// Get returns the first value of a name, "" when there is none.
func (h Headers) Get(name string) string {
	v, _ := h.Lookup(name)
	return v
}

// Lookup returns the first value of a name and whether there is one.
func (h Headers) Lookup(name string) (string, bool) {
	name = canonical(name)
	for _, f := range h {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// Values returns all values of a name in order.
func (h Headers) Values(name string) []string {
	name = canonical(name)
	var out []string
	for _, f := range h {
		if f.Name == name {
			out = append(out, f.Value)
		}
	}
	return out
}

// Add appends a line. Names that Envoy keeps in a slot of their own take the
// value into the line that is there, after a comma.
func (h *Headers) Add(name, value string) {
	name = canonical(name)
	if single[name] {
		for i := range *h {
			if (*h)[i].Name == name {
				(*h)[i].Value += "," + value
				return
			}
		}
	}
	h.insert(Header{name, value})
}

// insert puts pseudo headers behind the last pseudo header, others at the end.
func (h *Headers) insert(f Header) {
	at := len(*h)
	if strings.HasPrefix(f.Name, ":") {
		at = 0
		for at < len(*h) && strings.HasPrefix((*h)[at].Name, ":") {
			at++
		}
	}
	*h = slices.Insert(*h, at, f)
}

// Set removes all lines of a name and adds one.
func (h *Headers) Set(name, value string) {
	h.Remove(name)
	h.insert(Header{canonical(name), value})
}

// Remove takes all lines of a name away.
func (h *Headers) Remove(name string) {
	name = canonical(name)
	*h = slices.DeleteFunc(*h, func(f Header) bool { return f.Name == name })
}

// Clone returns a copy that shares nothing.
func (h Headers) Clone() Headers { return slices.Clone(h) }

// Bytes is the size of all names and values.
func (h Headers) Bytes() int {
	n := 0
	for _, f := range h {
		n += len(f.Name) + len(f.Value)
	}
	return n
}

// String lists the lines, for messages of tests.
func (h Headers) String() string {
	var b strings.Builder
	for _, f := range h {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

func (h Headers) pairs() []abi.Pair {
	out := make([]abi.Pair, len(h))
	for i, f := range h {
		out[i] = abi.Pair{Name: f.Name, Value: f.Value}
	}
	return out
}

func headersOf(pairs []abi.Pair) Headers {
	var h Headers
	for _, p := range pairs {
		h.Add(p.Name, p.Value)
	}
	return h
}

// canonical is a name as Envoy looks it up: lower case, and host is the
// authority.
func canonical(name string) string {
	name = strings.ToLower(name)
	if name == "host" {
		return ":authority"
	}
	return name
}

// single are the names that Envoy keeps in a slot of their own, as far as they
// matter here (recorded in testdata/header-add-joins.txtar).
var single = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(`
		:authority :method :path :scheme :status :protocol
		accept accept-encoding access-control-allow-origin access-control-request-method
		authorization cache-control connection content-encoding content-length content-type
		date etag expect grpc-message grpc-status grpc-timeout if-match keep-alive
		last-modified location origin proxy-connection referer server te transfer-encoding
		upgrade user-agent vary via x-envoy-upstream-rq-timeout-ms
		x-envoy-upstream-service-time x-forwarded-for x-forwarded-host x-forwarded-proto
		x-request-id`) {
		m[name] = true
	}
	return m
}()
