package translate

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestWhiteSpaceIsUnicodes holds each character, as it is and as an escape, to the
// tables of Unicode.
func TestWhiteSpaceIsUnicodes(t *testing.T) {
	for r := rune(0x20); r <= unicode.MaxRune; r++ {
		if r == '"' || r == '\\' || !utf8.ValidRune(r) {
			continue // cannot stand in a string by itself
		}
		if text := []byte(string(r)); blank(text) != unicode.IsSpace(r) || len(trimEnd(text)) == 0 != unicode.IsSpace(r) {
			t.Errorf("%U: %v", r, blank(text))
		}
	}
	for r := rune(0); r <= 0xFFFF; r++ {
		if text := fmt.Appendf(nil, `\u%04x`, r); blank(text) != unicode.IsSpace(r) || len(trimEnd(text)) == 0 != unicode.IsSpace(r) {
			t.Errorf("%s: %v", text, blank(text))
		}
	}
}

// TestWhiteSpace: what is cut, however it is spelled, and what only looks like it.
func TestWhiteSpace(t *testing.T) {
	for _, space := range []string{" ", `\n`, `\t`, `\r`, `\f`, `\u000b`, `\u0020`, `\u202F`, `\u205f`, `\u3000`, "\u0085", "\u00a0", "\u1680", "\u2000", "\u200a", "\u2028", "\u202f", "\u205f", "\u3000"} {
		for _, n := range []int{1, 2, 9, 100} {
			run := strings.Repeat(space, n)
			if !blank([]byte(run)) || blank([]byte(run+"a")) || blank([]byte("a"+run)) {
				t.Errorf("%d × %q is not told from text", n, space)
			}
			for _, text := range []string{"", "a", "n", "\\\\", "\\\\\\\\", "é", `\"`, `u0020`, "\U0001F600", "\u200b", `\u200b`} {
				if got := string(trimEnd([]byte(text + run))); got != text {
					t.Errorf("%q is cut to %q", text+run, got)
				}
			}
		}
	}
	for _, text := range []string{`\\n`, `\\\\t`, `\\u0020`, `\\\\u3000`, "\u0180", "\u2070", "\u200b", "\u2027", `\u00200`, "\u3042"} {
		if got := string(trimEnd([]byte(text))); got != text || blank([]byte(text)) {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}
