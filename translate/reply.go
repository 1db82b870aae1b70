package translate

import (
	"strconv"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// Reply is the little of the request that the answer needs once the body is
// gone. It owns its memory.
type Reply struct {
	// Model is the name that the client sent, decoded.
	Model string
	// ModelJSON is the same as a JSON string, quotes included, as the client
	// spelled it; where it is empty Model is spelled anew.
	ModelJSON string
	// Stream and IncludeUsage are the client's `stream` and
	// `stream_options.include_usage`.
	Stream, IncludeUsage bool
	// GatewayKey tells that the key sent upstream is the gateway's own: where it
	// is refused the client sees a 500 without a word of keys (decision 39).
	GatewayKey bool
}

// Answer is what the answer direction may not find out itself.
type Answer struct {
	// RequestID is the value of the request-id header; the answer's id is
	// chatcmpl-<RequestID>.
	RequestID string
	// Created is when the answer began, in Unix seconds (decision 31).
	Created int64
}

// appendHead opens an answer or a chunk: the fields that never change
// (contract, "Request and response"), up to the key of the choices.
func (r *Reply) appendHead(dst []byte, object string, a Answer) []byte {
	dst = append(dst, `{"id":"chatcmpl-`...)
	dst = jsontext.AppendEscaped(dst, a.RequestID)
	dst = append(dst, `","object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, a.Created, 10)
	dst = append(dst, `,"model":`...)
	if r.ModelJSON != "" {
		dst = append(dst, r.ModelJSON...)
	} else {
		dst = jsontext.AppendQuoted(dst, r.Model)
	}
	return append(dst, `,"choices":[`...)
}

// appendText appends a string's spelling (without quotes) to a string that is
// being written, halves of surrogate pairs mended (decision 8). Each string is
// mended by itself: two halves that meet where strings are joined are no pair.
func appendText(dst, inner []byte, lone bool) []byte {
	if lone {
		return jsontext.AppendMended(dst, inner)
	}
	return append(dst, inner...)
}

// grow makes room for n more bytes at once: what grows step by step leaves a trail.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}

// clip is the front of a text, at most most bytes of it and only whole
// characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most] + "…"
}
