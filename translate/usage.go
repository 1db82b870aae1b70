package translate

import (
	"strconv"
	"unicode/utf8"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

// The outcomes of a request (operator's contract, "What is recorded").
const (
	OutcomeOK            = "ok"
	OutcomeRefused       = "refused"        // by us
	OutcomeUpstreamError = "upstream_error" // before the answer began
	OutcomeFailed        = "failed"         // in the middle of a stream
	OutcomeClientLeft    = "client_left"
)

// Usage counts tokens as OpenAI does. Prompt has Cached and CacheWrite in it,
// Completion has Reasoning in it.
type Usage struct{ Prompt, Cached, CacheWrite, Completion, Reasoning int64 }

// Record is what is kept of a request (operator's contract, "What is
// recorded"). Requests that failed or were refused count no tokens.
type Record struct {
	Model        string
	Stream       bool
	Status       int    // the client's HTTP status
	Outcome      string // one of the Outcome constants
	FinishReason string // "" where none was sent
	Usage        Usage
	Estimated    bool // Usage.Completion is an estimate
}

// Append appends the record as one line of JSON, without a line feed.
func (r *Record) Append(dst []byte) []byte {
	dst = append(dst, `{"model":`...)
	dst = appendLogged(dst, clip(r.Model, modelNameBytesMax))
	dst = append(dst, `,"stream":`...)
	dst = strconv.AppendBool(dst, r.Stream)
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	dst = append(dst, `,"outcome":`...)
	dst = jsontext.AppendQuoted(dst, r.Outcome)
	dst = append(dst, `,"finish_reason":`...)
	dst = appendNullable(dst, r.FinishReason)
	dst = append(dst, `,"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, r.Usage.Prompt, 10)
	dst = append(dst, `,"cached_tokens":`...)
	dst = strconv.AppendInt(dst, r.Usage.Cached, 10)
	dst = append(dst, `,"cache_write_tokens":`...)
	dst = strconv.AppendInt(dst, r.Usage.CacheWrite, 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, r.Usage.Completion, 10)
	dst = append(dst, `,"reasoning_tokens":`...)
	dst = strconv.AppendInt(dst, r.Usage.Reasoning, 10)
	dst = append(dst, `,"estimated":`...)
	dst = strconv.AppendBool(dst, r.Estimated)
	return append(dst, '}')
}

// appendLogged appends text as a JSON string that stays one line whoever reads it:
// some take U+0085, U+2028 and U+2029 for the end of one, and terminals obey the
// other control characters beyond ASCII's first 32.
func appendLogged(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	at := len(dst)
	dst = jsontext.AppendQuoted(dst, text)
	quoted := string(dst[at:])
	dst = dst[:at]
	for _, c := range quoted {
		if c >= 0x7F && c <= 0x9F || c == 0x2028 || c == 0x2029 {
			dst = append(dst, '\\', 'u', digits[c>>12], digits[c>>8&15], digits[c>>4&15], digits[c&15])
		} else {
			dst = utf8.AppendRune(dst, c)
		}
	}
	return dst
}

// append appends the usage object of an answer (contract, "Request and
// response").
func (u *Usage) append(dst []byte) []byte {
	dst = append(dst, `{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, u.Prompt, 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, u.Completion, 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, u.Prompt+u.Completion, 10)
	dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, u.Cached, 10)
	dst = append(dst, `,"cache_write_tokens":`...)
	dst = strconv.AppendInt(dst, u.CacheWrite, 10)
	dst = append(dst, `},"completion_tokens_details":{"reasoning_tokens":`...)
	dst = strconv.AppendInt(dst, u.Reasoning, 10)
	return append(dst, `}}`...)
}

// tokenCounts are the upstream's counters.
type tokenCounts struct{ input, written, read, output, thinking int64 }

// take reads a usage object of the upstream: each counter that is there
// replaces the one before, and they are never added up (decision 34). false:
// the object is none, or a counter in it is no count.
func (c *tokenCounts) take(v jsontext.Value) bool {
	if !v.Sent() {
		return true
	}
	details := v.Get("output_tokens_details")
	return v.Kind() == jsontext.Object &&
		takeCount(v.Get("input_tokens"), &c.input) &&
		takeCount(v.Get("cache_creation_input_tokens"), &c.written) &&
		takeCount(v.Get("cache_read_input_tokens"), &c.read) &&
		takeCount(v.Get("output_tokens"), &c.output) &&
		(!details.Sent() || details.Kind() == jsontext.Object) &&
		takeCount(details.Get("thinking_tokens"), &c.thinking)
}

// takeCount reads one counter: a whole number, bounded by tokensMax.
func takeCount(v jsontext.Value, count *int64) bool {
	if !v.Sent() {
		return true
	}
	if v.Kind() != jsontext.Number {
		return false
	}
	var n int64
	for _, c := range v.Raw() {
		if c-'0' > 9 {
			return false // negative, a fraction or an exponent
		}
		n = min(n*10+int64(c-'0'), tokensMax)
	}
	*count = n
	return true
}

// usage counts in OpenAI's way: the upstream's input is only what is neither
// read from the cache nor written to it.
func (c *tokenCounts) usage() Usage {
	return Usage{
		Prompt:     c.input + c.written + c.read,
		Cached:     c.read,
		CacheWrite: c.written,
		Completion: c.output,
		Reasoning:  c.thinking,
	}
}

// finishReason translates a stop_reason (contract, "Finish reasons"; decision
// 35).
func finishReason(stop []byte) string {
	switch string(stop) {
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return "stop"
}
