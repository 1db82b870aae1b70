package translate

import (
	"strconv"

	"ezat.io/chat-completions/translate/internal/hash"
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
	b = block{kind: toolUseBlock, tool: c.tools(toolBlock{})}
	if f := c.function(m[2], &b); f != nil {
		return b, f.in("function")
	}
	b.tool.call = c.calls.add(c.parser.kept.text.of(m[0]), c.index, index)
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
	b.tool.name = inner(m[0])
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
	doc := &c.parser.args
	err := doc.Scan(c.parser.kept.text.decoded(v.Inner()), jsontext.Limits{Depth: nestingLevelsMax, Values: c.valuesLeft, Mend: true})
	c.valuesLeft -= doc.Values()
	switch {
	case err != nil && err.Reason == jsontext.TooMany:
		return nil, bad("brings the request body to more than " + strconv.Itoa(bodyValuesMax) + " values")
	case err != nil:
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
	call, ok := c.calls.answer(c.parser.kept.text.of(id))
	if !ok {
		return bad("answers no open tool call of the assistant turn before it").in("tool_call_id")
	}
	parts, f := c.content(nil, m[messageContent], partsOfTool)
	if f != nil {
		return f.in("content")
	}
	t := c.turn(false)
	t.results = c.add(t.results, block{kind: toolResultBlock, tool: c.tools(toolBlock{call: call, parts: parts})})
	return nil
}

// tools puts what only calls and results have into the parser's memory.
func (c *conversation) tools(t toolBlock) *toolBlock {
	return &append(c.parser.kept.tools.room(1), t)[0]
}

// calls are all calls of a conversation, and which of the newest assistant turn's
// have their result.
type calls struct {
	list []call
	turn int // number of that turn's first call
	ids  *idTable
}

// call is one call.
type call struct {
	id             int32 // number of its id in the table
	uses           int32 // how many calls before it had the same id
	next           int32 // 1 + number of the next call of the turn with the same id
	message, index int32
	answered       bool
	name           []byte // its id upstream, fit to stand in quotes
}

// from takes the parser's memory.
func (c *calls) from(k *kept, key *hash.Key) {
	c.list, c.ids = k.calls[:0], &k.ids
	c.ids.begin(key)
}

// begin begins an assistant turn.
func (c *calls) begin() { c.turn = len(c.list) }

// add adds a call of the newest turn and gives its number.
func (c *calls) add(id []byte, message, index int) int {
	n := len(c.list)
	c.list = push(c.list, call{id: c.ids.add(id), message: int32(message), index: int32(index)})
	used := &c.ids.ids[c.list[n].id]
	c.list[n].uses = used.uses
	used.uses++
	if used.open == 0 {
		used.open = int32(n + 1)
	} else {
		c.list[used.last-1].next = int32(n + 1)
	}
	used.last = int32(n + 1)
	return n
}

// answer takes the first open call with that id; false when there is none. At the
// end of a turn all are answered, so what is open belongs to the newest one.
func (c *calls) answer(id []byte) (number int, ok bool) {
	i := c.ids.find(id)
	if i < 0 || c.ids.ids[i].open == 0 {
		return 0, false
	}
	used := &c.ids.ids[i]
	number = int(used.open - 1)
	used.open = c.list[number].next
	c.list[number].answered = true
	return number, true
}

// unanswered is the fault of the first call without a result. It belongs to an
// earlier message than the one being read.
func (c *calls) unanswered() *fault {
	for _, call := range c.list[c.turn:] {
		if !call.answered {
			f := bad("has no tool message that answers it").in("id").at(int(call.index)).in("tool_calls").at(int(call.message))
			f.placed = true
			return f
		}
	}
	return nil
}

// nameAll gives each call its id upstream. That of a call and of its result is one
// and the same.
func (c *calls) nameAll(room *textSlab) {
	for i := range c.list {
		call := &c.list[i]
		call.name = c.ids.upstream(call.id, call.uses, room)
	}
}
