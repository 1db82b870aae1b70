package translate

import (
	"ezat.io/chat-completions/translate/internal/jsontext"
)

// turn is one message as it goes upstream: neighbouring messages of one role
// (decision 12). After an assistant turn with calls its results come first,
// whatever the client put between them.
type turn struct {
	assistant bool
	results   []block
	blocks    []block
}

type blockKind uint8

const (
	textBlock blockKind = iota
	imageBlock
	documentBlock
	toolUseBlock
	toolResultBlock
)

// block is one content block as it goes upstream.
type block struct {
	kind  blockKind
	fetch int32  // 1 + index of the download that brings an image; 0: none
	media string // imageBlock: its type, image/…
	// body is the text's spelling without quotes, the base64 of a file, or the
	// input of a call as spelled.
	body []byte
	tool *toolBlock // toolUse, toolResult
	mark *mark      // the client's own cache breakpoint
}

// toolBlock is what only calls and their results have.
type toolBlock struct {
	call  int     // number of the call among the request's, which knows its id
	name  []byte  // toolUse: the spelling without quotes
	parts []block // toolResult
}

// conversation reads messages in order and puts them into turns.
type conversation struct {
	parser     *Parser
	request    *Request
	valuesLeft int

	calls      calls
	index      int  // of the message being read
	partIndex  int  // of the content part being read
	urls       int  // image URLs so far
	clientTurn bool // some message is neither system nor developer
}

// read reads `messages` (contract, "Messages"; decisions 10 to 17).
func (c *conversation) read(v jsontext.Value) *fault {
	const text = "must contain at least one user message"
	if !v.Sent() {
		return bad(text)
	}
	if f := array(v); f != nil {
		return f
	}
	for it := v.Items(); it.Next(); {
		c.index = it.Index()
		if f := c.message(it.Value()); f != nil {
			if !f.placed {
				f = f.at(c.index)
			}
			return f
		}
	}
	if !c.clientTurn {
		return bad(text)
	}
	if f := c.calls.unanswered(); f != nil {
		return f
	}
	c.trimPrefill()
	if len(c.request.turns) == 0 {
		return bad(text)
	}
	c.calls.nameAll(&c.parser.kept.text)
	return nil
}

// Members of a message.
const (
	messageRole = iota
	messageContent
	messageToolCalls
	messageToolCallID
	messageMembers
)

var messageKeys = newKeys("role", "content", "tool_calls", "tool_call_id")

func (c *conversation) message(v jsontext.Value) *fault {
	if f := object(v); f != nil {
		return f
	}
	var m [messageMembers]jsontext.Value
	if f := members(v, messageKeys, m[:]); f != nil {
		return f
	}
	role := m[messageRole]
	c.clientTurn = c.clientTurn || !role.Is("system") && !role.Is("developer")
	switch {
	case role.Is("user"):
		return c.user(m[messageContent])
	case role.Is("assistant"):
		return c.assistant(&m)
	case role.Is("tool"):
		return c.tool(&m)
	case role.Is("system"), role.Is("developer"):
		return c.system(m[messageContent])
	case role.Is("function"):
		return bad(`the legacy "function" role is not supported; use tools`).in("role")
	}
	return bad("must be one of system, developer, user, assistant and tool").in("role")
}

// system adds to the system prompt, white-space-only text left out (decision 10).
func (c *conversation) system(content jsontext.Value) *fault {
	before := len(c.request.system)
	blocks, f := c.content(c.request.system, content, partsOfSystem)
	if f != nil {
		return f.in("content")
	}
	kept := blocks[:before]
	for _, b := range blocks[before:] {
		if !blank(b.body) {
			kept = append(kept, b)
		}
	}
	c.request.system = kept
	return nil
}

func (c *conversation) user(content jsontext.Value) *fault {
	t := c.turn(false)
	before := len(t.blocks)
	var f *fault
	if t.blocks, f = c.content(t.blocks, content, partsOfUser); f != nil {
		return f.in("content")
	}
	if len(t.blocks) == before {
		return bad("must not be empty").in("content")
	}
	return nil
}

// assistant adds text and calls; a message with neither is left out and parts
// no turns (decision 11).
func (c *conversation) assistant(m *[messageMembers]jsontext.Value) *fault {
	// A call, or a text and a call.
	blocks, f := c.content(c.parser.kept.blocks.room(2), m[messageContent], partsOfAssistant)
	if f != nil {
		return f.in("content")
	}
	calls := m[messageToolCalls]
	hasCalls := calls.Sent()
	if hasCalls {
		if f := array(calls); f != nil {
			return f.in("tool_calls")
		}
		hasCalls = !calls.Empty()
	}
	if len(blocks) == 0 && !hasCalls {
		return nil
	}
	if n := len(c.request.turns); n > 0 && !c.request.turns[n-1].assistant {
		if f := c.calls.unanswered(); f != nil {
			return f
		}
		c.calls.begin()
	}
	t := c.turn(true)
	if len(t.blocks) == 0 {
		t.blocks = blocks
	} else {
		for _, b := range blocks {
			t.blocks = c.add(t.blocks, b)
		}
	}
	if !hasCalls {
		return nil
	}
	for it := calls.Items(); it.Next(); {
		b, f := c.call(it.Index(), it.Value())
		if f != nil {
			return f.at(it.Index()).in("tool_calls")
		}
		t.blocks = c.add(t.blocks, b)
	}
	return nil
}

// add is append for blocks, in the parser's memory.
func (c *conversation) add(blocks []block, b block) []block {
	if n := len(blocks); n == cap(blocks) {
		blocks = append(c.parser.kept.blocks.room(max(2*n, 1)), blocks...)
	}
	return append(blocks, b)
}

// turn is the open turn of that role, or a new one.
func (c *conversation) turn(assistant bool) *turn {
	turns := &c.request.turns
	if n := len(*turns); n == 0 || (*turns)[n-1].assistant != assistant {
		*turns = push(*turns, turn{assistant: assistant})
	}
	return &(*turns)[len(*turns)-1]
}

// trimPrefill cuts white space at the end of a conversation that ends with the
// assistant's text (decision 16); text that is all white space goes, and with it
// a turn that has nothing else.
func (c *conversation) trimPrefill() {
	turns := &c.request.turns
	for n := len(*turns); n > 0 && (*turns)[n-1].assistant; n = len(*turns) {
		t := &(*turns)[n-1]
		last := len(t.blocks) - 1
		if t.blocks[last].kind != textBlock {
			return
		}
		if t.blocks[last].body = trimEnd(t.blocks[last].body); len(t.blocks[last].body) > 0 {
			return
		}
		if t.blocks = t.blocks[:last]; last == 0 {
			*t, *turns = turn{}, (*turns)[:n-1]
		}
	}
}
