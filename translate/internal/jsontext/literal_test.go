package jsontext

import (
	"strings"
	"testing"
)

// checkLiteral holds ReadLiteral against Scan: the literal that opens text is
// read the same way, or refused by both.
func checkLiteral(t *testing.T, text []byte) {
	t.Helper()
	const before = `{"text":`
	src := append([]byte(before+`"`), text...)
	src = append(src, '\n')
	lit := ReadLiteral(src, len(before)+1)
	src = src[len(before):]
	if lit.End == 0 {
		// No prefix of the text may be a string.
		for end := 2; end <= len(src); end++ {
			var d Doc
			if src[end-1] == '"' && d.Scan(src[:end:end], limits) == nil {
				t.Fatalf("ReadLiteral(%q) found nothing, Scan found %q", src, src[:end])
			}
		}
		return
	}
	lit.End -= len(before)
	var d Doc
	if err := d.Scan(src[:lit.End:lit.End], limits); err != nil {
		t.Fatalf("ReadLiteral(%q) ends at %d, Scan says %v", src, lit.End, err)
	}
	v := d.Root()
	if v.Kind() != String || v.Lone() != lit.Lone {
		t.Fatalf("ReadLiteral(%q) = %+v, Scan: kind %d, lone %v", src, lit, v.Kind(), v.Lone())
	}
	if want := len(AppendDecoded(nil, v.Inner())); lit.Size != want || DecodedLen(v.Inner()) != want {
		t.Fatalf("size of %q is %d or %d, want %d", src, lit.Size, DecodedLen(v.Inner()), want)
	}
}

var literals = []string{
	`"`, `abc"`, `abcdefgh"`, `abcdefghijklmnop" and more`, ``, `abc`, `abcdefghijklmnopqrst`, `\"`, `\""`, `\\"`, `a\`, `\u`, `\u0`, `\u004`,
	`\u0041"`, `\u00e9\u4e2d"`, `\ud83d\ude00"`, `\ud83d"`, `\ud83d\u"`, `\ud83d\u0041"`, `\ude00\ud83d"`, `\ud83d\ud83d\ude00"`, `\x"`, `\u00g0"`,
	"é\"", "阴气渐重😀\"", "abcdefg\xe2\x82\"", "\xff\"", "\xc0\x80\"", "\xed\xa0\x80\"", "\xf4\x90\x80\x80\"", "\xf0\x9f\x98", "a\x00b\"", "a\nb\"", "\x7f\"",
	`\b\f\n\r\t\/\\\""}}`,
}

func TestReadLiteralAgreesWithScan(t *testing.T) {
	for _, text := range literals {
		for pad := range 17 {
			checkLiteral(t, []byte(strings.Repeat("x", pad)+text))
		}
	}
}

func TestReadLiteralNeedsItsEnd(t *testing.T) {
	for _, src := range []string{"", `"`, `"abc"`, `"abcdefghijk"`, "\"ab\"\n"} {
		if lit := ReadLiteral([]byte(src), 1); lit.End != 0 {
			t.Errorf("ReadLiteral(%q) = %+v, want nothing", src, lit)
		}
	}
	src := []byte("\"abcdefgh\"\n")
	for _, i := range []int{-1, len(src), len(src) + 8} {
		if lit := ReadLiteral(src, i); lit.End != 0 {
			t.Errorf("ReadLiteral from %d = %+v, want nothing", i, lit)
		}
	}
}

func FuzzReadLiteral(f *testing.F) {
	for _, text := range literals {
		f.Add([]byte(text))
	}
	f.Fuzz(checkLiteral)
}
