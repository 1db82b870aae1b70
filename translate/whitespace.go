package translate

import "ezat.io/chat-completions/translate/internal/jsontext"

// blank tells whether a string's spelling (without quotes) has only white space
// in it, or nothing.
func blank(inner []byte) bool {
	for i := 0; i < len(inner); {
		switch c, left := inner[i], len(inner)-i; {
		case c == ' ':
			i++
		case c == '\\' && left >= 2 && spaceEscapes[inner[i+1]]:
			i += 2
		case c == '\\' && left >= 6 && spaceUnit(inner[i:i+6]):
			i += 6
		case left >= 2 && space2(c, inner[i+1]):
			i += 2
		case left >= 3 && space3(c, inner[i+1], inner[i+2]):
			i += 3
		default:
			return false
		}
	}
	return true
}

// trimEnd cuts the white space at the end of a string's spelling. What is left
// keeps its spelling.
func trimEnd(inner []byte) []byte {
	end := len(inner)
	for end > 0 {
		n := 0
		switch c := inner[end-1]; {
		case c == ' ':
			end--
			continue
		case end >= 2 && space2(inner[end-2], c):
			end -= 2
			continue
		case end >= 3 && space3(inner[end-3], inner[end-2], c):
			end -= 3
			continue
		case end >= 2 && inner[end-2] == '\\' && spaceEscapes[c]:
			n = 2
		case end >= 6 && inner[end-6] == '\\' && spaceUnit(inner[end-6:end]):
			n = 6
		default:
			return inner[:end]
		}
		// A backslash behind an odd number of others begins no escape.
		first := end - n
		for first > 0 && inner[first-1] == '\\' {
			first--
		}
		if (end-n-first)%2 == 1 {
			break
		}
		end -= n
	}
	return inner[:end]
}

// What is white space in Unicode's sense, in each of its spellings. All of it is in
// the first plane.

// spaceEscapes are the bytes that spell it with the backslash before them.
var spaceEscapes = [256]bool{'n': true, 't': true, 'r': true, 'f': true}

// space2 are the characters of two bytes, U+0085 and U+00A0.
func space2(c, c1 byte) bool { return c == 0xC2 && (c1 == 0x85 || c1 == 0xA0) }

// space3 are those of three: U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+1680
// and U+3000.
func space3(c, c1, c2 byte) bool {
	r := uint32(c)<<16 | uint32(c1)<<8 | uint32(c2)
	return r >= 0xE28080 && r <= 0xE2808A || r == 0xE280A8 || r == 0xE280A9 || r == 0xE280AF || r == 0xE2819F || r == 0xE19A80 || r == 0xE38080
}

// spaceUnit tells whether six bytes, the first of them a backslash, spell it with
// four hexadecimal digits.
func spaceUnit(b []byte) bool {
	if b[1] != 'u' {
		return false
	}
	unit := jsontext.HexUnit(uint32(b[2]) | uint32(b[3])<<8 | uint32(b[4])<<16 | uint32(b[5])<<24)
	switch {
	case unit <= ' ':
		return unit == ' ' || unit >= '\t' && unit <= '\r'
	case unit < 0x2000:
		return unit == 0x85 || unit == 0xA0 || unit == 0x1680
	}
	return unit <= 0x200A || unit == 0x2028 || unit == 0x2029 || unit == 0x202F || unit == 0x205F || unit == 0x3000
}
