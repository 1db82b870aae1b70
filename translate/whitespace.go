package translate

import (
	"unicode"
	"unicode/utf8"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// blank tells whether a string's spelling (without quotes) has only white space
// in it, or nothing.
func blank(inner []byte) bool {
	for i := 0; i < len(inner); {
		r, n := spelled(inner[i:])
		if !unicode.IsSpace(r) {
			return false
		}
		i += n
	}
	return true
}

// trimEnd cuts the white space at the end of a string's spelling. What is left
// keeps its spelling.
func trimEnd(inner []byte) []byte {
	end := 0
	for i := 0; i < len(inner); {
		r, n := spelled(inner[i:])
		i += n
		if !unicode.IsSpace(r) {
			end = i
		}
	}
	return inner[:end]
}

// spelled is the character at the front of a spelling, and how many bytes spell
// it.
func spelled(b []byte) (rune, int) {
	switch {
	case b[0] == '\\':
		return jsontext.DecodeEscape(b)
	case b[0] < utf8.RuneSelf:
		return rune(b[0]), 1
	}
	return utf8.DecodeRune(b)
}
