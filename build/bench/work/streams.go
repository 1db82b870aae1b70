package work

import (
	"bytes"
	"strconv"
)

// Kind of the content that a stream brings.
type Kind int

const (
	// TextKind is a block of text, ArgumentsKind a tool call.
	TextKind Kind = iota
	ArgumentsKind
)

// The upstream's events around the deltas, as it spells them.
const (
	streamStart = "event: message_start\n" +
		`data: {"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[],"stop_reason":null,"stop_sequence":null,` +
		`"usage":{"input_tokens":25,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}` + "\n\n"
	textStart = "event: content_block_start\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n"
	callStart = "event: content_block_start\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_01","name":"read_file","input":{}}}` + "\n\n"
	streamEnd = "event: content_block_stop\n" +
		`data: {"type":"content_block_stop","index":0}` + "\n\n" +
		"event: message_delta\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":412}}` + "\n\n" +
		"event: message_stop\n" +
		`data: {"type":"message_stop"}` + "\n\n"
)

// Start is the events before the first delta.
func Start(kind Kind) []byte {
	if kind == ArgumentsKind {
		return []byte(streamStart + callStart)
	}
	return []byte(streamStart + textStart)
}

// DeltaJSON is the data of delta number i.
func DeltaJSON(kind Kind, i int) []byte {
	if kind == ArgumentsKind {
		return []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"line_` + strconv.Itoa(i) + `\": \"on"}}`)
	}
	return []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" a word or two ` + strconv.Itoa(i) + `,"}}`)
}

// Delta is delta number i as an event.
func Delta(kind Kind, i int) []byte {
	return append(append([]byte("event: content_block_delta\ndata: "), DeltaJSON(kind, i)...), "\n\n"...)
}

// Deltas is n deltas in a row.
func Deltas(kind Kind, n int) []byte {
	var b bytes.Buffer
	for i := range n {
		b.Write(Delta(kind, i))
	}
	return b.Bytes()
}

// End is the events behind the last delta.
func End() []byte { return []byte(streamEnd) }

// Answer is a whole answer of the upstream.
func Answer() []byte {
	return []byte(`{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"A prompt cache keeps the front of a prompt, so that the next request with the same front costs less."}],` +
		`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":24}}`)
}
