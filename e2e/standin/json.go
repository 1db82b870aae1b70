package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of the JSON reader. The API documents none of them; they only keep
// hostile input from exhausting the stack or the memory.
const (
	depthMax  = 1000
	valuesMax = 10_000_000
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// node is one JSON value. raw is its span in the body. The children of an
// array are its elements; those of an object are key, value, key, value, …
type node struct {
	kind kind
	raw  []byte
	kids []node
}

// parseJSON reads a whole body. Besides broken syntax it refuses invalid
// UTF-8 and halves of surrogate pairs, as the API does.
func parseJSON(body []byte) (node, *APIError) {
	if !utf8.Valid(body) {
		return node{}, invalid("The request body is not valid JSON: str is not valid UTF-8: surrogates not allowed")
	}
	p := parser{body: body}
	root, err := p.document()
	if err != nil {
		return node{}, invalid("The request body is not valid JSON: %s: %s", err, p.place())
	}
	return root, nil
}

type parser struct {
	body   []byte
	pos    int
	depth  int
	values int
}

type syntaxError string

func (e syntaxError) Error() string { return string(e) }

func (p *parser) document() (node, error) {
	n, err := p.value()
	if err != nil {
		return node{}, err
	}
	if p.space(); p.pos < len(p.body) {
		return node{}, syntaxError("unexpected content after document")
	}
	return n, nil
}

// place words the reader's position as the API does.
func (p *parser) place() string {
	before := p.body[:p.pos]
	line := bytes.Count(before, []byte{'\n'})
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d column %d (char %d)", line+1, column+1, utf8.RuneCount(before))
}

func (p *parser) space() {
	for p.pos < len(p.body) {
		switch p.body[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is no white space, or 0 at the end.
func (p *parser) peek() byte {
	if p.space(); p.pos < len(p.body) {
		return p.body[p.pos]
	}
	return 0
}

func (p *parser) value() (node, error) {
	if p.values++; p.values > valuesMax {
		return node{}, syntaxError("too many values")
	}
	c := p.peek()
	start := p.pos
	switch {
	case c == '"':
		return p.string()
	case c == '{' || c == '[':
		return p.container(c)
	case c == '-' || c >= '0' && c <= '9':
		if err := p.number(); err != nil {
			return node{}, err
		}
		return node{kind: kindNumber, raw: p.body[start:p.pos]}, nil
	case p.word("true"), p.word("false"):
		return node{kind: kindBool, raw: p.body[start:p.pos]}, nil
	case p.word("null"):
		return node{kind: kindNull, raw: p.body[start:p.pos]}, nil
	case start == len(p.body):
		return node{}, syntaxError("input is a zero-length, empty document or ends too early")
	}
	return node{}, syntaxError("unexpected character")
}

func (p *parser) word(word string) bool {
	if !bytes.HasPrefix(p.body[p.pos:], []byte(word)) {
		return false
	}
	p.pos += len(word)
	return true
}

func (p *parser) container(open byte) (node, error) {
	if p.depth++; p.depth > depthMax {
		return node{}, syntaxError("recursion limit exceeded")
	}
	defer func() { p.depth-- }()
	n := node{kind: kindArray}
	closing := byte(']')
	if open == '{' {
		n.kind, closing = kindObject, '}'
	}
	start := p.pos
	p.pos++
	for p.peek() != closing {
		if len(n.kids) > 0 && !p.word(",") {
			return node{}, syntaxError("expected ',' or '" + string(closing) + "'")
		}
		if err := p.member(&n); err != nil {
			return node{}, err
		}
	}
	p.pos++
	n.raw = p.body[start:p.pos]
	return n, nil
}

// member reads one element of an array, or one key and value of an object.
func (p *parser) member(n *node) error {
	if n.kind == kindObject {
		if p.peek() != '"' {
			return syntaxError("expected a string as key")
		}
		key, err := p.string()
		if err != nil {
			return err
		}
		n.kids = append(n.kids, key)
		if p.peek() != ':' {
			return syntaxError("expected ':'")
		}
		p.pos++
	}
	value, err := p.value()
	if err != nil {
		return err
	}
	n.kids = append(n.kids, value)
	return nil
}

func (p *parser) number() error {
	p.word("-")
	if !p.word("0") && p.digits() == 0 {
		return syntaxError("expected a digit")
	}
	if p.word(".") && p.digits() == 0 {
		return syntaxError("expected a digit")
	}
	if p.word("e") || p.word("E") {
		if !p.word("+") {
			p.word("-")
		}
		if p.digits() == 0 {
			return syntaxError("expected a digit")
		}
	}
	return nil
}

func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.body) && p.body[p.pos] >= '0' && p.body[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}

// string reads a string whose opening quote is next.
func (p *parser) string() (node, error) {
	start := p.pos
	p.pos++
	for p.pos < len(p.body) {
		switch c := p.body[p.pos]; {
		case c == '"':
			p.pos++
			return node{kind: kindString, raw: p.body[start:p.pos]}, nil
		case c < 0x20:
			return node{}, syntaxError("control characters must be escaped in a string")
		case c == '\\':
			if err := p.escape(); err != nil {
				return node{}, err
			}
		default:
			p.pos++
		}
	}
	return node{}, syntaxError("unterminated string")
}

func (p *parser) escape() error {
	if p.pos+1 >= len(p.body) {
		return syntaxError("unterminated string")
	}
	c := p.body[p.pos+1]
	if c != 'u' {
		if strings.IndexByte(`"\/bfnrt`, c) < 0 {
			return syntaxError("invalid escaped character in string")
		}
		p.pos += 2
		return nil
	}
	unit, ok := p.hex(p.pos)
	if !ok {
		return syntaxError("invalid hex escape in string")
	}
	if unit >= 0xDC00 && unit <= 0xDFFF {
		return syntaxError("no high surrogate in string")
	}
	if unit >= 0xD800 && unit <= 0xDBFF {
		low, ok := p.hex(p.pos + 6)
		if !ok || low < 0xDC00 || low > 0xDFFF {
			return syntaxError("no low surrogate in string")
		}
		p.pos += 6
	}
	p.pos += 6
	return nil
}

// hex reads the \uXXXX at position at.
func (p *parser) hex(at int) (uint64, bool) {
	if at+6 > len(p.body) || p.body[at] != '\\' || p.body[at+1] != 'u' {
		return 0, false
	}
	digits := p.body[at+2 : at+6]
	if digits[0] == '+' || digits[0] == '-' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(digits), 16, 16)
	return unit, err == nil
}

// str is the decoded text of a string node, "" for every other kind.
func (n node) str() string {
	if n.kind != kindString {
		return ""
	}
	if bytes.IndexByte(n.raw, '\\') < 0 {
		return string(n.raw[1 : len(n.raw)-1])
	}
	var s string
	if err := json.Unmarshal(n.raw, &s); err != nil {
		// The parser has accepted the literal already.
		panic(err)
	}
	return s
}

// get returns the value of key; of equal keys the last one counts, as in
// the API's own reader.
func (n node) get(key string) (node, bool) {
	if n.kind != kindObject {
		return node{}, false
	}
	for i := len(n.kids) - 2; i >= 0; i -= 2 {
		if n.kids[i].str() == key {
			return n.kids[i+1], true
		}
	}
	return node{}, false
}

// has says that key is there with another value than null.
func (n node) has(key string) bool {
	v, ok := n.get(key)
	return ok && v.kind != kindNull
}

// text returns the string at key, "" when there is none.
func (n node) text(key string) string {
	v, _ := n.get(key)
	return v.str()
}

// at returns the value at key, a null when there is none.
func (n node) at(key string) node {
	v, _ := n.get(key)
	return v
}

func (n node) isTrue() bool { return n.kind == kindBool && n.raw[0] == 't' }

// integer returns a whole number spelled without fraction and exponent;
// numbers beyond 64 bits are clamped.
func (n node) integer() (int64, bool) {
	if n.kind != kindNumber || bytes.ContainsAny(n.raw, ".eE") {
		return 0, false
	}
	// On overflow ParseInt returns the nearest value, which is the clamp.
	v, _ := strconv.ParseInt(string(n.raw), 10, 64)
	return v, true
}

// float returns a number's value, infinite beyond the range of float64.
func (n node) float() float64 {
	if n.kind != kindNumber {
		return math.NaN()
	}
	v, _ := strconv.ParseFloat(string(n.raw), 64)
	return v
}
