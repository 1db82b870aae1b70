package translate

import (
	"bytes"
	"strconv"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// pingLine is what an upstream's ping becomes: one line feed and no blank line,
// which older clients take for an empty event (decision 33).
const pingLine = ": ping\n"

// event handles one event of the upstream. Zeros stand behind data.
func (s *Stream) event(dst, data []byte) []byte {
	if string(data) == `{"type": "ping"}` || string(data) == `{"type":"ping"}` {
		return append(dst, pingLine...)
	}
	var d delta
	if in := data[:len(data)+1]; bareDelta.At(in, 0) && d.read(in, bareDelta.Size()) && d.end == len(data) {
		if b := s.taker(&d); b != nil {
			return s.delta(dst, b, d.inner, d.size, d.lone)
		}
	}
	return s.parse(dst, data)
}

// parse handles an event of any shape.
func (s *Stream) parse(dst, data []byte) []byte {
	err := s.doc.Scan(data, jsontext.Limits{Depth: nestingLevelsMax, Values: answerValuesMax})
	if v := s.doc.Root(); err != nil || v.Kind() != jsontext.Object {
		dst = s.fail(dst, BadUpstream())
	} else {
		dst = s.dispatch(dst, v)
	}
	if len(data) > keepEventBytesMax {
		s.doc = jsontext.Doc{}
	}
	return dst
}

// dispatch handles an event by its type.
func (s *Stream) dispatch(dst []byte, v jsontext.Value) []byte {
	name := v.Get("type")
	if name.Kind() != jsontext.String {
		return dst // no type that we know
	}
	switch string(name.Bytes()) {
	case "ping":
		return append(dst, pingLine...)
	case "error":
		return s.fail(dst, s.reply.eventError(v.Get("error")))
	case "message_start":
		return s.messageStart(dst, v)
	case "content_block_start":
		return s.blockStart(dst, v)
	case "content_block_delta":
		return s.blockDelta(dst, v)
	case "content_block_stop":
		return s.blockStop(dst, v)
	case "message_delta":
		return s.messageDelta(dst, v)
	case "message_stop":
		if s.started {
			return s.stop(dst)
		}
		return s.fail(dst, BadUpstream())
	}
	return dst
}

func (s *Stream) messageStart(dst []byte, v jsontext.Value) []byte {
	m := v.Get("message")
	if s.started || m.Kind() != jsontext.Object || !s.counts.take(m.Get("usage")) {
		return s.fail(dst, BadUpstream())
	}
	s.started = true
	dst = append(dst, s.front...)
	dst = append(dst, `{"index":0,"delta":{"role":"assistant","content":""}`...)
	return append(dst, s.back...)
}

// messageDelta keeps what the message's end is told by. Several may come: the
// last reason that is not null and the last counters count (decision 34).
func (s *Stream) messageDelta(dst []byte, v jsontext.Value) []byte {
	delta := v.Get("delta")
	stop := delta.Get("stop_reason")
	if !s.started || delta.Sent() && delta.Kind() != jsontext.Object ||
		stop.Sent() && stop.Kind() != jsontext.String || !s.counts.take(v.Get("usage")) {
		return s.fail(dst, BadUpstream())
	}
	if stop.Sent() {
		s.finish = finishReason(stop.Bytes())
	}
	return dst
}

func (s *Stream) blockStart(dst []byte, v jsontext.Value) []byte {
	index, ok := blockIndex(v)
	content := v.Get("content_block")
	kind, valid := readAnswerBlock(content)
	if !s.started || !ok || !valid || s.block(index) != nil || len(s.blocks) == openBlocksMax {
		return s.fail(dst, BadUpstream())
	}
	s.blocks = append(s.blocks, openBlock{index: index, kind: kind})
	b := &s.blocks[len(s.blocks)-1]
	switch kind {
	case answerText:
		text := content.Get("text")
		return s.delta(dst, b, text.Inner(), jsontext.DecodedLen(text.Inner()), text.Lone())
	case answerCall:
		return s.callStart(dst, b, content)
	}
	return dst
}

// callStart sends a call's id and name, and keeps input that stands in the
// block's start until it is known whether deltas bring any (decision 32).
func (s *Stream) callStart(dst []byte, b *openBlock, content jsontext.Value) []byte {
	if input := content.Get("input"); input.Sent() && !input.Empty() {
		if s.held+len(input.Raw()) > eventBytesMax {
			return s.fail(dst, BadUpstream())
		}
		b.input = bytes.Clone(span(input))
		s.held += len(b.input)
	}
	b.call = s.calls
	s.calls++
	dst = append(dst, s.front...)
	dst = append(dst, `{"index":0,"delta":{"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(b.call), 10)
	dst = append(dst, ',')
	dst = appendCallHead(dst, content)
	return append(dst, s.callBack...)
}

func (s *Stream) blockStop(dst []byte, v jsontext.Value) []byte {
	index, ok := blockIndex(v)
	if !s.started || !ok {
		return s.fail(dst, BadUpstream())
	}
	for i := range s.blocks {
		if b := &s.blocks[i]; b.index == index {
			dst = s.closeBlock(dst, b)
			s.held -= len(b.input)
			last := len(s.blocks) - 1
			copy(s.blocks[i:], s.blocks[i+1:])
			s.blocks[last] = openBlock{} // its input must not be kept
			s.blocks = s.blocks[:last]
			break
		}
	}
	return dst
}

// closeBlock sends what a call without arguments still owes: the input of its
// start, or {} (decision 32).
func (s *Stream) closeBlock(dst []byte, b *openBlock) []byte {
	if b.kind != answerCall || b.spoke {
		return dst
	}
	b.spoke = true
	dst = s.appendArgumentsFront(dst, b)
	if b.input == nil {
		dst = append(dst, emptyObject...)
	} else {
		s.generated += int64(len(b.input))
		dst = jsontext.AppendEscaped(grow(dst, 2*len(b.input)), b.input)
	}
	return append(dst, s.callBack...)
}

// block finds an open block, nil where there is none.
func (s *Stream) block(index int64) *openBlock {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		if s.blocks[i].index == index {
			return &s.blocks[i]
		}
	}
	return nil
}

// blockIndex reads the index of an event's block.
func blockIndex(v jsontext.Value) (index int64, ok bool) {
	index = -1
	ok = takeCount(v.Get("index"), &index)
	return index, ok && index >= 0
}
