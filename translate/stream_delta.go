package translate

import (
	"strconv"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// Nearly all of a stream are deltas, spelled one way. The shapes below are read
// by comparing bytes; what differs in any byte goes the general way, with the
// same result.
const (
	deltaFields = "event: content_block_delta\ndata: "
	deltaField  = "data: "
	deltaHead   = `{"type":"content_block_delta","index":`
	deltaKind   = `,"delta":{"type":"`
	deltaText   = `text_delta","text":"`
	deltaInput  = `input_json_delta","partial_json":"`

	// deltaDigitsMax bounds the index in a shape that is known.
	deltaDigitsMax = 6
)

var (
	namedDelta = jsontext.NewShape(deltaFields + deltaHead)
	plainDelta = jsontext.NewShape(deltaField + deltaHead)
	bareDelta  = jsontext.NewShape(deltaHead)
	textDelta  = jsontext.NewShape(deltaKind + deltaText)
	inputDelta = jsontext.NewShape(deltaKind + deltaInput)
)

// delta is a delta in one of the known spellings.
type delta struct {
	index int64
	kind  answerKind
	inner []byte // the string that it brings, as spelled
	size  int    // the length of its text
	lone  bool   // it has half of a surrogate pair
	end   int    // the offset behind the event's JSON and its padding
}

// read reads the delta whose index stands at in[i], behind deltaHead. false:
// another shape. in must end in a control byte, which is no part of any shape
// here: the walk ends there at the latest.
func (d *delta) read(in []byte, i int) bool {
	digits := i
	index := int64(0)
	for c := in[i] - '0'; c <= 9; c = in[i] - '0' {
		index = index*10 + int64(c)
		if i++; i-digits > deltaDigitsMax {
			return false
		}
	}
	if i == digits || in[digits] == '0' && i > digits+1 {
		return false
	}
	d.index = index
	switch {
	case textDelta.At(in, i):
		d.kind = answerText
		i += textDelta.Size()
	case inputDelta.At(in, i):
		d.kind = answerCall
		i += inputDelta.Size()
	default:
		return false
	}
	lit := jsontext.ReadLiteral(in, i)
	if lit.End == 0 {
		return false
	}
	d.inner, d.size, d.lone = in[i:lit.End-1], lit.Size, lit.Lone
	d.end = deltaEnd(in, lit.End)
	return d.end > 0
}

// deltaEnd is the offset behind the two braces that close a delta, and behind
// the spaces that the upstream pads them with; 0 where they are not there.
func deltaEnd(in []byte, i int) int {
	for range 2 {
		if in[i] != '}' {
			return 0
		}
		i++
		for in[i] == ' ' {
			i++
		}
	}
	return i
}

// quick handles the events in known spellings at the front of in, which is whole
// lines. It returns how many bytes they were.
func (s *Stream) quick(dst, in []byte) ([]byte, int) {
	var d delta
	n := 0
	for n < len(in) {
		i := n
		switch {
		case namedDelta.At(in, i):
			i += namedDelta.Size()
		case plainDelta.At(in, i):
			i += plainDelta.Size()
		default:
			return dst, n
		}
		if !d.read(in, i) || d.end-n > quickEventBytesMax || d.end+1 >= len(in) || in[d.end] != '\n' || in[d.end+1] != '\n' {
			break
		}
		b := s.taker(&d)
		if b == nil {
			break
		}
		dst = s.delta(dst, b, d.inner, d.size, d.lone)
		n = d.end + 2
	}
	return dst, n
}

// taker is the open block that a delta is for, nil where there is none of its
// kind.
func (s *Stream) taker(d *delta) *openBlock {
	if b := s.block(d.index); b != nil && b.kind == d.kind {
		return b
	}
	return nil
}

// blockDelta handles a delta of any shape.
func (s *Stream) blockDelta(dst []byte, v jsontext.Value) []byte {
	content := v.Get("delta")
	name := content.Get("type")
	if !s.started || name.Kind() != jsontext.String {
		return s.fail(dst, BadUpstream())
	}
	kind, key := answerOther, ""
	switch string(name.Bytes()) {
	case "text_delta":
		kind, key = answerText, "text"
	case "input_json_delta":
		kind, key = answerCall, "partial_json"
	default:
		return dst // thinking, signatures, citations, unknown
	}
	index, ok := blockIndex(v)
	b := s.block(index)
	text := content.Get(key)
	if !ok || b == nil || text.Kind() != jsontext.String {
		return s.fail(dst, BadUpstream())
	}
	if b.kind != kind {
		return dst // what a block of another kind has in it is not shown
	}
	return s.delta(dst, b, text.Inner(), jsontext.DecodedLen(text.Inner()), text.Lone())
}

// delta sends a piece of text or of arguments, as spelled (decision 7). Nothing
// is sent for an empty piece.
func (s *Stream) delta(dst []byte, b *openBlock, inner []byte, size int, lone bool) []byte {
	if len(inner) == 0 {
		return dst
	}
	s.generated += int64(size)
	if len(inner) > quickEventBytesMax {
		dst = grow(dst, len(inner)+len(s.textFront)+len(s.textBack))
	}
	if b.kind == answerText {
		dst = append(dst, s.textFront...)
		dst = appendText(dst, inner, lone)
		return append(dst, s.textBack...)
	}
	b.spoke = true
	dst = s.appendArgumentsFront(dst, b)
	dst = appendText(dst, inner, lone)
	return append(dst, s.callBack...)
}

// appendArgumentsFront opens a chunk with arguments of a call. The bytes are kept
// for the next chunk of the same call.
func (s *Stream) appendArgumentsFront(dst []byte, b *openBlock) []byte {
	if s.callAt != b.call {
		s.callAt = b.call
		s.callFront = append(s.callFront[:0], s.front...)
		s.callFront = append(s.callFront, `{"index":0,"delta":{"tool_calls":[{"index":`...)
		s.callFront = strconv.AppendInt(s.callFront, int64(b.call), 10)
		s.callFront = append(s.callFront, `,"function":{"arguments":"`...)
	}
	return append(dst, s.callFront...)
}
