package translate

import "ezat.io/chat-completions/translate/internal/jsontext"

// Answer translates the whole body of an upstream's 200 into a chat.completion
// and appends it (contract, "Request and response"; decision 30). A body that is
// not a message is a 500 (decision 40), and nothing is appended then.
func (r *Reply) Answer(dst, body []byte, a Answer) ([]byte, Record, *Error) {
	var doc jsontext.Doc
	var m message
	if doc.Scan(body, jsontext.Limits{Depth: nestingLevelsMax, Values: answerValuesMax}) != nil || !m.read(doc.Root()) {
		err := BadUpstream()
		return dst, Record{Model: r.Model, Stream: r.Stream, Status: err.Status, Outcome: OutcomeUpstreamError}, err
	}
	usage := m.counts.usage()
	if len(body) > largeAnswerBytes {
		dst = grow(dst, m.size())
	}
	dst = r.appendHead(dst, "chat.completion", a)
	dst = append(dst, `{"index":0,"message":{"role":"assistant","content":`...)
	dst = m.appendContent(dst)
	dst = append(dst, `,"refusal":null`...)
	dst = m.appendCalls(dst)
	dst = append(dst, `},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, m.finish...)
	dst = append(dst, `"}],"usage":`...)
	dst = usage.append(dst)
	dst = append(dst, '}')
	return dst, Record{
		Model:        r.Model,
		Stream:       r.Stream,
		Status:       200,
		Outcome:      OutcomeOK,
		FinishReason: m.finish,
		Usage:        usage,
	}, nil
}

// message is a whole answer of the upstream, checked.
type message struct {
	content jsontext.Value // an array of blocks, each checked by answerBlock
	texts   int            // text blocks among them
	calls   int            // tool_use blocks among them
	finish  string
	counts  tokenCounts
}

// read checks that v is a message, with every part that the answer needs.
func (m *message) read(v jsontext.Value) bool {
	if !v.Get("type").Is("message") || !m.counts.take(v.Get("usage")) {
		return false
	}
	stop := v.Get("stop_reason")
	switch {
	case !stop.Sent():
		m.finish = finishReason(nil)
	case stop.Kind() == jsontext.String:
		m.finish = finishReason(stop.Bytes())
	default:
		return false
	}
	m.content = v.Get("content")
	if m.content.Kind() != jsontext.Array {
		return false
	}
	for it := m.content.Items(); it.Next(); {
		kind, ok := readAnswerBlock(it.Value())
		if !ok {
			return false
		}
		switch kind {
		case answerText:
			m.texts++
		case answerCall:
			m.calls++
		}
	}
	return true
}

// size is as many bytes as the answer can have: a buffer that grew with it would
// leave several times as many behind. An input's bytes are escaped once more.
func (m *message) size() (bytes int) {
	bytes = largeAnswerBytes // for what is there but once
	for it := m.content.Items(); it.Next(); {
		v := it.Value()
		switch kind, _ := readAnswerBlock(v); kind {
		case answerText:
			bytes += len(v.Get("text").Inner())
		case answerCall:
			bytes += len(callHead) + len(v.Get("id").Inner()) + len(v.Get("name").Inner())
			if input := v.Get("input"); input.Sent() {
				bytes += 2 * len(input.Raw())
			}
		}
	}
	return bytes
}

// callHead is what a call has around its id, its name and its arguments.
const callHead = `,{"id":"","type":"function","function":{"name":"","arguments":"{}"}}`

// answerKind is what a content block of the upstream is to the client.
type answerKind uint8

const (
	answerOther answerKind = iota // thinking, server tools, unknown: not shown (decision 30)
	answerText
	answerCall
)

// readAnswerBlock checks a content block, in a message or where a stream begins
// it.
func readAnswerBlock(v jsontext.Value) (kind answerKind, ok bool) {
	name := v.Get("type")
	if name.Kind() != jsontext.String {
		return answerOther, false
	}
	switch string(name.Bytes()) {
	case "text":
		return answerText, v.Get("text").Kind() == jsontext.String
	case "tool_use":
		input := v.Get("input")
		return answerCall, v.Get("id").Kind() == jsontext.String &&
			v.Get("name").Kind() == jsontext.String &&
			(!input.Sent() || input.Kind() == jsontext.Object)
	}
	return answerOther, true
}

// appendContent joins the text blocks; null stands for none at all, so that an
// empty text block is still told from no text (decision 30).
func (m *message) appendContent(dst []byte) []byte {
	if m.texts == 0 {
		return append(dst, `null`...)
	}
	dst = append(dst, '"')
	for it := m.content.Items(); it.Next(); {
		if kind, _ := readAnswerBlock(it.Value()); kind == answerText {
			text := it.Value().Get("text")
			dst = appendText(dst, text.Inner(), text.Lone())
		}
	}
	return append(dst, '"')
}

// appendCalls appends the key tool_calls where there are calls.
func (m *message) appendCalls(dst []byte) []byte {
	if m.calls == 0 {
		return dst
	}
	dst = append(dst, `,"tool_calls":`...)
	comma := byte('[')
	for it := m.content.Items(); it.Next(); {
		v := it.Value()
		if kind, _ := readAnswerBlock(v); kind != answerCall {
			continue
		}
		dst = append(dst, comma, '{')
		comma = ','
		dst = appendCallHead(dst, v)
		dst = appendArguments(dst, v.Get("input"))
		dst = append(dst, `"}}`...)
	}
	return append(dst, ']')
}

// appendCallHead appends a call's members up to the opening quote of its
// arguments.
func appendCallHead(dst []byte, v jsontext.Value) []byte {
	id, name := v.Get("id"), v.Get("name")
	dst = append(dst, `"id":"`...)
	dst = appendText(dst, id.Inner(), id.Lone())
	dst = append(dst, `","type":"function","function":{"name":"`...)
	dst = appendText(dst, name.Inner(), name.Lone())
	return append(dst, `","arguments":"`...)
}

// appendArguments appends a call's input, an object or nothing, to a JSON string
// that is being written: as spelled (decision 7), `{}` where there is none
// (decision 32).
func appendArguments(dst []byte, input jsontext.Value) []byte {
	if !input.Sent() {
		return append(dst, `{}`...)
	}
	return jsontext.AppendEscaped(dst, span(input))
}
