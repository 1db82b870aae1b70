package main

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The plugin configuration is read by a small parser of its own: it must keep
// repeated keys apart from others, and know where a value stood. The general
// JSON packages would add a third to the module.

type jsonKind int

const (
	jsonNull jsonKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

// jsonValue is one value of the configuration.
type jsonValue struct {
	kind    jsonKind
	truth   bool
	text    string // a string's text, or a number as spelled
	items   []jsonValue
	members []jsonMember // in order, repeated keys included
}

type jsonMember struct {
	key   string
	value jsonValue
}

// parseJSON reads one JSON value (RFC 8259). fault says what is wrong and at
// which byte, "" when nothing is.
func parseJSON(src []byte) (v jsonValue, fault string) {
	if !utf8.Valid(src) {
		return v, "is not UTF-8"
	}
	p := jsonParser{src: src}
	v = p.value(0)
	p.space()
	if p.fault == "" && p.at < len(src) {
		p.fail("has something behind its end")
	}
	if p.fault != "" {
		return v, p.fault + " (byte " + strconv.Itoa(p.at) + ")"
	}
	return v, ""
}

// jsonParser stops at the first fault: after it, at stays where it is and
// every method returns at once.
type jsonParser struct {
	src   []byte
	at    int
	fault string
}

func (p *jsonParser) fail(fault string) {
	if p.fault == "" {
		p.fault = fault
	}
}

func (p *jsonParser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// peek is the next byte that is no white space, 0 at the end.
func (p *jsonParser) peek() byte {
	p.space()
	if p.at == len(p.src) {
		return 0
	}
	return p.src[p.at]
}

// take consumes c when it is the next byte.
func (p *jsonParser) take(c byte) bool {
	if p.fault != "" || p.peek() != c {
		return false
	}
	p.at++
	return true
}

func (p *jsonParser) value(depth int) jsonValue {
	if depth > configDepthLevels {
		p.fail("is nested too deeply")
	}
	if p.fault != "" {
		return jsonValue{}
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return jsonValue{kind: jsonString, text: p.string()}
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	default:
		return p.word()
	}
}

func (p *jsonParser) object(depth int) jsonValue {
	v := jsonValue{kind: jsonObject}
	p.at++
	if p.take('}') {
		return v
	}
	for p.fault == "" {
		if p.peek() != '"' {
			p.fail("is not JSON: a key is missing")
			break
		}
		key := p.string()
		if !p.take(':') {
			p.fail("is not JSON: a colon is missing")
			break
		}
		v.members = append(v.members, jsonMember{key, p.value(depth + 1)})
		if p.take('}') {
			break
		}
		if !p.take(',') {
			p.fail("is not JSON: an object does not end")
		}
	}
	return v
}

func (p *jsonParser) array(depth int) jsonValue {
	v := jsonValue{kind: jsonArray}
	p.at++
	if p.take(']') {
		return v
	}
	for p.fault == "" {
		v.items = append(v.items, p.value(depth+1))
		if p.take(']') {
			break
		}
		if !p.take(',') {
			p.fail("is not JSON: an array does not end")
		}
	}
	return v
}

func (p *jsonParser) word() jsonValue {
	for _, w := range []struct {
		text  string
		value jsonValue
	}{
		{"null", jsonValue{kind: jsonNull}},
		{"true", jsonValue{kind: jsonBool, truth: true}},
		{"false", jsonValue{kind: jsonBool}},
	} {
		if end := p.at + len(w.text); end <= len(p.src) && string(p.src[p.at:end]) == w.text {
			p.at = end
			return w.value
		}
	}
	p.fail("is not JSON: a value is missing")
	return jsonValue{}
}

func (p *jsonParser) number() jsonValue {
	start := p.at
	digits := func() int {
		n := p.at
		for p.at < len(p.src) && '0' <= p.src[p.at] && p.src[p.at] <= '9' {
			p.at++
		}
		return p.at - n
	}
	next := func(a, b byte) bool {
		if p.at < len(p.src) && (p.src[p.at] == a || p.src[p.at] == b) {
			p.at++
			return true
		}
		return false
	}
	next('-', '-')
	leading := p.at
	n := digits()
	good := n > 0 && (n == 1 || p.src[leading] != '0')
	if next('.', '.') {
		good = digits() > 0 && good
	}
	if next('e', 'E') {
		next('+', '-')
		good = digits() > 0 && good
	}
	if !good {
		p.fail("is not JSON: a number is malformed")
	}
	return jsonValue{kind: jsonNumber, text: string(p.src[start:p.at])}
}

func (p *jsonParser) string() string {
	p.at++
	var out []byte
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c == '"':
			p.at++
			return string(out)
		case c < ' ':
			p.fail("is not JSON: a control character in a string")
			return ""
		case c == '\\':
			out = p.escape(out)
			if p.fault != "" {
				return ""
			}
		default:
			out = append(out, c)
			p.at++
		}
	}
	p.fail("is not JSON: a string does not end")
	return ""
}

func (p *jsonParser) escape(out []byte) []byte {
	if p.at+1 >= len(p.src) {
		p.fail("is not JSON: a string does not end")
		return out
	}
	c := p.src[p.at+1]
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for i := range len(from) {
		if c == from[i] {
			p.at += 2
			return append(out, to[i])
		}
	}
	r, ok := p.unicodeEscape()
	if !ok {
		p.fail("is not JSON: a malformed escape in a string")
		return out
	}
	if utf16.IsSurrogate(r) {
		low, ok := p.unicodeEscape()
		r = utf16.DecodeRune(r, low)
		if !ok || r == utf8.RuneError {
			p.fail("has half of a surrogate pair in a string")
			return out
		}
	}
	return utf8.AppendRune(out, r)
}

// unicodeEscape reads \uXXXX.
func (p *jsonParser) unicodeEscape() (rune, bool) {
	if p.at+6 > len(p.src) || p.src[p.at] != '\\' || p.src[p.at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range p.src[p.at+2 : p.at+6] {
		d := hexDigit(c)
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	p.at += 6
	return r, true
}
