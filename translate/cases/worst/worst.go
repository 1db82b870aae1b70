// Package worst makes the request bodies that cost the translator most for their
// size: by work, by memory, or by what is written for them. They are inputs of the
// property tests, of the benchmark "hostile", and of the attacks in e2e/hostile.
//
// Each body is a function of a size alone. Those whose cost lies in the number of
// things come in up to three forms: "tight", as many as a body may have and each
// as small as can be; "padded", the same number filled up to the size; and
// "beyond", so many that the body is refused.
package worst

import (
	"bytes"
)

// The limits of a body (decision 46): what stays below them is read to its end.
const (
	ValuesMax  = 500_000
	MembersMax = 10_000
)

// BodyBytesMax is the largest body (decision 1).
const BodyBytesMax = 33_554_432

// Body is one of the bodies.
type Body struct {
	Name string
	// Honest bodies are what large requests of well-meaning clients look like: the
	// others are measured against them.
	Honest bool
	// Make gives a body of at most size bytes, of about size where its kind can be
	// as long; below some 200 KB a kind may need more than that. The bytes are the
	// caller's.
	Make func(size int) []byte
}

// Bodies lists all bodies. Names are unique.
func Bodies() []Body {
	var all []Body
	for _, list := range [][]Body{texts(), escapes(), conversations(), calls(), objects(), media(), schemas(), toolLists(), fields(), refused()} {
		all = append(all, list...)
	}
	return all
}

// Model is the model that they ask for.
const Model = "anthropic/claude-sonnet-5-5"

const (
	start    = `{"model":"` + Model + `","messages":[`
	question = `{"role":"user","content":"go"}`
	end      = `]}`

	// spareValues is how many values a body has besides those that are counted.
	spareValues = 64
)

// one is a body of size bytes in which text is repeated between head and tail.
func one(name, head, text, tail string) Body {
	return Body{Name: name, Make: func(size int) []byte {
		n := max(1, (size-len(head)-len(tail))/len(text))
		b := make([]byte, 0, len(head)+n*len(text)+len(tail))
		b = append(b, head...)
		for range n {
			b = append(b, text...)
		}
		return append(b, tail...)
	}}
}

func honest(b Body) Body {
	b.Honest = true
	return b
}

// said is a body whose one user message is a repeated text.
func said(name, text string) Body {
	return one(name, start+`{"role":"user","content":"`, text, `"}`+end)
}

// series is a body of many elements with commas between them.
type series struct {
	name       string
	head, tail string
	values     int // JSON values of an element, keys not counted
	most       int // elements that are allowed for another reason, 0: no bound
	// element appends number i. pad goes where more bytes cost something.
	element func(dst []byte, i int, pad []byte) []byte
}

// bodies are the three forms of a series.
func (s series) bodies() []Body {
	return []Body{
		{Name: s.name + ", tight", Make: func(size int) []byte { return s.make(size, s.limit(), false) }},
		{Name: s.name + ", padded", Make: func(size int) []byte { return s.make(size, s.limit(), true) }},
		{Name: s.name + ", beyond", Make: func(size int) []byte { return s.make(size, size, false) }},
	}
}

// limit is the most elements that a body may have.
func (s series) limit() int {
	n := (ValuesMax - spareValues) / s.values
	if s.most > 0 {
		n = min(n, s.most)
	}
	return n
}

// make writes at most n elements into size bytes, filled up to size if they are
// to be padded.
func (s series) make(size, n int, padded bool) []byte {
	room := size - len(s.head) - len(s.tail)
	// Later elements have longer numbers in them, and some are of two shapes.
	longest := max(len(s.element(nil, 9_999_999, nil)), len(s.element(nil, 9_999_998, nil))) + 1
	n = max(1, min(n, room/longest))
	var pad []byte
	if padded && room/n > longest {
		pad = bytes.Repeat([]byte("x"), room/n-longest)
	}
	b := make([]byte, 0, max(size, len(s.head)+n*longest+len(s.tail)))
	b = append(b, s.head...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.element(b, i, pad)
	}
	return append(b, s.tail...)
}

// plain is an element of fixed text around the padding.
func plain(before, after string) func([]byte, int, []byte) []byte {
	return func(dst []byte, _ int, pad []byte) []byte {
		dst = append(dst, before...)
		dst = append(dst, pad...)
		return append(dst, after...)
	}
}

// texts are single texts of one kind of character.
func texts() []Body {
	return []Body{
		honest(said("plain text", "All work and no play makes a dull test, so here is some play. ")),
		honest(said("text full of short escapes", `\n`)),
		honest(said("quotes and tabs in code", `if a[\"b\"] {\n\treturn \"c\"\n}\n`)),
		honest(said("Chinese text", "提示缓存存储了请求的前缀。")),
		honest(said("French text", "Déjà vu, né à Orléans, où l'été s'achève. ")),
		honest(said("emoji", "\U0001F600\U0001F680")),
		honest(said("emoji as pairs of surrogates", `\ud83d\ude00`)),
		said("letters spelled as escapes", `\u0061`),
		said("accents spelled as escapes", `\u00e9`),
		said("an escape behind each letter", `a\n`),
		said("an escape behind each seven letters", `abcdefg\n`),
		said("halves of surrogate pairs", `\ud83d`),
		said("second halves of surrogate pairs", `\ude00`),
		said("halves in the wrong order", `\ude00\ud83d`),
		said("halves between letters", `a\ud83db`),
		said("a character of two bytes behind each letter", "aé"),
		said("control characters as escapes", `\u0000`),
		one("system text full of escapes", start+`{"role":"system","content":"`, `\n\u0061`, `"},`+question+end),
		one("blank system text", start+`{"role":"system","content":"`, `\u3000`, `"},`+question+end),
		one("blank user text", start+question+`,{"role":"user","content":"`, `\t`, `"}`+end),
		one("blank user text of spelled spaces", start+question+`,{"role":"user","content":"`, `\u2003`, `"}`+end),
		one("white space behind a prefill", start+question+`,{"role":"assistant","content":"a`, `\u2003`, `"}`+end),
		one("raw white space behind a prefill", start+question+`,{"role":"assistant","content":"a`, ` `, `"}`+end),
		one("words and white space in a prefill", start+question+`,{"role":"assistant","content":"`, "a\u3000", `"}`+end),
	}
}

// escapes stand where texts are compared or decoded.
func escapes() []Body {
	return []Body{
		one("arguments of spaces spelled as escapes", start+question+`,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":\"`,
			`\u0061`, `\"}"}}]},{"role":"tool","tool_call_id":"c","content":""}`+end),
		one("arguments full of escapes", start+question+`,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":\"`,
			`\\n\\\"`, `\"}"}}]},{"role":"tool","tool_call_id":"c","content":""}`+end),
		one("arguments with halves of pairs", start+question+`,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":\"`,
			`\\ud83d\ud83d`, `\"}"}}]},{"role":"tool","tool_call_id":"c","content":""}`+end),
		one("white space in arguments", start+question+`,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{`,
			`\n\t`, `}"}}]},{"role":"tool","tool_call_id":"c","content":""}`+end),
		one("a call's name full of escapes", start+question+`,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"`,
			`\u0061\ud83d`, `","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":""}`+end),
		one("a call's id of escapes", start+question+`,{"role":"assistant","tool_calls":[{"id":"`, `\u0061`, `","function":{"name":"f"}}]}`+end),
		one("a key of escapes", `{"`, `\u0061`, `":1,`+start[1:]+question+end),
	}
}
