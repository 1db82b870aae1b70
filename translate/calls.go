package translate

import (
	"bytes"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

var (
	callKeys   = newKeys("id", "type", "function")
	calledKeys = newKeys("name", "arguments")
)

// call reads one of an assistant message's tool_calls.
func (c *conversation) call(index int, v jsontext.Value) (b block, f *fault) {
	if f := object(v); f != nil {
		return b, f
	}
	var m [3]jsontext.Value
	if f := members(v, callKeys, m[:]); f != nil {
		return b, f
	}
	// Some clients leave the type of a replayed call out; another type than
	// function is a call that could not be answered.
	if m[1].Sent() && !m[1].Is("function") {
		return b, bad("only function tools are supported").in("type")
	}
	if m[0].Kind() != jsontext.String {
		return b, bad("must be a string").in("id")
	}
	if !m[2].Sent() {
		return b, bad("is required").in("function")
	}
	b = block{kind: toolUseBlock, id: c.ids.fit(m[0])}
	if f := c.function(m[2], &b); f != nil {
		return b, f.in("function")
	}
	c.calls.add(string(m[0].Bytes()), c.index, index)
	return b, nil
}

func (c *conversation) function(v jsontext.Value, b *block) *fault {
	var m [2]jsontext.Value
	if f := subobject(v, calledKeys, m[:]); f != nil {
		return f
	}
	if f := functionName(m[0]); f != nil {
		return f
	}
	b.name = inner(m[0])
	var f *fault
	if b.body, f = c.arguments(m[1]); f != nil {
		return f.in("arguments")
	}
	return nil
}

var emptyObject = []byte("{}")

// arguments reads a call's arguments: the text of a JSON object, which goes up
// as spelled; nothing means no arguments (decision 14).
func (c *conversation) arguments(v jsontext.Value) ([]byte, *fault) {
	if !v.Sent() {
		return emptyObject, nil
	}
	if f := str(v); f != nil {
		return nil, f
	}
	if v.Empty() {
		return emptyObject, nil
	}
	text := make([]byte, 0, len(v.Inner())+jsontext.Slack)
	text = jsontext.AppendDecoded(text, v.Inner())
	doc := &c.parser.args
	err := doc.Scan(text, jsontext.Limits{Depth: nestingLevelsMax, Values: c.valuesLeft})
	c.valuesLeft -= doc.Values()
	if err != nil {
		return nil, bad(scanText(err))
	}
	if doc.Root().Kind() != jsontext.Object {
		return nil, bad("must be a JSON object")
	}
	return span(doc.Root()), nil
}

// tool adds a result to the turn behind the calls (decision 13).
func (c *conversation) tool(m *[messageMembers]jsontext.Value) *fault {
	id := m[messageToolCallID]
	if id.Kind() != jsontext.String {
		return bad("must be a string").in("tool_call_id")
	}
	if !c.calls.answer(string(id.Bytes())) {
		return bad("answers no open tool call of the assistant turn before it").in("tool_call_id")
	}
	parts, f := c.content(c.parser.kept.room(1), m[messageContent], partsOfTool)
	if f != nil {
		return f.in("content")
	}
	t := c.turn(false)
	if t.results == nil {
		t.results = c.parser.kept.room(1)
	}
	t.results = append(t.results, block{kind: toolResultBlock, id: c.ids.fit(id), parts: parts})
	return nil
}

// pendingCalls are the calls of the newest assistant turn and which of them
// have their result.
type pendingCalls struct {
	calls []pendingCall
	open  map[string]int // id → 1 + index of the first call that is open
}

type pendingCall struct {
	message, index int
	next           int // 1 + index of the next call with the same id
	answered       bool
}

func (p *pendingCalls) reset() {
	p.calls = p.calls[:0]
	clear(p.open)
}

func (p *pendingCalls) add(id string, message, index int) {
	if p.open == nil {
		p.open = make(map[string]int, 8)
	}
	p.calls = append(p.calls, pendingCall{message: message, index: index})
	first := p.open[id]
	if first == 0 {
		p.open[id] = len(p.calls)
		return
	}
	// Equal ids are the upstream's to refuse; here they queue up behind the first.
	p.calls[len(p.calls)-1].next = p.calls[first-1].next
	p.calls[first-1].next = len(p.calls)
}

// answer takes the first open call with that id; false when there is none.
func (p *pendingCalls) answer(id string) bool {
	first := p.open[id]
	if first == 0 {
		return false
	}
	call := &p.calls[first-1]
	call.answered = true
	p.open[id] = call.next
	return true
}

// unanswered is the fault of the first call without a result. It belongs to an
// earlier message than the one being read.
func (p *pendingCalls) unanswered() *fault {
	for _, call := range p.calls {
		if !call.answered {
			f := bad("has no tool message that answers it").in("id").at(call.index).in("tool_calls").at(call.message)
			f.placed = true
			return f
		}
	}
	return nil
}

// idMap makes call ids fit for the upstream, which takes only letters, digits,
// _ and - (decision 15). The map is a function of the id alone, so that a
// conversation has the same ids in every request.
type idMap struct {
	messages jsontext.Value
	learned  bool
	taken    map[string]struct{} // fitting ids of the client that begin like mapped ones
	apart    []byte              // what no id in taken ends with, and no mapped id has inside
}

// idPrefix begins every mapped id. Behind it each letter, digit and - stands for
// itself and each other byte, _ among them, is _XX: two ids never meet.
const idPrefix = "ezatid-"

// learn finds the client's own ids that begin like mapped ones: only with those
// could a mapped id collide.
func (m *idMap) learn() {
	m.learned = true
	for it := m.messages.Items(); it.Next(); {
		calls := it.Value().Get("tool_calls")
		if calls.Kind() != jsontext.Array {
			continue
		}
		for call := calls.Items(); call.Next(); {
			id := call.Value().Get("id")
			if id.Kind() != jsontext.String {
				continue
			}
			text := id.Bytes()
			if len(text) < len(idPrefix) || string(text[:len(idPrefix)]) != idPrefix || !fitting(text) {
				continue
			}
			if m.taken == nil {
				m.taken = map[string]struct{}{}
			}
			m.taken[string(text)] = struct{}{}
			m.lengthen(text)
		}
	}
}

// lengthen keeps apart longer than the run of _ at the end of a taken id. No
// mapped id has two of them in a row, for hexadecimal digits follow each.
func (m *idMap) lengthen(taken []byte) {
	run := len(taken) - len(bytes.TrimRight(taken, "_"))
	for len(m.apart) < max(run+1, 2) {
		m.apart = append(m.apart, '_')
	}
}

// fit is the id as it goes upstream.
func (m *idMap) fit(v jsontext.Value) []byte {
	id := v.Bytes()
	if fitting(id) {
		return id
	}
	fit := append(make([]byte, 0, len(idPrefix)+2*len(id)), idPrefix...)
	for _, c := range id {
		if c != '_' && idByte(c) {
			fit = append(fit, c)
			continue
		}
		const digits = "0123456789ABCDEF"
		fit = append(fit, '_', digits[c>>4], digits[c&15])
	}
	if !m.learned {
		m.learn()
	}
	if _, ok := m.taken[string(fit)]; ok {
		fit = append(fit, m.apart...)
	}
	return fit
}

func fitting(id []byte) bool {
	for _, c := range id {
		if !idByte(c) {
			return false
		}
	}
	return len(id) > 0
}

func idByte(c byte) bool {
	return c-'0' <= 9 || c|0x20-'a' <= 25 || c == '_' || c == '-'
}
