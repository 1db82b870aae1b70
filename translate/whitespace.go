package translate

import (
	"unicode"
	"unicode/utf8"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// blank tells whether a string's spelling (without quotes) has only white space
// in it, or nothing.
func blank(inner []byte) bool { return inkEnd(inner) == 0 }

// trimEnd cuts the white space at the end of a string's spelling. What is left
// keeps its spelling.
func trimEnd(inner []byte) []byte { return inner[:inkEnd(inner)] }

// inkEnd is the offset behind the last character that is no white space.
func inkEnd(inner []byte) int {
	end := 0
	for i := 0; i < len(inner); {
		r, n := rune(inner[i]), 1
		switch {
		case r == '\\':
			r, n = jsontext.DecodeEscape(inner[i:])
		case r >= utf8.RuneSelf:
			r, n = utf8.DecodeRune(inner[i:])
		}
		i += n
		if !unicode.IsSpace(r) {
			end = i
		}
	}
	return end
}
