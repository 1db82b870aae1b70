package cases

import (
	"encoding/json"
	"fmt"
	"strings"
)

// plainMessage is what the upstream answers in cases that are about the request.
const plainMessage = `{"id":"msg_plain","type":"message","role":"assistant","model":"upstream-name",` +
	`"content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,` +
	`"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":7}}`

// plainStream is the same as a stream.
const plainStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_plain","type":"message","role":"assistant","model":"upstream-name","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}

event: message_stop
data: {"type":"message_stop"}

`

// plainCompletion and plainChunks are the translations of the two, with MODEL for
// the JSON string that the client sent.
const plainCompletion = `{"id":"chatcmpl-req_test01","object":"chat.completion","created":1793318400,"model":MODEL,` +
	`"choices":[{"index":0,"message":{"role":"assistant","content":"Hi.","refusal":null},"logprobs":null,"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,` +
	`"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`

const plainChunks = `data: {"id":"chatcmpl-req_test01","object":"chat.completion.chunk","created":1793318400,"model":MODEL,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

data: {"id":"chatcmpl-req_test01","object":"chat.completion.chunk","created":1793318400,"model":MODEL,"choices":[{"index":0,"delta":{"content":"Hi."},"logprobs":null,"finish_reason":null}]}

data: {"id":"chatcmpl-req_test01","object":"chat.completion.chunk","created":1793318400,"model":MODEL,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}

data: [DONE]

`

// fillPlain scripts the plain answer and, where the case leaves the client's answer
// open, wants its translation.
func (c *Case) fillPlain(call *Call) error {
	var up struct {
		Stream bool `json:"stream"`
	}
	if err := json.Unmarshal(call.Want.Body, &up); err != nil {
		return fmt.Errorf("the plain answer needs an upstream.request.json: %w", err)
	}
	call.Answer.Body = []byte(plainMessage)
	contentType := "application/json"
	kind, answer := JSON, plainCompletion
	if up.Stream {
		call.Answer.Body = []byte(plainStream)
		contentType = "text/event-stream; charset=utf-8"
		kind, answer = SSE, plainChunks
	}
	if _, given := call.Answer.Header.Get("content-type"); !given {
		call.Answer.Header = call.Answer.Header.Set("content-type", contentType)
	}
	if c.Client.Kind != AnyBody {
		return nil
	}
	var asked struct {
		Model json.RawMessage `json:"model"`
	}
	if err := json.Unmarshal(c.Request.Body, &asked); err != nil {
		return fmt.Errorf("no client section, and the request's model cannot be read: %w", err)
	}
	c.Client.Kind = kind
	c.Client.Body = []byte(strings.ReplaceAll(answer, "MODEL", string(asked.Model)))
	return nil
}
