package jsontext

import (
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// AppendDecoded appends the text of a string's spelling (without quotes).
// Half of a surrogate pair becomes U+FFFD (decision 8). The spelling must have
// passed Scan.
func AppendDecoded(dst, inner []byte) []byte {
	k := len(dst) // where the next byte goes: a text is never longer than its spelling
	if cap(dst)-k < len(inner) {
		dst = append(make([]byte, 0, max(k+len(inner), 2*k)), dst...)
	}
	dst = dst[:k+len(inner)]
	from, to := unsafe.Pointer(unsafe.SliceData(inner)), unsafe.Pointer(unsafe.SliceData(dst))
	for i := 0; i < len(inner); {
		if i+8 <= len(inner) {
			// Eight bytes at once, of which those in front of a backslash stay. There
			// is room for all: as much is left of the text as of its spelling.
			w := wordAt(from, i)
			*(*uint64)(unsafe.Add(to, k)) = w
			n := bits.TrailingZeros64(slashes(w)) >> 3
			i, k = i+n, k+n
			if n == 8 {
				continue
			}
		} else if inner[i] != '\\' {
			dst[k] = inner[i]
			i, k = i+1, k+1
			continue
		}
		short := i
		for i+1 < len(inner) && *(*byte)(unsafe.Add(from, i)) == '\\' {
			c := unescaped[*(*byte)(unsafe.Add(from, i+1))]
			if c == 0 {
				break
			}
			*(*byte)(unsafe.Add(to, k)) = c
			i, k = i+2, k+1
		}
		if i > short {
			continue
		}
		if i+6 <= len(inner) {
			unit := HexUnit(*(*uint32)(unsafe.Add(from, i+2)))
			switch {
			case unit < 0x80:
				dst[k] = byte(unit)
				i, k = i+6, k+1
				continue
			case unit < 0x800:
				dst[k], dst[k+1] = 0xC0|byte(unit>>6), 0x80|byte(unit&0x3F)
				i, k = i+6, k+2
				continue
			case unit&0xF800 != 0xD800 && unit <= 0xFFFF:
				dst[k], dst[k+1], dst[k+2] = 0xE0|byte(unit>>12), 0x80|byte(unit>>6&0x3F), 0x80|byte(unit&0x3F)
				i, k = i+6, k+3
				continue
			}
		}
		r, n := DecodeEscape(inner[i:])
		k += utf8.EncodeRune(dst[k:], r)
		i += n
	}
	clear(dst[k:min(k+8, len(dst))]) // what the last eight bytes have left
	return dst[:k]
}

// AppendFront is AppendDecoded for the front of a long string: it appends whole
// characters until there are at least size bytes of text, or all of it.
func AppendFront(dst, inner []byte, size int) []byte {
	for end := len(dst) + size; len(dst) < end && len(inner) > 0; {
		r, n := rune(0), 0
		if inner[0] == '\\' {
			r, n = DecodeEscape(inner)
		} else {
			r, n = utf8.DecodeRune(inner)
		}
		dst = utf8.AppendRune(dst, r)
		inner = inner[n:]
	}
	return dst
}

// slashes has a high bit set for each backslash in w; above the first one there
// may be false bits.
func slashes(w uint64) uint64 {
	w ^= ones * '\\'
	return (w - ones) &^ w & highs
}

// unescaped is what the short escapes stand for, by their second byte.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// DecodeEscape reads the escape at the front of b, a surrogate pair as one
// character, half of a pair as U+FFFD. It returns the character and the length
// of its spelling.
func DecodeEscape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b)
	}
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return rune(b[1]), 2
	}
	unit := hex4(b[2:])
	if unit < 0 {
		return utf8.RuneError, 2
	}
	if unit&0xF800 != 0xD800 {
		return unit, 6
	}
	if unit < 0xDC00 && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if low := hex4(b[8:]); low&^0x3FF == 0xDC00 {
			return (unit-0xD800)<<10 + (low - 0xDC00) + 0x10000, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	if unit := HexUnit(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24); unit <= 0xFFFF {
		return rune(unit)
	}
	return -1
}

// AppendMended appends a span of JSON text as spelled, but with each half of a
// surrogate pair replaced by U+FFFD, written as \ufffd (decision 8). Backslashes
// stand only inside strings, so the span may be any value.
func AppendMended(dst, span []byte) []byte {
	start := 0
	for i := 0; i < len(span); {
		if span[i] != '\\' {
			i++
			continue
		}
		r, n := DecodeEscape(span[i:])
		if r == utf8.RuneError && n == 6 && hex4(span[i+2:]) != utf8.RuneError {
			dst = append(dst, span[start:i]...)
			dst = append(dst, `\ufffd`...)
			start = i + 6
		}
		i += n
	}
	return append(dst, span[start:]...)
}

const hexDigits = "0123456789abcdef"

// AppendQuoted appends text as a JSON string, quotes included. Only what JSON
// demands is escaped; bytes that are not UTF-8 become U+FFFD.
func AppendQuoted[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	dst = AppendEscaped(dst, text)
	return append(dst, '"')
}

// AppendEscaped is AppendQuoted without the quotes.
func AppendEscaped[T string | []byte](dst []byte, text T) []byte {
	start := 0
	base := *(*unsafe.Pointer)(unsafe.Pointer(&text)) // of both kinds the first word
	for i := 0; i < len(text); {
		if i+8 <= len(text) && plain(wordAt(base, i)) == 0 {
			i += 8
			continue
		}
		c := text[i]
		if c >= 0x20 && c < 0x80 && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= 0x80 {
			n := validRune(text, i)
			if n > 0 {
				i += n
				continue
			}
			dst = append(dst, text[start:i]...)
			dst = append(dst, "\uFFFD"...)
			i++
			start = i
			continue
		}
		dst = append(dst, text[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	return append(dst, text[start:]...)
}

func validRune[T string | []byte](text T, i int) int {
	if i+1 >= len(text) {
		return 0
	}
	n := runeLen(text[i], text[i+1])
	if n == 0 || i+n > len(text) {
		return 0
	}
	for k := i + 2; k < i+n; k++ {
		if text[k]&0xC0 != 0x80 {
			return 0
		}
	}
	return n
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
