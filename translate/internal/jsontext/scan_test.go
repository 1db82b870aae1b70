package jsontext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

var limits = Limits{Depth: 512, Values: 2_000_000}

// texts are the seeds of the fuzz tests and the inputs of the table tests: good
// and broken, one idea each.
var texts = []string{
	``, ` `, `null`, `true`, `false`, `nul`, `truex`, `0`, `-0`, `01`, `-`, `1.`, `1.5e`, `1.50E+10`, `.5`, `1e-7`,
	`""`, `"a"`, `"`, `"a`, `"\`, `"\u`, `"\u12`, `"\u12g4"`, `"\x"`, `"\/\b\f\n\r\t\"\\"`, "\"\x01\"", "\"\x7f\"",
	`"é"`, `"阴气😀"`, "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "\"\xe2\x82",
	`"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx"`,
	`[]`, `[ ]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1,[2,{"a":[]}],3]`, `[`, `[1`, `]`, `[}`,
	`{}`, `{ }`, `{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":{"b":{"c":[1,2,{"d":null}]}}}`, `{`, `{"a`, `{"a":1`, `{]`,
	"\t{ \"a\" :\n[ 1 , \"x\" ]\r}\n", `{} {}`, `1 1`, "\x00", "{\"a\":\x001}", `"12345678"`, `"1234567"`, `"1234567é1234567"`,
	"\ufeff{}", `{"\u0061":1}`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"`,
}

// check holds Scan against encoding/json and unicode/utf8.
func check(t *testing.T, text []byte) {
	t.Helper()
	want := json.Valid(text) && utf8.Valid(text)
	if want && deeper(text, limits.Depth) {
		want = false
	}
	var d Doc
	err := d.Scan(text, limits)
	if (err == nil) != want {
		t.Fatalf("Scan(%q) = %v, want valid = %v", text, err, want)
	}
	if err != nil {
		if err.Offset < 0 || err.Offset > len(text) {
			t.Fatalf("Scan(%q): offset %d outside the text", text, err.Offset)
		}
		return
	}
	if got := rebuild(nil, d.Root()); !bytes.Equal(got, compact(t, text)) {
		t.Fatalf("walk of %q gave %q", text, got)
	}
}

// deeper counts brackets outside strings of a valid text.
func deeper(text []byte, most int) bool {
	level, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if level++; level > most {
				return true
			}
		case c == '}' || c == ']':
			level--
		}
	}
	return false
}

func compact(t *testing.T, text []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rebuild writes a value from the index alone, so that every span and every
// link of the index is looked at.
func rebuild(dst []byte, v Value) []byte {
	switch v.Kind() {
	case Array:
		dst = append(dst, '[')
		for it := v.Items(); it.Next(); {
			if it.Index() > 0 {
				dst = append(dst, ',')
			}
			dst = rebuild(dst, it.Value())
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		first := true
		for it := v.Members(); it.Next(); {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(dst, Value{it.d, it.cur}.Raw()...)
			dst = append(dst, ':')
			dst = rebuild(dst, it.Value())
		}
		return append(dst, '}')
	}
	return append(dst, v.Raw()...)
}

func TestScanAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range texts {
		check(t, []byte(text))
		for cut := range len(text) {
			check(t, []byte(text[:cut]))
		}
	}
}

// TestScanReadsSlackInPlace has zeros behind the text in its own memory: the
// text must not be copied, and what stands behind the zeros must not matter.
func TestScanReadsSlackInPlace(t *testing.T) {
	text := `{"a":"0123456"}`
	memory := make([]byte, len(text)+Slack+8)
	copy(memory, text)
	for i := len(text) + Slack; i < len(memory); i++ {
		memory[i] = '"'
	}
	var d Doc
	if err := d.Scan(memory[:len(text)], limits); err != nil {
		t.Fatal(err)
	}
	if &d.src[0] != &memory[0] {
		t.Error("text with slack was copied")
	}
	memory[len(text)] = '}'
	if err := d.Scan(memory[:len(text)], limits); err != nil {
		t.Fatal(err)
	}
	if &d.src[0] == &memory[0] {
		t.Error("text without slack was read in place")
	}
}

func TestScanReasons(t *testing.T) {
	for _, c := range []struct {
		text string
		want Error
	}{
		{`{"a":x}`, Error{Syntax, 5}},
		{`{"a":1`, Error{Truncated, 6}},
		{`{"a":tru`, Error{Truncated, 8}},
		{"[\"\xff\"]", Error{NotUTF8, 2}},
		{strings.Repeat("[", 513) + strings.Repeat("]", 513), Error{TooDeep, 512}},
		{strings.Repeat("[", 100_000), Error{TooDeep, 512}},
		{strings.Repeat(`{"a":`, 100_000), Error{TooDeep, 512 * 5}},
		{`[1,2,3,4]`, Error{TooMany, 7}},
	} {
		lim := limits
		if c.want.Reason == TooMany {
			lim.Values = 4
		}
		var d Doc
		if err := d.Scan([]byte(c.text), lim); err == nil || *err != c.want {
			t.Errorf("Scan(%.40q) = %v, want %v", c.text, err, c.want)
		}
	}
}

func TestLone(t *testing.T) {
	for _, c := range []struct {
		inner, decoded, mended string
	}{
		{`plain`, "plain", `plain`},
		{`\ud83d\ude00`, "😀", `\ud83d\ude00`},
		{`a\ud83db`, "a\uFFFDb", `a\ufffdb`},
		{`\ude00\ud83d`, "\uFFFD\uFFFD", `\ufffd\ufffd`},
		{`\ud83d\ud83d\ude00`, "\uFFFD😀", `\ufffd\ud83d\ude00`},
		{`\uFFFD\\ud83d`, "\uFFFD\\ud83d", `\uFFFD\\ud83d`},
		{`\b\f\n\r\t\"\\\/\u0041`, "\b\f\n\r\t\"\\/A", `\b\f\n\r\t\"\\\/\u0041`},
	} {
		var d Doc
		if err := d.Scan([]byte(`"`+c.inner+`"`), limits); err != nil {
			t.Fatalf("%s: %v", c.inner, err)
		}
		if got := d.Root().Text(); got != c.decoded {
			t.Errorf("text of %s is %q, want %q", c.inner, got, c.decoded)
		}
		if got := string(AppendMended(nil, []byte(c.inner))); got != c.mended {
			t.Errorf("mended %s is %s, want %s", c.inner, got, c.mended)
		}
		if lone := c.mended != c.inner; d.Root().Lone() != lone || d.lone != lone {
			t.Errorf("Lone of %s is %v", c.inner, d.Root().Lone())
		}
	}
}

func TestQuotedReadsBack(t *testing.T) {
	for _, text := range []string{"", "a<b && c>d", "\x00\x1f\"\\\n\r\t\b\f", "阴气渐重😀\u2028", "bad \xff\xc0\x80 end\xe2\x82"} {
		quoted := AppendQuoted(nil, text)
		var d Doc
		if err := d.Scan(quoted, limits); err != nil {
			t.Fatalf("%q: %v", quoted, err)
		}
		if got, want := d.Root().Text(), strings.ToValidUTF8(string([]rune(text)), "\uFFFD"); got != want {
			t.Errorf("%q reads back as %q", text, got)
		}
	}
	if got := string(AppendQuoted(nil, "<&>/\u2028")); got != "\"<&>/\u2028\"" {
		t.Errorf("needless escapes: %s", got)
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(check)
}

func BenchmarkScan(b *testing.B) {
	text := []byte(`[` + strings.Repeat(`{"role":"user","content":"some words, a \"quote\" and a line\n"},`, 1500) + `null]`)
	text = withSlack(text)
	b.SetBytes(int64(len(text)))
	var d Doc
	for b.Loop() {
		if err := d.Scan(text, limits); err != nil {
			b.Fatal(err)
		}
	}
}
