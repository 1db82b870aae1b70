package translate

import "ezat.io/chat-completions/translate/internal/jsontext"

// mark is a client's own cache breakpoint: the spellings of its type and, when
// it has one, its ttl.
type mark struct {
	kind, ttl []byte
}

// mark reads a cache_control (contract, "Your own breakpoints"; decision 29):
// nil when there is none. That the client has set one is noted even where the
// part that bears it is left out, because then it manages its cache itself.
func (c *conversation) mark(v jsontext.Value) (*mark, *fault) {
	m, f := readMark(v)
	if m != nil {
		c.request.marked = true
	}
	return m, f
}

var markKeys = newKeys("type", "ttl")

func readMark(v jsontext.Value) (*mark, *fault) {
	if !v.Sent() {
		return nil, nil
	}
	const text = `must be an object of "type" and "ttl"`
	if v.Kind() != jsontext.Object {
		return nil, bad(text)
	}
	var m [2]jsontext.Value
	if f := members(v, markKeys, m[:]); f != nil {
		return nil, f
	}
	known := 0
	for it := v.Members(); it.Next(); known++ {
	}
	for _, member := range m {
		if member.Kind() != jsontext.Absent {
			known--
		}
	}
	if known != 0 || m[0].Kind() != jsontext.String || m[1].Sent() && m[1].Kind() != jsontext.String {
		return nil, bad(text)
	}
	read := &mark{kind: span(m[0])}
	if m[1].Sent() {
		read.ttl = span(m[1])
	}
	return read, nil
}
