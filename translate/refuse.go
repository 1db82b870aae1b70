package translate

import (
	"strconv"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// fault is a refusal on its way up. The check that finds it gives a bare text;
// each caller puts its key or index in front, so that the good way builds no
// path.
type fault struct {
	path, text string
	placed     bool // the path has its message's index already
}

func bad(text string) *fault { return &fault{text: text} }

// in puts an object's key in front of the path.
func (f *fault) in(key string) *fault {
	switch {
	case f.path == "":
		f.path = key
	case f.path[0] == '[':
		f.path = key + f.path
	default:
		f.path = key + "." + f.path
	}
	return f
}

// at puts an array's index in front of the path.
func (f *fault) at(i int) *fault {
	index := "[" + strconv.Itoa(i) + "]"
	if f.path != "" && f.path[0] != '[' {
		index += "."
	}
	f.path = index + f.path
	return f
}

// refused makes the answer from a fault (contract, "Errors": 400).
func (f *fault) refused() *Error {
	e := refusal(f.path + ": " + f.text)
	e.Field = topField(f.path)
	return e
}

// refusal is the contract's 400 with its whole text.
func refusal(message string) *Error {
	return &Error{Status: 400, Message: message, Type: "invalid_request_error"}
}

// topField is the field that a path begins with, from the fixed set of fields
// that the core reads, or "other": a client must not be able to name a metric.
func topField(path string) string {
	end := 0
	for end < len(path) && path[end] != '.' && path[end] != '[' {
		end++
	}
	switch name := path[:end]; name {
	case "request body":
		return "request_body"
	default:
		for _, known := range fieldNames {
			if known == name {
				return name
			}
		}
		return "other"
	}
}

// echo is a client's word fit for an error text.
func echo(word []byte) string {
	if len(word) <= echoBytesMax {
		return string(word)
	}
	cut := echoBytesMax
	for word[cut]&0xC0 == 0x80 {
		cut--
	}
	return string(word[:cut]) + "…"
}

// members reads an object that the filter looks into: out[i] becomes the value
// of the known key number i. Other keys are passed over, but no key may come
// twice (decision 4), and an object has its bound (decision 46).
func members(v jsontext.Value, known *keys, out []jsontext.Value) *fault {
	n := 0
	for it := v.Members(); it.Next(); {
		if n++; n > membersMax {
			return bad("has more than " + strconv.Itoa(membersMax) + " members")
		}
		name := it.Name()
		key := name.Inner()
		if name.Escaped() {
			key = it.Key()
		}
		i := known.find(key)
		switch {
		case i < 0:
			if it.Repeats() {
				return bad("duplicate field").in(echo(key))
			}
		case out[i].Kind() != jsontext.Absent:
			return bad("duplicate field").in(known.names[i])
		default:
			out[i] = it.Value()
		}
	}
	return nil
}

// keys are the known keys of an object, found by their lengths: most of them have
// a length of their own.
type keys struct {
	names []string
	first [keyBytesMax + 1]uint8 // of a length: the number of its first name, plus one
	next  []uint8                // of a name: that of the next one as long, plus one
}

const keyBytesMax = 31

func newKeys(names ...string) *keys {
	k := &keys{names: names, next: make([]uint8, len(names))}
	for i := len(names) - 1; i >= 0; i-- {
		k.next[i], k.first[len(names[i])] = k.first[len(names[i])], uint8(i+1)
	}
	return k
}

// find is the number of a key, -1 for one that is not known.
func (k *keys) find(key []byte) int {
	if len(key) > keyBytesMax {
		return -1
	}
	i := k.first[len(key)]
	for i != 0 && k.names[i-1] != string(key) {
		i = k.next[i-1]
	}
	return int(i) - 1
}

// Checks of a single value. They take values that were sent (not null).

func object(v jsontext.Value) *fault {
	if v.Kind() != jsontext.Object {
		return bad("must be an object")
	}
	return nil
}

func array(v jsontext.Value) *fault {
	if v.Kind() != jsontext.Array {
		return bad("must be an array")
	}
	return nil
}

func str(v jsontext.Value) *fault {
	if v.Kind() != jsontext.String {
		return bad("must be a string")
	}
	return nil
}

// flag reads an optional boolean.
func flag(v jsontext.Value) (bool, *fault) {
	switch v.Kind() {
	case jsontext.Absent, jsontext.Null, jsontext.False:
		return false, nil
	case jsontext.True:
		return true, nil
	}
	return false, bad("must be true or false")
}

// subobject reads an optional object's members.
func subobject(v jsontext.Value, known *keys, out []jsontext.Value) *fault {
	if !v.Sent() {
		return nil
	}
	if f := object(v); f != nil {
		return f
	}
	return members(v, known, out)
}

// span is a value as spelled, with halves of surrogate pairs mended.
func span(v jsontext.Value) []byte {
	if v.DocLone() {
		return jsontext.AppendMended(nil, v.Raw())
	}
	return v.Raw()
}

// inner is the spelling of a string between its quotes, mended likewise.
func inner(v jsontext.Value) []byte {
	if v.Lone() {
		return jsontext.AppendMended(nil, v.Inner())
	}
	return v.Inner()
}
