package jsontext

import "unsafe"

// Shape is a fixed text of eight bytes or more that bytes are held against,
// eight at a time. In a wasm VM that costs a third of comparing strings, which
// goes through a call of the runtime; it is meant for the few texts that stand
// in every event of a stream.
type Shape struct {
	words []uint64 // the text from its front, but for the last word
	last  uint64   // its last eight bytes, which may overlap words
	size  int
}

// NewShape prepares a text. A text below eight bytes is a bug of the caller; it
// matches nothing.
func NewShape(text string) Shape {
	t := Shape{size: len(text)}
	if len(text) < 8 {
		return t
	}
	base := unsafe.Pointer(unsafe.StringData(text))
	for i := 0; i+8 < len(text); i += 8 {
		t.words = append(t.words, wordAt(base, i))
	}
	t.last = wordAt(base, len(text)-8)
	return t
}

// Size is the length of the text in bytes.
func (t *Shape) Size() int { return t.size }

// At tells whether b has the text at offset i, and at least one byte behind it.
func (t *Shape) At(b []byte, i int) bool {
	if i < 0 || len(b)-i <= t.size || t.size < 8 {
		return false
	}
	base := unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i)
	diff := wordAt(base, t.size-8) ^ t.last
	for k, w := range t.words {
		diff |= wordAt(base, 8*k) ^ w
	}
	return diff == 0
}

// wordAt reads eight bytes; the caller has made sure that they are there.
func wordAt(base unsafe.Pointer, i int) uint64 { return *(*uint64)(unsafe.Add(base, i)) }
