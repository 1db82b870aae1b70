package standin

import (
	"strconv"
	"unicode/utf8"
)

// appendMessage appends a whole answer as JSON.
func (m *message) appendMessage(dst []byte) []byte {
	dst = m.appendHead(dst)
	dst = append(dst, `,"content":[`...)
	for i, block := range m.content {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = block.append(dst, true)
	}
	dst = append(dst, `],"stop_reason":`...)
	dst = appendString(dst, m.stopReason)
	dst = m.appendStopDetails(dst)
	dst = append(dst, `,"usage":`...)
	dst = m.usage.appendStart(dst, m.usage.output)
	dst = append(dst[:len(dst)-1], `,"output_tokens_details":{"thinking_tokens":`...)
	dst = strconv.AppendInt(dst, int64(m.usage.thinking), 10)
	return append(dst, `}}}`...)
}

// appendHead appends what an answer begins with, without closing the object.
func (m *message) appendHead(dst []byte) []byte {
	dst = append(dst, `{"model":`...)
	dst = appendString(dst, m.model)
	dst = append(dst, `,"id":`...)
	dst = appendString(dst, m.id)
	return append(dst, `,"type":"message","role":"assistant"`...)
}

func (m *message) appendStopDetails(dst []byte) []byte {
	dst = append(dst, `,"stop_sequence":`...)
	if m.stopReason == "stop_sequence" {
		dst = appendString(dst, m.stopSequence)
	} else {
		dst = append(dst, "null"...)
	}
	if m.refused {
		return append(dst, `,"stop_details":{"type":"refusal","category":"general_harms","explanation":"This request was refused by the stand-in."}`...)
	}
	return append(dst, `,"stop_details":null`...)
}

// append appends a block; filled is false for the empty block that begins
// one in a stream.
func (c content) append(dst []byte, filled bool) []byte {
	dst = append(dst, `{"type":`...)
	dst = appendString(dst, c.kind)
	text, signature, input := c.text, c.signature, c.input
	if !filled {
		text, signature, input = "", "", "{}"
	}
	switch c.kind {
	case "text":
		dst = append(dst, `,"text":`...)
		dst = appendString(dst, text)
	case "thinking":
		dst = append(dst, `,"thinking":`...)
		dst = appendString(dst, text)
		dst = append(dst, `,"signature":`...)
		dst = appendString(dst, signature)
	case "tool_use":
		if c.cut {
			input = "{}" // as much as can be parsed of incomplete input
		}
		dst = append(dst, `,"id":`...)
		dst = appendString(dst, c.id)
		dst = append(dst, `,"name":`...)
		dst = appendString(dst, c.name)
		dst = append(dst, `,"input":`...)
		dst = append(dst, input...)
		dst = append(dst, `,"caller":{"type":"direct"}`...)
	}
	return append(dst, '}')
}

// appendStart appends usage with the split of cache writes, which stands
// only in whole answers and in message_start.
func (u usage) appendStart(dst []byte, output int) []byte {
	dst = u.appendInput(append(dst, '{'))
	dst = append(dst, `,"cache_creation":{"ephemeral_5m_input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(u.write5m), 10)
	dst = append(dst, `,"ephemeral_1h_input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(u.write1h), 10)
	dst = append(dst, `},"output_tokens":`...)
	dst = strconv.AppendInt(dst, int64(output), 10)
	return append(dst, `,"service_tier":"standard","inference_geo":"global"}`...)
}

func (u usage) appendInput(dst []byte) []byte {
	dst = append(dst, `"input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(u.input), 10)
	dst = append(dst, `,"cache_creation_input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(u.written()), 10)
	dst = append(dst, `,"cache_read_input_tokens":`...)
	return strconv.AppendInt(dst, int64(u.read), 10)
}

// outputAtStart is the small count that message_start carries; it is no part
// of the later ones.
const outputAtStart = 2

// stream writes an answer as server-sent events, one element per event.
type stream struct {
	events [][]byte
	pinged bool
}

// events returns the answer as a stream.
func (m *message) events() [][]byte {
	s := &stream{}
	start := append([]byte(`{"type":"message_start","message":`), m.appendHead(nil)...)
	start = append(start, `,"content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":`...)
	start = m.usage.appendStart(start, min(outputAtStart, m.usage.output))
	s.add("message_start", append(start, `}}`...))
	for i, block := range m.content {
		s.block(i, block)
	}
	delta := append([]byte(`{"type":"message_delta","delta":{"stop_reason":`), appendString(nil, m.stopReason)...)
	delta = m.appendStopDetails(delta)
	delta = append(delta, `},"usage":{`...)
	delta = m.usage.appendInput(delta)
	delta = append(delta, `,"output_tokens":`...)
	delta = strconv.AppendInt(delta, int64(m.usage.output), 10)
	delta = append(delta, `,"output_tokens_details":{"thinking_tokens":`...)
	delta = strconv.AppendInt(delta, int64(m.usage.thinking), 10)
	s.add("message_delta", append(delta, `}}}`...))
	s.add("message_stop", []byte(`{"type":"message_stop"}`))
	return s.events
}

// add appends an event. Like the live API it pads some of them with spaces,
// before the last brace and after it.
func (s *stream) add(name string, data []byte) {
	n := len(s.events)
	event := append([]byte("event: "+name+"\ndata: "), data[:len(data)-1]...)
	if n%3 == 1 {
		event = append(event, "             "[:n*5%13]...)
	}
	event = append(event, '}')
	if n%4 == 1 {
		event = append(event, "  "[:1+n%2]...)
	}
	s.events = append(s.events, append(event, "\n\n"...))
}

func (s *stream) block(i int, block content) {
	index := strconv.Itoa(i)
	start := []byte(`{"type":"content_block_start","index":` + index + `,"content_block":`)
	s.add("content_block_start", append(block.append(start, false), '}'))
	if !s.pinged {
		s.pinged = true
		s.events = append(s.events, []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n"))
	}
	delta := func(kind, key, value string) {
		data := []byte(`{"type":"content_block_delta","index":` + index + `,"delta":{"type":"` + kind + `","` + key + `":`)
		s.add("content_block_delta", append(appendString(data, value), `}}`...))
	}
	switch block.kind {
	case "text":
		for _, piece := range pieces(block.text) {
			delta("text_delta", "text", piece)
		}
	case "thinking":
		for _, piece := range pieces(block.text) {
			delta("thinking_delta", "thinking", piece)
		}
		if !block.cut {
			delta("signature_delta", "signature", block.signature)
		}
	case "tool_use":
		for _, piece := range inputPieces(block) {
			delta("input_json_delta", "partial_json", piece)
		}
	}
	s.add("content_block_stop", []byte(`{"type":"content_block_stop","index":`+index+`}`))
}

// inputPieces splits a call's input. The first piece is empty; a call
// without input varies as on the live API: an empty piece, none, or "{}".
func inputPieces(block content) []string {
	if block.input != "{}" {
		return append([]string{""}, pieces(block.input)...)
	}
	switch len(block.name) % 3 {
	case 0:
		return []string{""}
	case 1:
		return nil
	}
	return []string{"", "{}"}
}

// piecesMax bounds the deltas of one block; long texts get larger ones.
const piecesMax = 2000

// pieces cuts text between characters into lengths that vary.
func pieces(text string) []string {
	var cut []string
	least := len(text)/piecesMax + 1
	for i := 0; text != ""; i++ {
		end := min(max([]int{1, 12, 5, 28, 3, 17}[i%6], least), len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		cut = append(cut, text[:end])
		text = text[end:]
	}
	return cut
}
