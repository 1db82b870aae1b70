package jsontext

import (
	"math/bits"
	"unsafe"
)

// Literal is a string literal that ReadLiteral found in a text.
type Literal struct {
	// End is the offset behind the closing quote; 0 where there is no literal.
	End int
	// Size is the length of the string's text in bytes: what AppendDecoded gives.
	Size int
	// Lone tells that the string has half of a surrogate pair.
	Lone bool
}

// ReadLiteral validates the string literal whose first byte behind the opening
// quote stands at src[i], as strictly as Scan does. It serves where the shape
// around a string is known, so that one string can be read without an index.
//
// src must have eight bytes at least and end in a control byte: no string
// reaches over one, so the walk stops there without looking for the end. Where
// it does not, or where the literal is broken, End is 0.
func ReadLiteral(src []byte, i int) Literal {
	last := len(src) - 8
	if last < 0 || i < 0 || i >= len(src) || src[len(src)-1] >= 0x20 {
		return Literal{}
	}
	base := unsafe.Pointer(unsafe.SliceData(src))
	start, saved, lone := i, 0, false
	for {
		// i is in the text: the control byte at its end was not passed yet.
		w := *(*uint64)(unsafe.Add(base, min(i, last)))
		if i > last {
			w >>= 8 * uint(i-last) // the zeros shifted in count as control bytes
		}
		m := plain(w)
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		switch c := src[i]; {
		case c == '"':
			return Literal{i + 1, i - start - saved, lone}
		case c == '\\':
			if shortEscapes[src[i+1]] { // a control byte is behind a backslash at the latest
				i += 2
				saved++
				continue
			}
			n, size, half := readEscape(src[i:])
			if n == 0 {
				return Literal{}
			}
			i += n
			saved += n - size
			lone = lone || half
		case c < 0x20:
			return Literal{}
		default:
			n := validRune(src, i)
			if n == 0 {
				return Literal{}
			}
			i += n
		}
	}
}

// shortEscapes are the bytes that make an escape with the backslash before them.
var shortEscapes = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// readEscape reads the escape at the front of b, a surrogate pair as one: the
// length of its spelling (0: broken), the length of its text, and whether it is
// half of a pair.
func readEscape(b []byte) (n, size int, lone bool) {
	if len(b) < 2 {
		return 0, 0, false
	}
	if shortEscapes[b[1]] {
		return 2, 1, false
	}
	if b[1] != 'u' {
		return 0, 0, false
	}
	unit := hex4(b[2:])
	switch {
	case unit < 0:
		return 0, 0, false
	case unit < 0x80:
		return 6, 1, false
	case unit < 0x800:
		return 6, 2, false
	case unit&0xF800 != 0xD800:
		return 6, 3, false
	}
	if unit < 0xDC00 && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		low := hex4(b[8:])
		if low < 0 {
			return 0, 0, false
		}
		if low&^0x3FF == 0xDC00 {
			return 12, 4, false
		}
	}
	return 6, 3, true
}

// DecodedLen is the length of what AppendDecoded appends for a spelling that
// has passed Scan.
func DecodedLen(inner []byte) int {
	size := len(inner)
	for i := 0; i < len(inner); {
		if inner[i] != '\\' {
			i++
			continue
		}
		n, text, _ := readEscape(inner[i:])
		if n == 0 {
			return size // not reached by a spelling that has passed Scan
		}
		size -= n - text
		i += n
	}
	return size
}
