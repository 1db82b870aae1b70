package jsontext

import "unicode/utf8"

// Value is one value of a Doc. The zero Value is absent.
type Value struct {
	d *Doc
	i uint32
}

// Kind tells what the value is; Absent for the zero Value.
func (v Value) Kind() Kind {
	if v.d == nil {
		return Absent
	}
	return v.d.nodes[v.i].kind
}

// Sent tells whether the value is there and not null: null means "not sent".
func (v Value) Sent() bool { return v.Kind() > Null }

// Raw is the value as spelled, quotes and brackets included.
func (v Value) Raw() []byte {
	n := &v.d.nodes[v.i]
	return v.d.src[n.start:n.end:n.end]
}

// Inner is the spelling of a string without its quotes.
func (v Value) Inner() []byte {
	n := &v.d.nodes[v.i]
	return v.d.src[n.start+1 : n.end-1 : n.end-1]
}

// Offset is where the value begins in the text, in bytes.
func (v Value) Offset() int { return int(v.d.nodes[v.i].start) }

// Escaped tells whether a string has escapes.
func (v Value) Escaped() bool { return v.d.nodes[v.i].flags&flagEscaped != 0 }

// Lone tells whether a string has half of a surrogate pair.
func (v Value) Lone() bool { return v.d.nodes[v.i].flags&flagLone != 0 }

// Base64 tells that a string is a data URL of which all that stands behind the
// first comma has been checked: digits of base64, then at most two equals signs.
// A string that may be one and does not say so has to be looked at.
func (v Value) Base64() bool { return v.d.nodes[v.i].flags&flagBase64 != 0 }

// DocLone tells whether any string of the value's text has half of a surrogate
// pair: only then a span needs AppendMended instead of a copy.
func (v Value) DocLone() bool { return v.d.lone }

// Bytes is the text of a string: its spelling where it has no escapes, else
// decoded into new memory.
func (v Value) Bytes() []byte {
	if !v.Escaped() {
		return v.Inner()
	}
	return AppendDecoded(nil, v.Inner())
}

// Text is the text of a string in memory of its own.
func (v Value) Text() string { return string(v.Bytes()) }

// Is tells whether the value is a string with the text s.
func (v Value) Is(s string) bool {
	return v.Kind() == String && (!v.Escaped() && string(v.Inner()) == s || v.Escaped() && spells(v.Inner(), s))
}

// spells tells whether a spelling (without quotes) has the text s. It stops at the
// first byte that differs.
func spells(inner []byte, s string) bool {
	for len(inner) > 0 && len(s) > 0 {
		if inner[0] != '\\' {
			if inner[0] != s[0] {
				return false
			}
			inner, s = inner[1:], s[1:]
			continue
		}
		var text [utf8.UTFMax]byte
		r, n := DecodeEscape(inner)
		if r < utf8.RuneSelf {
			if s[0] != byte(r) {
				return false
			}
			inner, s = inner[n:], s[1:]
			continue
		}
		size := utf8.EncodeRune(text[:], r)
		if len(s) < size || s[:size] != string(text[:size]) {
			return false
		}
		inner, s = inner[n:], s[size:]
	}
	return len(inner) == 0 && len(s) == 0
}

// Empty tells whether a string, array or object has nothing in it.
func (v Value) Empty() bool {
	n := &v.d.nodes[v.i]
	if n.kind == String {
		return n.end-n.start == 2
	}
	return n.next == v.i+1
}

// Items walks the elements of an array.
func (v Value) Items() Items {
	n := &v.d.nodes[v.i]
	return Items{d: v.d, next: v.i + 1, end: n.next, index: -1}
}

// Items is a walk over the elements of an array.
type Items struct {
	d              *Doc
	cur, next, end uint32
	index          int
}

// Next goes to the next element; false at the end.
func (it *Items) Next() bool {
	if it.next >= it.end {
		return false
	}
	it.cur = it.next
	it.next = it.d.nodes[it.cur].next
	it.index++
	return true
}

// Value is the element that the walk is at.
func (it *Items) Value() Value { return Value{it.d, it.cur} }

// Index counts the elements from 0.
func (it *Items) Index() int { return it.index }

// Members walks the members of an object in the order of the text.
func (v Value) Members() Members {
	n := &v.d.nodes[v.i]
	return Members{d: v.d, next: v.i + 1, end: n.next}
}

// Members is a walk over the members of an object.
type Members struct {
	d              *Doc
	cur, next, end uint32
	named          bool // the Doc's set of names is that of this walk
}

// Next goes to the next member; false at the end.
func (it *Members) Next() bool {
	if it.next >= it.end {
		return false
	}
	it.cur = it.next
	it.next = it.d.nodes[it.cur+1].next
	return true
}

// Key is the member's name, decoded. It is good until another walk begins.
func (it *Members) Key() []byte {
	if name := it.Name(); !name.Escaped() {
		return name.Inner()
	}
	it.begin()
	return it.d.decodedKey(it.cur)
}

// Name is the member's name as a value.
func (it *Members) Name() Value { return Value{it.d, it.cur} }

// Repeats tells whether the member's name is among those that the walk has asked
// about before. Key must have been called for the member.
func (it *Members) Repeats() bool {
	it.begin()
	return it.d.nameRepeats(it.cur)
}

func (it *Members) begin() {
	if !it.named {
		it.named = true
		it.d.names.begin()
	}
}

// Value is the member's value.
func (it *Members) Value() Value { return Value{it.d, it.cur + 1} }

// Get is the value of an object's first member with that name; absent for a
// value that is no object.
func (v Value) Get(name string) Value {
	if v.Kind() != Object {
		return Value{}
	}
	for it := v.Members(); it.Next(); {
		if (Value{it.d, it.cur}).Is(name) {
			return it.Value()
		}
	}
	return Value{}
}
