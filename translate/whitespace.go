package translate

import "ezat.io/chat-completions/translate/internal/jsontext"

// blank tells whether a string's spelling (without quotes) has only white space
// in it, or nothing.
func blank(inner []byte) bool {
	const spaces = "        "
	for len(inner) > 0 {
		if len(inner) >= len(spaces) && string(inner[:len(spaces)]) == spaces {
			inner = inner[len(spaces):]
			continue
		}
		n := spaceAt(inner)
		if n == 0 {
			return false
		}
		inner = inner[n:]
	}
	return true
}

// trimEnd cuts the white space at the end of a string's spelling. What is left
// keeps its spelling.
func trimEnd(inner []byte) []byte {
	for len(inner) > 0 {
		n := spaceBefore(inner)
		if n == 0 {
			break
		}
		inner = inner[:len(inner)-n]
	}
	return inner
}

// spaceAt is how many bytes at the front of a spelling spell a character that is
// white space in Unicode's sense; 0 for another one.
func spaceAt(inner []byte) int {
	switch c := inner[0]; {
	case c == ' ':
		return 1
	case c == '\\' && len(inner) >= 2:
		switch inner[1] {
		case 'n', 't', 'r', 'f':
			return 2
		case 'u':
			if r, n := jsontext.DecodeEscape(inner); isSpace(r) {
				return n
			}
		}
	case c == 0xC2 && len(inner) >= 2:
		if isSpace(rune(inner[1])) {
			return 2
		}
	case c >= 0xE1 && c <= 0xE3 && len(inner) >= 3:
		if isSpace(rune(c&0xF)<<12 | rune(inner[1]&0x3F)<<6 | rune(inner[2]&0x3F)) {
			return 3
		}
	}
	return 0
}

// spaceBefore is spaceAt for the end of a spelling.
func spaceBefore(inner []byte) int {
	end := len(inner)
	for _, n := range [...]int{1, 2, 3, 6} {
		if n > end || spaceAt(inner[end-n:]) != n {
			continue
		}
		// A backslash behind an odd number of others begins no escape.
		first := end - n
		for first > 0 && inner[end-n] == '\\' && inner[first-1] == '\\' {
			first--
		}
		if (end-n-first)%2 == 0 {
			return n
		}
	}
	return 0
}

// isSpace is unicode.IsSpace, which takes a guest longer.
func isSpace(r rune) bool {
	switch {
	case r <= ' ':
		return r == ' ' || r >= '\t' && r <= '\r'
	case r < 0x2000:
		return r == 0x85 || r == 0xA0 || r == 0x1680
	case r <= 0x200A:
		return true
	}
	return r == 0x2028 || r == 0x2029 || r == 0x202F || r == 0x205F || r == 0x3000
}
