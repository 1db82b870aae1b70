package standin

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func goodHeader() http.Header {
	return http.Header{
		"Content-Type": {"application/json"}, "X-Api-Key": {"key"}, "Anthropic-Version": {version2023},
	}
}

// with writes a request: the model, a limit and one user message, or
// whatever other members say.
func with(members string) string {
	body := "{" + members
	for _, member := range []string{
		`"model":"claude-sonnet-5-5"`, `"max_tokens":64`, `"messages":[{"role":"user","content":"Hi"}]`,
	} {
		if key, _, _ := strings.Cut(member, ":"); !strings.Contains(members, key+":") {
			body += "," + member
		}
	}
	return strings.Replace(body, "{,", "{", 1) + "}"
}

// on is with for another model.
func on(model, members string) string {
	return with(`"model":"` + model + `"` + comma(members))
}

func comma(members string) string {
	if members == "" {
		return ""
	}
	return "," + members
}

func user(content string) string { return `{"role":"user","content":` + content + `}` }

func assistant(content string) string { return `{"role":"assistant","content":` + content + `}` }

func talk(messages ...string) string { return with(`"messages":[` + strings.Join(messages, ",") + `]`) }

func b64(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }

func imageOf(mediaType, data string) string {
	return `{"type":"image","source":{"type":"base64","media_type":"` + mediaType + `","data":"` + data + `"}}`
}

func pdfOf(data string) string {
	return `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}}`
}

func tool(members string) string {
	if !strings.Contains(members, `"input_schema":`) {
		members += `,"input_schema":{"type":"object"}`
	}
	return `{` + members + `}`
}

func strict(schema string) string {
	return with(`"tools":[{"name":"f","strict":true,"input_schema":` + schema + `}]`)
}

func format(schema string) string {
	return with(`"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}`)
}

const (
	call1   = `{"type":"tool_use","id":"t1","name":"f","input":{}}`
	call2   = `{"type":"tool_use","id":"t2","name":"f","input":{}}`
	result1 = `{"type":"tool_result","tool_use_id":"t1","content":"1"}`
	result2 = `{"type":"tool_result","tool_use_id":"t2"}`
	mark5m  = `"cache_control":{"type":"ephemeral"}`
	mark1h  = `"cache_control":{"type":"ephemeral","ttl":"1h"}`
	png1x1  = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

func marked(mark string) string { return `{"type":"text","text":"a",` + mark + `}` }

// pngOf is the head of a PNG image of a size.
func pngOf(width, height uint32) string {
	chunk := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
	chunk = binary.BigEndian.AppendUint32(chunk, height)
	chunk = append(chunk, 8, 2, 0, 0, 0)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk))
	return b64("\x89PNG\r\n\x1a\n\x00\x00\x00\r" + string(chunk))
}

// webpOf is the head of a WebP image: its first chunk's name, and the bytes
// of its size, which stand at an offset from there.
func webpOf(chunk string, offset int, size string) string {
	head := "RIFF\x00\x00\x00\x00WEBP" + chunk + strings.Repeat("\x00", offset-4) + size
	return b64(head + strings.Repeat("\x00", 16))
}

// rules has, for each rule of the API, a request that breaks it, what the
// refusal says, and a request right beside it that keeps it.
var rules = []struct {
	name    string
	refused string
	says    string
	passes  string
}{
	// The body and its fields.
	{"not JSON", `{`, "The request body is not valid JSON: expected a string as key: line 1 column 2 (char 1)", with("")},
	{"nothing", ``, "The request body is not valid JSON: input is a zero-length, empty document or ends too early: line 1 column 1 (char 0)", with("")},
	{"JSON and more", with("") + "x", "unexpected content after document", with("") + " \n"},
	{"not an object", `[]`, "request body: Input should be a valid dictionary", with("")},
	{"invalid UTF-8", with(`"system":"` + "\xff" + `"`), "not valid UTF-8", with(`"system":"é"`)},
	{"half a surrogate pair", with(`"system":"\ud83d"`), "no low surrogate in string", with(`"system":"\ud83d\ude00"`)},
	{"the other half", with(`"system":"\ude00"`), "no high surrogate in string", with(`"system":"\u00e9"`)},
	{"two high halves", with(`"system":"\ud83d\ud83d"`), "no low surrogate in string", with(`"system":"\uD83D\uDE00"`)},
	{"control character", with(`"system":"` + "\n" + `"`), "control characters must be escaped", with(`"system":"a\n"`)},
	{"bad escape", with(`"system":"\x"`), "invalid escaped character", with(`"system":"\/"`)},
	{"bad hex", with(`"system":"\u00g0"`), "invalid hex escape", with(`"system":"\u00A0a"`)},
	{"signed hex", with(`"system":"\u+0a0"`), "invalid hex escape", with(`"system":"\u00a0a"`)},
	{"open string", `{"a`, "unterminated string", with("")},
	{"open escape", `{"a\`, "unterminated string", with("")},
	{"trailing comma", `{"a":1,}`, "expected a string as key", with("")},
	{"no colon", `{"a" 1}`, "expected ':'", with("")},
	{"no comma", `[1 2]`, "expected ',' or ']'", with("")},
	{"bad number", `{"a":01}`, "expected ',' or '}'", with("")},
	{"bad fraction", `{"a":1.}`, "expected a digit", with("")},
	{"bad exponent", `{"a":1e+}`, "expected a digit", with("")},
	{"bare minus", `{"a":-}`, "expected a digit", with("")},
	{"bare word", `{"a":nul}`, "unexpected character", with("")},
	{"too deep", strings.Repeat("[", 1001), "recursion limit exceeded", with(`"tools":[` + tool(`"name":"f","input_schema":{"type":"object","x":`+strings.Repeat("[", 900)+strings.Repeat("]", 900)+`}`) + `]`)},
	{"unknown key", with(`"n":1`), "n: Extra inputs are not permitted", with(`"metadata":{}`)},
	{"key twice", with(`"stream":false,"stream":false`), "stream: Duplicate field", with(`"stream":false`)},
	{"key twice, spelled differently", with(`"stream":false,"str\u0065am":false`), "stream: Duplicate field", with(`"stream":false`)},
	{"no model", `{"max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`, "model: Field required", with("")},
	{"model type", with(`"model":1`), "model: Input should be a valid string", with("")},
	{"unknown model", with(`"model":"gpt-9"`), "model: gpt-9", with(`"model":"claude-haiku-4-5-20251001"`)},
	{"date alone", with(`"model":"claude-nothing-20251001"`), "model: claude-nothing-20251001", with("")},

	// Limits and strings that end the output.
	{"no max_tokens", `{"model":"claude-sonnet-5-5","messages":[{"role":"user","content":"Hi"}]}`, "max_tokens: Field required", with("")},
	{"max_tokens type", with(`"max_tokens":"64"`), "max_tokens: Input should be a valid integer", with(`"max_tokens":1`)},
	{"max_tokens fraction", with(`"max_tokens":64.0`), "max_tokens: Input should be a valid integer", with(`"max_tokens":64`)},
	{"max_tokens exponent", with(`"max_tokens":1e2`), "max_tokens: Input should be a valid integer", with(`"max_tokens":100`)},
	{"max_tokens null", with(`"max_tokens":null`), "max_tokens: Input should be a valid integer", with("")},
	{"max_tokens negative", with(`"max_tokens":-1`), "max_tokens: Input should be greater than or equal to 0", with(`"max_tokens":0`)},
	{"max_tokens above the model", with(`"max_tokens":128001`), "max_tokens: 128001 > 128000, which is the maximum allowed number of output tokens for claude-sonnet-5-5", with(`"max_tokens":128000`)},
	{"max_tokens above an older model", on("claude-haiku-4-5", `"max_tokens":64001`), "max_tokens: 64001 > 64000", on("claude-haiku-4-5", `"max_tokens":64000`)},
	{"max_tokens beyond 64 bits", with(`"max_tokens":99999999999999999999`), "which is the maximum allowed", with("")},
	{"zero and stream", with(`"max_tokens":0,"stream":true`), "max_tokens: must be greater than 0 when stream is true", with(`"max_tokens":0,"stream":false`)},
	{"zero and format", with(`"max_tokens":0,"output_config":{"format":{"type":"json_schema","schema":{"type":"string"}}}`), "max_tokens: must be greater than 0 when output_config.format", with(`"max_tokens":0,"output_config":{"format":null}`)},
	{"zero and forced", on("claude-sonnet-4-6", `"max_tokens":0,"tools":[`+tool(`"name":"f"`)+`],"tool_choice":{"type":"any"}`), "max_tokens: must be greater than 0 when tool_choice", on("claude-sonnet-4-6", `"max_tokens":0,"tools":[`+tool(`"name":"f"`)+`],"tool_choice":{"type":"auto"}`)},
	{"zero and budget", on("claude-sonnet-4-6", `"max_tokens":0,"thinking":{"type":"enabled","budget_tokens":1024}`), "max_tokens: must be greater than thinking.budget_tokens", on("claude-sonnet-4-6", `"max_tokens":0,"thinking":{"type":"adaptive"}`)},
	{"stream type", with(`"stream":"true"`), "stream: Input should be a valid boolean", with(`"stream":true`)},
	{"stop type", with(`"stop_sequences":"x"`), "stop_sequences: Input should be a valid array", with(`"stop_sequences":[]`)},
	{"stop element", with(`"stop_sequences":[1]`), "stop_sequences.0: Input should be a valid string", with(`"stop_sequences":["1"]`)},
	{"stop empty", with(`"stop_sequences":[""]`), "stop_sequences: each stop sequence must be non-empty", with(`"stop_sequences":["a"]`)},
	{"stop white", with(`"stop_sequences":["a","\n "]`), "stop_sequences: each stop sequence must contain non-whitespace", with(`"stop_sequences":["\na"]`)},

	// Sampling.
	{"temperature on a newer model", with(`"temperature":0`), "`temperature` is deprecated for this model.", with(`"temperature":1`)},
	{"temperature type", with(`"temperature":"1"`), "temperature: Input should be a valid number", with(`"temperature":1.0`)},
	{"temperature too high", on("claude-sonnet-4-6", `"temperature":1.5`), "temperature: range: 0..1", on("claude-sonnet-4-6", `"temperature":0.5`)},
	{"temperature too low", on("claude-sonnet-4-6", `"temperature":-0.1`), "temperature: range: 0..1", on("claude-sonnet-4-6", `"temperature":0`)},
	{"temperature while thinking", on("claude-sonnet-4-6", `"temperature":0,"thinking":{"type":"adaptive"}`), "`temperature` may only be set to its default when thinking is enabled.", on("claude-sonnet-4-6", `"temperature":0,"thinking":{"type":"disabled"}`)},
	{"top_p while thinking", on("claude-sonnet-4-6", `"top_p":0.9,"thinking":{"type":"adaptive"}`), "`top_p` must be greater than or equal to 0.95", on("claude-sonnet-4-6", `"top_p":0.95,"thinking":{"type":"adaptive"}`)},
	{"top_k on a newer model", with(`"top_k":1`), "`top_k` is deprecated for this model.", on("claude-opus-4-5", `"top_k":1`)},
	{"top_k type", on("claude-opus-4-5", `"top_k":1.5`), "top_k: Input should be a valid integer", on("claude-opus-4-5", `"top_k":2`)},
	{"both", on("claude-haiku-4-5", `"temperature":1,"top_p":0.5`), "`temperature` and `top_p` cannot both be specified", on("claude-haiku-4-5", `"top_p":0.5`)},

	// Thinking and effort.
	{"thinking without type", with(`"thinking":{}`), "thinking.type: Field required", with(`"thinking":{"type":"adaptive"}`)},
	{"thinking not an object", with(`"thinking":true`), "thinking: Input should be a valid dictionary", with(`"thinking":{"type":"adaptive","display":null}`)},
	{"thinking type", with(`"thinking":{"type":"on"}`), "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'", with(`"thinking":{"type":"between_tools"}`)},
	{"thinking extra", with(`"thinking":{"type":"adaptive","budget_tokens":1024}`), "thinking.budget_tokens: Extra inputs are not permitted", with(`"thinking":{"type":"adaptive","display":"summarized"}`)},
	{"thinking display", with(`"thinking":{"type":"adaptive","display":"full"}`), "thinking.display: Input should be 'summarized' or 'omitted'", with(`"thinking":{"type":"adaptive","display":"omitted"}`)},
	{"budget type", on("claude-haiku-4-5", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":"2000"}`), "thinking.budget_tokens: Input should be a valid integer", on("claude-haiku-4-5", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":2000}`)},
	{"budget too small", on("claude-haiku-4-5", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":1023}`), "thinking.budget_tokens: Input should be greater than or equal to 1024", on("claude-haiku-4-5", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":1024}`)},
	{"budget not below the limit", on("claude-haiku-4-5", `"max_tokens":1024,"thinking":{"type":"enabled","budget_tokens":1024}`), "`max_tokens` must be greater than `thinking.budget_tokens`.", on("claude-haiku-4-5", `"max_tokens":1025,"thinking":{"type":"enabled","budget_tokens":1024}`)},
	{"enabled on a newer model", on("claude-opus-4-7", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":2000}`), `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`, on("claude-opus-4-6", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":2000}`)},
	{"disabled where thinking is always on", on("claude-opus-5-5", `"thinking":{"type":"disabled"}`), `"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive"`, on("claude-opus-5", `"thinking":{"type":"disabled"}`)},
	{"disabled on Sonnet 5.5", with(`"thinking":{"type":"disabled"}`), `Use "thinking.type.between_tools"`, with(`"thinking":{"type":"between_tools"}`)},
	{"between_tools elsewhere", on("claude-haiku-5-5", `"thinking":{"type":"between_tools"}`), `"thinking.type.between_tools" is not supported`, on("claude-haiku-5-5", `"thinking":{"type":"disabled"}`)},
	{"adaptive on 4.5", on("claude-opus-4-5", `"thinking":{"type":"adaptive"}`), "adaptive thinking is not supported on this model", on("claude-opus-4-6", `"thinking":{"type":"adaptive"}`)},
	{"effort value", with(`"output_config":{"effort":"minimal"}`), "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'", with(`"output_config":{"effort":"max"}`)},
	{"effort type", with(`"output_config":{"effort":1}`), "output_config.effort: Input should be", with(`"output_config":{"effort":null}`)},
	{"effort on a model without", on("claude-haiku-4-5", `"output_config":{"effort":"low"}`), "This model does not support the effort parameter.", on("claude-opus-4-5", `"output_config":{"effort":"low"}`)},
	{"xhigh on 4.6", on("claude-opus-4-6", `"output_config":{"effort":"xhigh"}`), "output_config.effort: 'xhigh' is not supported", on("claude-opus-4-6", `"output_config":{"effort":"max"}`)},
	{"max on Opus 4.5", on("claude-opus-4-5", `"output_config":{"effort":"max"}`), "output_config.effort: 'max' is not supported", on("claude-opus-4-5", `"output_config":{"effort":"high"}`)},
	{"off with xhigh", with(`"thinking":{"type":"between_tools"},"output_config":{"effort":"xhigh"}`), `"thinking.type.between_tools" is not supported with "output_config.effort" above "high"`, with(`"thinking":{"type":"between_tools"},"output_config":{"effort":"high"}`)},
	{"off with max", on("claude-opus-5", `"thinking":{"type":"disabled"},"output_config":{"effort":"max"}`), `"thinking.type.disabled" is not supported with`, on("claude-sonnet-5", `"thinking":{"type":"disabled"},"output_config":{"effort":"max"}`)},
	{"output_config extra", with(`"output_config":{"format":{"type":"json_schema","name":"n","schema":{"type":"string"}}}`), "output_config.format.name: Extra inputs are not permitted", format(`{"type":"string"}`)},

	// The small fields.
	{"metadata extra", with(`"metadata":{"user":"u"}`), "metadata.user: Extra inputs are not permitted", with(`"metadata":{"user_id":null}`)},
	{"user_id type", with(`"metadata":{"user_id":1}`), "metadata.user_id: Input should be a valid string", with(`"metadata":{"user_id":"u"}`)},
	{"user_id length", with(`"metadata":{"user_id":"` + strings.Repeat("u", 257) + `"}`), "metadata.user_id: String should have at most 256 characters", with(`"metadata":{"user_id":"` + strings.Repeat("é", 256) + `"}`)},
	{"service_tier", with(`"service_tier":"flex"`), "service_tier: Input should be 'auto' or 'standard_only'", with(`"service_tier":"auto"`)},
	{"speed", with(`"speed":"slow"`), "speed: Input should be 'standard' or 'fast'", with(`"speed":null`)},
	{"container", with(`"container":1`), "container: Input should be a valid string", with(`"container":{"id":"c"}`)},
	{"diagnostics", with(`"diagnostics":{"a":1}`), "diagnostics.a: Extra inputs", with(`"diagnostics":{"previous_message_id":null}`)},
	{"inference_geo", with(`"inference_geo":1`), "inference_geo: Input should be", with(`"inference_geo":"eu"`)},

	// System.
	{"system type", with(`"system":1`), "system: Input should be a valid string or a valid array", with(`"system":"a"`)},
	{"system empty", with(`"system":""`), "system: text content blocks must be non-empty", with(`"system":[]`)},
	{"system white", with(`"system":" \n"`), "system: text content blocks must contain non-whitespace text", with(`"system":" a"`)},
	{"system empty block", with(`"system":[{"type":"text","text":"a"},{"type":"text","text":""}]`), "system: text content blocks must be non-empty", with(`"system":[{"type":"text","text":"a"},{"type":"text","text":" "}]`)},
	{"system image", with(`"system":[` + imageOf("image/png", png1x1) + `]`), "system.0.type: Input should be 'text'", with(`"system":[` + marked(mark5m) + `]`)},
	{"system extra", with(`"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","scope":"x"}}]`), "system.0.cache_control.scope: Extra inputs are not permitted", with(`"system":[{"type":"text","text":"a","cache_control":null}]`)},

	// Messages.
	{"messages type", with(`"messages":{}`), "messages: Input should be a valid array", talk(user(`"a"`))},
	{"no messages", with(`"messages":[]`), "messages: at least one message is required", talk(user(`"a"`))},
	{"message type", with(`"messages":["a"]`), "messages.0: Input should be a valid dictionary", talk(user(`"a"`))},
	{"message extra", talk(`{"role":"user","content":"a","name":"n"}`), "messages.0.name: Extra inputs are not permitted", talk(user(`"a"`))},
	{"no role", talk(`{"content":"a"}`), "messages.0.role: Field required", talk(user(`"a"`))},
	{"bad role", talk(`{"role":"tool","content":"a"}`), "messages.0.role: Input should be 'user' or 'assistant'", talk(user(`"a"`))},
	{"system role", talk(user(`"a"`), `{"role":"system","content":"a"}`), `messages: Unexpected role "system"`, talk(user(`"a"`), user(`"b"`))},
	{"no content", talk(`{"role":"user"}`), "messages.0.content: Field required", talk(user(`"a"`))},
	{"content null", talk(user(`null`)), "messages.0.content: Input should be a valid string or a valid array", talk(user(`"a"`))},
	{"first role", talk(assistant(`"a"`), user(`"b"`)), `messages: first message must use the "user" role`, talk(user(`"b"`), assistant(`"a"`), assistant(`"a"`), user(`"b"`), user(`"c"`))},
	{"prefill", talk(user(`"a"`), assistant(`"b"`)), "This model does not support assistant message prefill.", on("claude-opus-4-5", `"messages":[`+user(`"a"`)+`,`+assistant(`"b"`)+`]`)},
	{"prefill ends in white space", on("claude-opus-4-5", `"messages":[`+user(`"a"`)+`,`+assistant(`"b "`)+`]`), "messages: final assistant content cannot end with trailing whitespace", on("claude-opus-4-5", `"messages":[`+user(`"a"`)+`,`+assistant(`[]`)+`]`)},
	{"empty content", talk(user(`""`), user(`"a"`)), "messages.0: all messages must have non-empty content except for the optional final assistant message", on("claude-opus-4-5", `"messages":[`+user(`"a"`)+`,`+assistant(`""`)+`]`)},
	{"empty list", talk(user(`[]`)), "messages.0: all messages must have non-empty content", talk(user(`[{"type":"text","text":"a"}]`))},
	{"empty assistant", talk(user(`"a"`), assistant(`""`), user(`"a"`)), "messages.1: all messages must have non-empty content", talk(user(`"a"`), assistant(`"b"`), user(`"a"`))},
	{"empty text", talk(user(`[{"type":"text","text":""},{"type":"text","text":"a"}]`)), "messages: text content blocks must be non-empty", talk(user(`[{"type":"text","text":" "},{"type":"text","text":"a"}]`))},
	{"white text", talk(user(`"\n\t "`)), "messages: text content blocks must contain non-whitespace text", talk(user(`" a"`))},
	{"white text beside an image", talk(user(`[{"type":"text","text":" "},` + imageOf("image/png", png1x1) + `]`)), "messages: text content blocks must contain non-whitespace text", talk(user(`[` + imageOf("image/png", png1x1) + `]`))},
	{"empty text in a result", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":""}]}]`)), "messages: text content blocks must be non-empty", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","content":""}]`))},
	{"marked empty text in a result", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"",`+mark5m+`}]}]`)), "messages.2.content.0.tool_result.content.0.text: cache_control cannot be set for empty text blocks", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":" "}]}]`))},
	{"block type", talk(user(`[{"type":"audio"}]`)), "messages.0.content.0: Input tag 'audio' found using 'type' does not match any of the expected tags: 'document', 'image'", talk(user(`[{"type":"text","text":"a"}]`))},
	{"block without type", talk(user(`[{"text":"a"}]`)), "messages.0.content.0.type: Field required", talk(user(`[{"text":"a","type":"text"}]`))},
	{"block not an object", talk(user(`["a"]`)), "messages.0.content.0: Input should be a valid dictionary", talk(user(`"a"`))},
	{"text extra", talk(user(`[{"type":"text","text":"a","detail":"x"}]`)), "messages.0.content.0.detail: Extra inputs are not permitted", talk(user(`[{"type":"text","text":"a","citations":null}]`))},
	{"text missing", talk(user(`[{"type":"text"}]`)), "messages.0.content.0.text: Field required", talk(user(`"a"`))},
	{"text type", talk(user(`[{"type":"text","text":null}]`)), "messages.0.content.0.text: Input should be a valid string", talk(user(`"a"`))},
	{"reasoning_details", talk(user(`"a"`), `{"role":"assistant","content":"b","reasoning_details":[]}`, user(`"c"`)), "messages.1.reasoning_details: Extra inputs are not permitted", talk(user(`"a"`), assistant(`"b"`), user(`"c"`))},
	{"tool_use of the user", talk(user(`[` + call1 + `]`)), "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`]`))},
	{"thinking of the user", talk(user(`[{"type":"thinking","thinking":"","signature":"s"}]`)), "`thinking` blocks can only be in `assistant` messages", talk(user(`"a"`), assistant(`[{"type":"thinking","thinking":"","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"a"}]`), user(`"a"`))},
	{"redacted thinking of the user", talk(user(`[{"type":"redacted_thinking","data":"d"}]`)), "`redacted_thinking` blocks can only be in", talk(user(`"a"`))},
	{"image of the assistant", talk(user(`"a"`), assistant(`[`+imageOf("image/png", png1x1)+`]`), user(`"a"`)), "`image` blocks can only be in `user` messages", talk(user(`[` + imageOf("image/png", png1x1) + `]`))},
	{"result of the assistant", talk(user(`"a"`), assistant(`[`+result1+`]`), user(`"a"`)), "`tool_result` blocks can only be in `user` messages", talk(user(`"a"`))},
	{"search result of the assistant", talk(user(`"a"`), assistant(`[{"type":"search_result"}]`), user(`"a"`)), "`search_result` blocks can only be in `user` messages", talk(user(`[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}],"citations":{"enabled":true}}]`))},
	{"thinking marked", talk(user(`"a"`), assistant(`[{"type":"thinking","thinking":"","signature":"s",`+mark5m+`}]`), user(`"a"`)), "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted", talk(user(`"a"`), assistant(`[{"type":"thinking","thinking":"","signature":"s"},`+marked(mark5m)+`]`), user(`"a"`))},
	{"thinking without signature", talk(user(`"a"`), assistant(`[{"type":"thinking","thinking":"a"}]`), user(`"a"`)), "messages.1.content.0.thinking.signature: Field required", talk(user(`"a"`), assistant(`[{"type":"thinking","thinking":"a","signature":"s"}]`), user(`"a"`))},
	{"no thinking before a result, with a budget", on("claude-sonnet-4-5", `"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[`+user(`"a"`)+`,`+assistant(`[`+call1+`]`)+`,`+user(`[`+result1+`]`)+`]`), "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", on("claude-sonnet-4-5", `"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[`+user(`"a"`)+`,`+assistant(`[{"type":"thinking","thinking":"a","signature":"s"},`+call1+`]`)+`,`+user(`[`+result1+`]`)+`]`)},

	// Calls and results.
	{"call without result", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`"b"`)), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`,{"type":"text","text":"b"}]`))},
	{"calls without results", talk(user(`"a"`), assistant(`[`+call1+`,`+call2+`]`), user(`"b"`)), "immediately after: t1, t2.", talk(user(`"a"`), assistant(`[`+call1+`,`+call2+`]`), user(`[`+result2+`,`+result1+`]`))},
	{"one of two results", talk(user(`"a"`), assistant(`[`+call1+`,`+call2+`]`), user(`[`+result1+`]`)), "immediately after: t2.", talk(user(`"a"`), assistant(`[{"type":"text","text":"x"},`+call1+`,`+call2+`]`), user(`[`+result1+`,`+result2+`]`))},
	{"results in two messages", talk(user(`"a"`), assistant(`[`+call1+`,`+call2+`]`), user(`[`+result1+`]`), user(`[`+result2+`]`)), "immediately after: t2.", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`]`), user(`"b"`))},
	{"call at the end", on("claude-opus-4-5", `"messages":[`+user(`"a"`)+`,`+assistant(`[`+call1+`]`)+`]`), "immediately after: t1.", on("claude-opus-4-5", `"messages":[`+user(`"a"`)+`,`+assistant(`"x"`)+`]`)},
	{"text before a result", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"text","text":"b"},`+result1+`]`)), "immediately after: t1.", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`,{"type":"text","text":"b"}]`))},
	{"text between results", talk(user(`"a"`), assistant(`[`+call1+`,`+call2+`]`), user(`[`+result1+`,{"type":"text","text":"b"},`+result2+`]`)), "immediately after: t2.", talk(user(`"a"`), assistant(`[`+call1+`,`+call2+`]`), user(`[`+result1+`,`+result2+`,{"type":"text","text":"b"}]`))},
	{"result without call", talk(user(`[` + result1 + `]`)), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", talk(user(`"a"`))},
	{"late result", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`]`), assistant(`"b"`), user(`[`+result1+`]`)), "messages.4.content.0: unexpected `tool_use_id`", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`]`), assistant(`"b"`), user(`"c"`))},
	{"result twice", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`,`+result1+`]`)), "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: t1", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`]`))},
	{"id twice in a turn", talk(user(`"a"`), assistant(`[`+call1+`,`+call1+`]`), user(`[`+result1+`]`)), "messages.1.content.1: `tool_use` ids must be unique", talk(user(`"a"`), assistant(`[`+call1+`,`+call2+`]`), user(`[`+result1+`,`+result2+`]`))},
	{"id twice in a conversation", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`]`), assistant(`[`+call1+`]`), user(`[`+result1+`]`)), "messages.3.content.0: `tool_use` ids must be unique", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[`+result1+`]`), assistant(`[`+call2+`]`), user(`[`+result2+`]`))},
	{"id of a call", talk(user(`"a"`), assistant(`[{"type":"tool_use","id":"f:0","name":"f","input":{}}]`), user(`"b"`)), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", talk(user(`"a"`), assistant(`[{"type":"tool_use","id":"f-0","name":"f","input":{}}]`), user(`[{"type":"tool_result","tool_use_id":"f-0"}]`))},
	{"id type", talk(user(`"a"`), assistant(`[{"type":"tool_use","id":1,"name":"f","input":{}}]`), user(`"b"`)), "messages.1.content.0.tool_use.id: Input should be a valid string", talk(user(`"a"`))},
	{"id of a result", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":""}]`)), "messages.2.content.0.tool_result.tool_use_id: String should match pattern", talk(user(`"a"`))},
	{"input type", talk(user(`"a"`), assistant(`[{"type":"tool_use","id":"t1","name":"f","input":"{}"}]`), user(`[`+result1+`]`)), "messages.1.content.0.tool_use.input: Input should be a valid dictionary", talk(user(`"a"`), assistant(`[{"type":"tool_use","id":"t1","name":"f","input":{"a":1,"a":2},"caller":{"type":"direct"},`+mark5m+`}]`), user(`[`+result1+`]`))},
	{"no input", talk(user(`"a"`), assistant(`[{"type":"tool_use","id":"t1","name":"f"}]`), user(`[`+result1+`]`)), "messages.1.content.0.tool_use.input: Field required", talk(user(`"a"`))},
	{"no name", talk(user(`"a"`), assistant(`[{"type":"tool_use","id":"t1","name":"","input":{}}]`), user(`[`+result1+`]`)), "messages.1.content.0.tool_use.name: String should have at least 1 character", talk(user(`"a"`))},
	{"is_error type", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","is_error":null}]`)), "messages.2.content.0.tool_result.is_error: Input should be a valid boolean", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","is_error":true}]`))},
	{"call in a result", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","content":[`+call2+`]}]`)), "messages.2.content.0.tool_result.content.0: Input tag 'tool_use' found", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","content":[`+imageOf("image/png", png1x1)+`]}]`))},

	// Tools.
	{"tools type", with(`"tools":{}`), "tools: Input should be a valid array", with(`"tools":[]`)},
	{"tool type", with(`"tools":["f"]`), "tools.0.custom: Input should be a valid dictionary", with(`"tools":[` + tool(`"name":"f"`) + `]`)},
	{"tool extra", with(`"tools":[` + tool(`"name":"f","parameters":{}`) + `]`), "tools.0.custom.parameters: Extra inputs are not permitted", with(`"tools":[` + tool(`"name":"f","description":""`) + `]`)},
	{"description null", with(`"tools":[` + tool(`"name":"f","description":null`) + `]`), "tools.0.custom.description: Input should be a valid string", with(`"tools":[` + tool(`"name":"f","type":null`) + `]`)},
	{"strict null", with(`"tools":[` + tool(`"name":"f","strict":null`) + `]`), "tools.0.custom.strict: Input should be a valid boolean", with(`"tools":[` + tool(`"name":"f","strict":false`) + `]`)},
	{"server tool", with(`"tools":[{"type":"web_search_20250305","name":"web_search"}]`), "tools.0: server and client tools of type 'web_search_20250305' are not available", with(`"tools":[` + tool(`"name":"f","type":"custom"`) + `]`)},
	{"no tool name", with(`"tools":[` + tool(`"description":"d"`) + `]`), "tools.0.custom.name: Field required", with(`"tools":[` + tool(`"name":"f"`) + `]`)},
	{"empty tool name", with(`"tools":[` + tool(`"name":""`) + `]`), "tools.0.custom.name: String should have at least 1 character", with(`"tools":[` + tool(`"name":"f"`) + `]`)},
	{"tool name pattern", with(`"tools":[` + tool(`"name":"a.b"`) + `]`), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", with(`"tools":[` + tool(`"name":"a-B_9"`) + `]`)},
	{"tool name length", with(`"tools":[` + tool(`"name":"`+strings.Repeat("f", 129)+`"`) + `]`), "tools.0.custom.name: String should have at most 128 characters", with(`"tools":[` + tool(`"name":"`+strings.Repeat("f", 128)+`"`) + `]`)},
	{"tool name twice", with(`"tools":[` + tool(`"name":"f"`) + `,` + tool(`"name":"f"`) + `]`), "tools: Tool names must be unique.", with(`"tools":[` + tool(`"name":"f"`) + `,` + tool(`"name":"F"`) + `]`)},
	{"no schema", with(`"tools":[{"name":"f"}]`), "tools.0.custom.input_schema: Field required", with(`"tools":[` + tool(`"name":"f"`) + `]`)},
	{"schema type missing", with(`"tools":[{"name":"f","input_schema":{}}]`), "tools.0.custom.input_schema.type: Field required", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":null,"required":null}}]`)},
	{"schema type other", with(`"tools":[{"name":"f","input_schema":{"type":["object","null"]}}]`), "tools.0.custom.input_schema.type: Input should be 'object'", with(`"tools":[` + tool(`"name":"f"`) + `]`)},
	{"schema top level", with(`"tools":[{"name":"f","input_schema":{"type":"object","anyOf":[]}}]`), "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}}]`)},
	{"schema keywords", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"text"}}}}]`), "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":["string","null"],"minLength":2,"pattern":"a"}, "b":true},"x-order":1}}]`)},
	{"schema required", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"required":true}}}}]`), "JSON schema is invalid", with(`"tools":[{"name":"f","input_schema":{"type":"object","required":["a"]}}]`)},
	{"schema items list", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"items":[{}]}}}}]`), "JSON schema is invalid", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"items":{},"prefixItems":[{}],"minItems":0}}}}]`)},
	{"schema exclusiveMinimum", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"exclusiveMinimum":true}}}}]`), "JSON schema is invalid", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"exclusiveMinimum":0,"multipleOf":0.5}}}}]`)},
	{"schema minLength", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"minLength":-1}}}}]`), "JSON schema is invalid", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"minLength":0}}}}]`)},
	{"schema type list", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":["string","text"]}}}}]`), "JSON schema is invalid", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":["string","number"]}}}}]`)},
	{"schema anyOf empty", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"anyOf":[]}}}}]`), "JSON schema is invalid", with(`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"oneOf":[{}]}}}}]`)},

	// Tool choice.
	{"choice without tools", with(`"tool_choice":{"type":"auto"}`), "tool_choice: tool_choice may only be specified while providing tools", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"auto"}`)},
	{"choice with empty tools", with(`"tools":[],"tool_choice":{"type":"none"}`), "tool_choice: tool_choice may only be", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"none"}`)},
	{"choice type", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":"auto"`), "tool_choice: Input should be a valid dictionary", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`)},
	{"choice tag", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"function"}`), "tool_choice: Input tag 'function' found", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"auto"}`)},
	{"none with the flag", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"none","disable_parallel_tool_use":true}`), "tool_choice.disable_parallel_tool_use: Extra inputs are not permitted", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"none"}`)},
	{"auto with a name", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"auto","name":"f"}`), "tool_choice.name: Extra inputs are not permitted", on("claude-sonnet-5", `"tools":[`+tool(`"name":"f"`)+`],"tool_choice":{"type":"tool","name":"f"}`)},
	{"tool without name", on("claude-sonnet-5", `"tools":[`+tool(`"name":"f"`)+`],"tool_choice":{"type":"tool"}`), "tool_choice.name: Field required", on("claude-sonnet-5", `"tools":[`+tool(`"name":"f"`)+`],"tool_choice":{"type":"any"}`)},
	{"absent tool", on("claude-sonnet-5", `"tools":[`+tool(`"name":"f"`)+`],"tool_choice":{"type":"tool","name":"g"}`), "tool_choice.name: Tool 'g' not found in provided tools", on("claude-sonnet-5", `"tools":[`+tool(`"name":"g"`)+`],"tool_choice":{"type":"tool","name":"g"}`)},
	{"any where refused", with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"any"}`), `tool_choice: type "tool" and "any" are not supported for this model.`, on("claude-haiku-5-5", `"tools":[`+tool(`"name":"f"`)+`],"tool_choice":{"type":"any"}`)},
	{"forced with a budget", on("claude-sonnet-4-5", `"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"tools":[`+tool(`"name":"f"`)+`],"tool_choice":{"type":"any"}`), "Thinking may not be enabled when tool_choice forces tool use.", on("claude-sonnet-4-5", `"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"tools":[`+tool(`"name":"f"`)+`],"tool_choice":{"type":"auto"}`)},

	// Schemas that constrain output.
	{"format type", with(`"output_config":{"format":{"type":"json_object","schema":{}}}`), "output_config.format.type: Input should be 'json_schema'", format(`{"type":"object","additionalProperties":false}`)},
	{"format without schema", with(`"output_config":{"format":{"type":"json_schema"}}`), "output_config.format.schema: Field required", format(`{"enum":["a",1,null]}`)},
	{"open object", format(`{"type":"object"}`), "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false", format(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string","format":"date","pattern":"^a+$"}},"required":["a"]}`)},
	{"open object inside", format(`{"type":"array","items":{"type":"object"}}`), "'additionalProperties' must be explicitly set to false", format(`{"type":"array","minItems":1,"items":{"type":"object","additionalProperties":false}}`)},
	{"additionalProperties true", format(`{"type":"object","additionalProperties":true}`), "'additionalProperties: true' is not supported", format(`{"type":["object","null"],"additionalProperties":false}`)},
	{"minimum", format(`{"type":"integer","minimum":1}`), "For 'integer' type, property 'minimum' is not supported", format(`{"type":"integer","default":1,"title":"t","description":"d","$schema":"s"}`)},
	{"maxLength", format(`{"type":"string","maxLength":1}`), "For 'string' type, property 'maxLength' is not supported", format(`{"const":"a"}`)},
	{"oneOf", format(`{"oneOf":[{"type":"string"}]}`), "property 'oneOf' is not supported", format(`{"anyOf":[{"type":"string"},{"type":"null"}]}`)},
	{"minItems", format(`{"type":"array","items":{"type":"string"},"minItems":2}`), "For 'array' type, 'minItems' values other than 0 or 1 are not supported", format(`{"type":"array","items":{"type":"string"},"minItems":0}`)},
	{"format keyword", format(`{"type":"string","format":"regex"}`), `'format' value "regex" is not supported`, format(`{"type":"string","format":"uuid"}`)},
	{"lookahead", format(`{"type":"string","pattern":"a(?=b)"}`), "'pattern' with lookaround or backreference is not supported", format(`{"type":"string","pattern":"a(?:b)"}`)},
	{"enum of objects", format(`{"enum":[{}]}`), "'enum' values must be strings, numbers, booleans or null", format(`{"enum":[true]}`)},
	{"enum empty", format(`{"enum":[]}`), "'enum' must be a list of values", format(`{"enum":["a"]}`)},
	{"no type", format(`{}`), "Schema must have a 'type'", format(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`)},
	{"bad type", format(`{"type":"text"}`), "'type' must name JSON types", format(`{"type":"null"}`)},
	{"schema true", format(`{"type":"array","items":true}`), "boolean schemas are not supported", format(`{"type":"array","items":{"type":"boolean"}}`)},
	{"external reference", format(`{"$ref":"https://example.com/a"}`), "External schema references are not supported", format(`{"$ref":"#/definitions/a~1b","definitions":{"a/b":{"type":"string"}}}`)},
	{"dangling reference", format(`{"$ref":"#/$defs/a"}`), "cannot be resolved", format(`{"anyOf":[{"type":"string"},{"$ref":"#/anyOf/0"}]}`)},
	{"odd reference", format(`{"$ref":"#a"}`), "cannot be resolved", format(`{"type":"string"}`)},
	{"recursion", format(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}}}`), "Circular reference detected", format(`{"type":"string"}`)},
	{"recursion to the root", format(`{"type":"array","items":{"$ref":"#"}}`), "Circular reference detected", format(`{"type":"string"}`)},
	{"allOf with reference", format(`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"string"}}}`), "'allOf' with '$ref' is not supported", format(`{"allOf":[{"type":"string"}]}`)},
	{"anyOf type", format(`{"anyOf":{}}`), "'anyOf' must be a list of schemas", format(`{"type":"string"}`)},
	{"properties type", format(`{"type":"object","additionalProperties":false,"properties":[]}`), "'properties' must be an object", format(`{"type":"object","additionalProperties":false,"properties":{}}`)},
	{"$defs type", format(`{"type":"string","$defs":[]}`), "'$defs' must be an object", format(`{"type":"string","$defs":{}}`)},
	{"required type", format(`{"type":"object","additionalProperties":false,"required":"a"}`), "'required' must be a list of unique strings", format(`{"type":"object","additionalProperties":false,"required":[]}`)},
	{"too many optional", format(optionals("a", 25)), "Schema is too complex for compilation.", format(optionals("a", 24))},
	{"too many unions", format(unions(17)), "Schema is too complex for compilation.", format(unions(16))},
	{"too many optional together", with(`"tools":[{"name":"f","strict":true,"input_schema":` + optionals("a", 13) + `}],"output_config":{"format":{"type":"json_schema","schema":` + optionals("b", 12) + `}}`), "Schema is too complex for compilation.", with(`"tools":[{"name":"f","strict":false,"input_schema":` + optionals("a", 13) + `}],"output_config":{"format":{"type":"json_schema","schema":` + optionals("b", 12) + `}}`)},
	{"too large", format(`{"type":"string","description":"` + strings.Repeat("d", schemaBytesMax) + `"}`), "Schema is too complex for compilation.", format(`{"type":"string","description":"` + strings.Repeat("d", 1000) + `"}`)},
	{"too nested", format(strings.Repeat(`{"type":"array","items":`, 501) + `{"type":"string"}` + strings.Repeat("}", 501)), "Schema is too complex for compilation.", format(strings.Repeat(`{"type":"array","items":`, 100) + `{"type":"string"}` + strings.Repeat("}", 100))},
	{"strict open object", strict(`{"type":"object","properties":{}}`), "tools.0.custom.input_schema: For 'object' type, 'additionalProperties' must be explicitly set to false", strict(`{"type":"object","properties":{},"additionalProperties":false}`)},
	{"strict tools", with(`"tools":[` + strictTools(21) + `]`), "tools: Too many strict tools: 21 > 20.", with(`"tools":[` + strictTools(20) + `]`)},
	{"format with prefill", on("claude-opus-4-5", `"output_config":{"format":{"type":"json_schema","schema":{"type":"string"}}},"messages":[`+user(`"a"`)+`,`+assistant(`"b"`)+`]`), "structured outputs are incompatible with assistant message prefill", on("claude-opus-4-5", `"output_config":{"format":{"type":"json_schema","schema":{"type":"string"}}}`)},
	{"format with citations", with(`"output_config":{"format":{"type":"json_schema","schema":{"type":"string"}}},"messages":[` + user(`[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"citations":{"enabled":true}}]`) + `]`), "structured outputs are incompatible with citations", with(`"messages":[` + user(`[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"citations":{"enabled":true}}]`) + `]`)},

	// Cache marks.
	{"mark type", with(`"system":[{"type":"text","text":"a","cache_control":{"type":"persistent"}}]`), "system.0.cache_control: Input tag 'persistent' found", with(`"system":[` + marked(mark5m) + `]`)},
	{"mark without type", with(`"system":[{"type":"text","text":"a","cache_control":{}}]`), "system.0.cache_control.type: Field required", with(`"system":[` + marked(mark1h) + `]`)},
	{"mark not an object", with(`"system":[{"type":"text","text":"a","cache_control":true}]`), "system.0.cache_control: Input should be a valid dictionary", with(`"system":[{"type":"text","text":"a","cache_control":null}]`)},
	{"mark ttl", with(`"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"10m"}}]`), "system.0.cache_control.ttl: Input should be '5m' or '1h'", with(`"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"5m"}}]`)},
	{"five marks", with(`"system":[` + strings.Join(slices.Repeat([]string{marked(mark5m)}, 5), ",") + `]`), "A maximum of 4 blocks with cache_control may be provided. Found 5.", with(`"system":[` + strings.Join(slices.Repeat([]string{marked(mark5m)}, 4), ",") + `]`)},
	{"five marks in all places", with(`"cache_control":{"type":"ephemeral"},"tools":[` + tool(`"name":"f",`+mark5m) + `],"system":[` + marked(mark5m) + `],"messages":[` + user(`"a"`) + `,` + assistant(`[`+call1+`]`) + `,` + user(`[{"type":"tool_result","tool_use_id":"t1",`+mark5m+`,"content":[`+marked(mark5m)+`]}]`) + `]`), "Found 5.", with(`"tools":[` + tool(`"name":"f",`+mark5m) + `],"system":[` + marked(mark5m) + `],"messages":[` + user(`"a"`) + `,` + assistant(`[`+call1+`]`) + `,` + user(`[{"type":"tool_result","tool_use_id":"t1",`+mark5m+`,"content":[`+marked(mark5m)+`]}]`) + `]`)},
	{"1h after 5m", with(`"system":[` + marked(mark5m) + `],"messages":[` + user(`[`+marked(mark1h)+`]`) + `]`), "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.", with(`"system":[` + marked(mark1h) + `],"messages":[` + user(`[`+marked(mark5m)+`]`) + `]`)},
	{"1h at the top after 5m", with(`"cache_control":{"type":"ephemeral","ttl":"1h"},"system":[` + marked(mark5m) + `]`), "cache_control.cache_control.ttl: a ttl='1h'", with(`"cache_control":{"type":"ephemeral"},"system":[` + marked(mark1h) + `]`)},
	{"top mark against the last block's", with(`"cache_control":{"type":"ephemeral","ttl":"1h"},"messages":[` + user(`[`+marked(mark5m)+`]`) + `]`), "Top-level cache_control has ttl='1h' but the target block already has cache_control with ttl='5m'", with(`"cache_control":{"type":"ephemeral"},"messages":[` + user(`[`+marked(mark5m)+`]`) + `]`)},
	{"mark on empty text", talk(user(`[{"type":"text","text":"",` + mark5m + `}]`)), "messages.0.content.0.text: cache_control cannot be set for empty text blocks", talk(user(`[` + marked(mark5m) + `]`))},

	// Images and documents.
	{"media type", talk(user(`[` + imageOf("image/bmp", png1x1) + `]`)), "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", talk(user(`[` + imageOf("image/png", png1x1) + `]`))},
	{"image bytes of another type", talk(user(`[` + imageOf("image/png", b64("\xff\xd8\xff\xe0")) + `]`)), "messages.0.content.0.image.source.base64.data: The image was specified using the image/png media type, but the image appears to be a image/jpeg image", talk(user(`[` + imageOf("image/jpeg", b64("\xff\xd8\xff\xe0")) + `]`))},
	{"image of no type", talk(user(`[` + imageOf("image/png", b64("hello")) + `]`)), "Could not process image", talk(user(`[` + imageOf("image/gif", b64("GIF89a")) + `,` + imageOf("image/webp", b64("RIFF\x00\x00\x00\x00WEBP")) + `]`))},
	{"base64 alphabet", talk(user(`[` + imageOf("image/png", "iVBORw0KGg-_") + `]`)), "messages.0.content.0.image.source.base64.data: Invalid base64 data", talk(user(`[` + imageOf("image/png", "iVBORw0KGgo=") + `]`))},
	{"base64 padding", talk(user(`[` + imageOf("image/png", "iVBORw0KGgo") + `]`)), "Invalid base64 data", talk(user(`[` + imageOf("image/png", "iVBORw0KGgo=") + `]`))},
	{"base64 line feed", talk(user(`[` + imageOf("image/png", `iVBORw0K\nGgo=`) + `]`)), "Invalid base64 data", talk(user(`[` + imageOf("image/png", "iVBORw0KGgo=") + `]`))},
	{"base64 empty", talk(user(`[` + imageOf("image/png", "") + `]`)), "Invalid base64 data", talk(user(`[` + imageOf("image/png", "iVBORw0KGgo=") + `]`))},
	{"data URL", talk(user(`[` + imageOf("image/png", "data:image/png;base64,"+png1x1) + `]`)), "Invalid base64 data", talk(user(`[` + imageOf("image/png", png1x1) + `]`))},
	{"image source type", talk(user(`[{"type":"image","source":{"type":"data"}}]`)), "messages.0.content.0.image.source: Input tag 'data' found", talk(user(`[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"},"transformations":{"oversized_image":"error"}}]`))},
	{"image URL scheme", talk(user(`[{"type":"image","source":{"type":"url","url":"http://example.com/a.png"}}]`)), "messages.0.content.0.image.source.url.url: Only HTTPS URLs are supported.", talk(user(`[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]`))},
	{"image file", talk(user(`[{"type":"image","source":{"type":"file","file_id":"file_1"}}]`)), "File not found: file_1", talk(user(`"a"`))},
	{"image extra", talk(user(`[{"type":"image","detail":"high","source":{"type":"url","url":"https://a.example/"}}]`)), "messages.0.content.0.image.detail: Extra inputs are not permitted", talk(user(`[{"type":"image","cache_control":null,"source":{"type":"url","url":"https://a.example/"}}]`))},
	{"image size", talk(user(`[` + imageOf("image/png", b64("\x89PNG\r\n\x1a\n"+strings.Repeat("x", imageBytesMax))) + `]`)), "messages.0.content.0.image.source.base64: image exceeds 10 MB maximum: 10485768 bytes > 10485760 bytes", talk(user(`[` + imageOf("image/png", b64("\x89PNG\r\n\x1a\n"+strings.Repeat("x", 1000))) + `]`))},
	{"image side", talk(user(`[` + imageOf("image/png", pngOf(8001, 1)) + `]`)), "At least one of the image dimensions exceed max allowed size: 8000 pixels", talk(user(`[` + imageOf("image/png", pngOf(8000, 1)) + `]`))},
	{"image side among many", talk(user(`[` + strings.Join(slices.Repeat([]string{imageOf("image/png", pngOf(2001, 1))}, 21), ",") + `]`)), "max allowed size for many-image requests: 2000 pixels", talk(user(`[` + strings.Join(slices.Repeat([]string{imageOf("image/png", pngOf(2001, 1))}, 20), ",") + `]`))},
	{"side of a lossy WebP", talk(user(`[` + imageOf("image/webp", webpOf("VP8 ", 14, "\x41\x1f\x01\x00")) + `]`)), "8000 pixels", talk(user(`[` + imageOf("image/webp", webpOf("VP8 ", 14, "\x40\x1f\x01\x00")) + `]`))},
	{"side of a lossless WebP", talk(user(`[` + imageOf("image/webp", webpOf("VP8L", 9, "\x40\x1f\x00\x00")) + `]`)), "8000 pixels", talk(user(`[` + imageOf("image/webp", webpOf("VP8L", 9, "\x3f\x1f\x00\x00")) + `]`))},
	{"side of an extended WebP", talk(user(`[` + imageOf("image/webp", webpOf("VP8X", 12, "\x00\x00\x00\x40\x1f\x00")) + `]`)), "8000 pixels", talk(user(`[` + imageOf("image/webp", webpOf("VP8X", 12, "\x00\x00\x00\x3f\x1f\x00")) + `]`))},
	{"image in a result", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","content":[`+imageOf("image/gif", png1x1)+`]}]`)), "messages.2.content.0.tool_result.content.0.image.source.base64.data: The image was specified using the image/gif", talk(user(`"a"`), assistant(`[`+call1+`]`), user(`[{"type":"tool_result","tool_use_id":"t1","content":[`+imageOf("image/png", png1x1)+`]}]`))},
	{"too many images", talk(user(`[` + strings.Join(slices.Repeat([]string{imageOf("image/png", png1x1)}, 601), ",") + `]`)), "messages: Too many images and documents: 601 > 600", talk(user(`[` + strings.Join(slices.Repeat([]string{imageOf("image/png", png1x1)}, 600), ",") + `]`))},
	{"too many images for a small context", on("claude-haiku-4-5", `"messages":[`+user(`[`+strings.Join(slices.Repeat([]string{imageOf("image/png", png1x1)}, 101), ",")+`]`)+`]`), "messages: Too many images and documents: 101 > 100", on("claude-haiku-4-5", `"messages":[`+user(`[`+strings.Join(slices.Repeat([]string{imageOf("image/png", png1x1)}, 100), ",")+`]`)+`]`)},
	{"document media type", talk(user(`[{"type":"document","source":{"type":"base64","media_type":"text/plain","data":"YQ=="}}]`)), "messages.0.content.0.document.source.base64.media_type: Input should be 'application/pdf'", talk(user(`[` + pdfOf(b64("%PDF-1.4")) + `]`))},
	{"document bytes", talk(user(`[` + pdfOf(png1x1) + `]`)), "messages.0.content.0.document.source.base64.data: The PDF specified was not valid.", talk(user(`[` + pdfOf(b64("%PDF-1.7\n")) + `]`))},
	{"document encrypted", talk(user(`[` + pdfOf(b64("%PDF-1.4 /Encrypt")) + `]`)), "The PDF specified is password protected.", talk(user(`[` + pdfOf(b64("%PDF-1.4 /Type/Pages")) + `]`))},
	{"document pages", talk(user(`[` + pdfOf(b64("%PDF-1.4"+strings.Repeat("/Type /Page ", 601))) + `]`)), "A maximum of 600 PDF pages may be provided.", talk(user(`[` + pdfOf(b64("%PDF-1.4"+strings.Repeat("/Type /Page ", 600))) + `]`))},
	{"document extra", talk(user(`[{"type":"document","filename":"a.pdf","source":{"type":"text","media_type":"text/plain","data":"a"}}]`)), "messages.0.content.0.document.filename: Extra inputs are not permitted", talk(user(`[{"type":"document","title":"a","context":null,"source":{"type":"text","media_type":"text/plain","data":"a"}}]`))},
	{"document text empty", talk(user(`[{"type":"document","source":{"type":"text","media_type":"text/plain","data":""}}]`)), "messages.0.content.0.document.source.text.data: String should have at least 1 character", talk(user(`[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}]`))},
	{"document content", talk(user(`[{"type":"document","source":{"type":"content","content":[{"type":"text","text":""}]}}]`)), "messages: text content blocks must be non-empty", talk(user(`[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},` + imageOf("image/png", png1x1) + `]}}]`))},
	{"image in document content", talk(user(`[{"type":"document","source":{"type":"content","content":[` + imageOf("image/gif", png1x1) + `]}}]`)), "document.source.content.content.0.image.source.base64.data: The image was specified", talk(user(`[{"type":"document","source":{"type":"content","content":"a"}}]`))},
	{"document file", talk(user(`[{"type":"document","source":{"type":"file","file_id":"f"}}]`)), "File not found: f", talk(user(`[{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}]`))},

	// Length.
	{"too long", on("claude-haiku-4-5", `"messages":[`+user(`"`+strings.Repeat("word", 200_001)+`"`)+`]`), "prompt is too long: 200012 tokens > 200000 maximum", on("claude-haiku-4-5", `"messages":[`+user(`"`+strings.Repeat("word", 199_000)+`"`)+`]`)},
}

// optionals is an object of n optional properties.
func optionals(prefix string, n int) string {
	var properties []string
	for i := range n {
		properties = append(properties, fmt.Sprintf(`"%s%d":{"type":"string"}`, prefix, i))
	}
	return `{"type":"object","additionalProperties":false,"properties":{` + strings.Join(properties, ",") + `}}`
}

func unions(n int) string {
	options := slices.Repeat([]string{`{"type":["string","null"]}`}, n-1)
	return `{"anyOf":[` + strings.Join(options, ",") + `]}`
}

func strictTools(n int) string {
	var tools []string
	for i := range n {
		tools = append(tools, fmt.Sprintf(`{"name":"f%d","strict":true,"input_schema":{"type":"object","additionalProperties":false}}`, i))
	}
	return strings.Join(tools, ",")
}

func TestRules(t *testing.T) {
	names := map[string]bool{}
	for _, rule := range rules {
		if names[rule.name] {
			t.Errorf("%s: two rules of this name", rule.name)
		}
		names[rule.name] = true
		t.Run(rule.name, func(t *testing.T) {
			err := Check(goodHeader(), []byte(rule.refused))
			if err == nil {
				t.Fatalf("not refused: %.300s", rule.refused)
			}
			if !strings.Contains(err.Message, rule.says) {
				t.Errorf("says %q\nwant   %q", err.Message, rule.says)
			}
			status, kind := http.StatusBadRequest, "invalid_request_error"
			if strings.HasPrefix(rule.says, "model: ") && !strings.Contains(rule.says, "Field") && !strings.Contains(rule.says, "Input") || strings.HasPrefix(rule.says, "File not found") {
				status, kind = http.StatusNotFound, "not_found_error"
			}
			if err.Status != status || err.Type != kind {
				t.Errorf("refused with %d %s, want %d %s", err.Status, err.Type, status, kind)
			}
			if err := Check(goodHeader(), []byte(rule.passes)); err != nil {
				t.Errorf("the good neighbour is refused: %v\n%.300s", err, rule.passes)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	body := []byte(with(""))
	for _, test := range []struct {
		name   string
		change map[string][]string
		status int
		says   string // "" passes
	}{
		{"good", nil, 0, ""},
		{"bearer", map[string][]string{"X-Api-Key": nil, "Authorization": {"Bearer k"}}, 0, ""},
		{"bearer in lower case", map[string][]string{"X-Api-Key": nil, "Authorization": {"bearer k"}}, 0, ""},
		{"newer version", map[string][]string{"Anthropic-Version": {version2026}}, 0, ""},
		{"charset", map[string][]string{"Content-Type": {"application/json; charset=utf-8"}}, 0, ""},
		{"no key", map[string][]string{"X-Api-Key": nil}, 401, "x-api-key header is required"},
		{"empty bearer", map[string][]string{"X-Api-Key": nil, "Authorization": {"Bearer "}}, 401, "x-api-key header is required"},
		{"basic", map[string][]string{"X-Api-Key": nil, "Authorization": {"Basic eDp5"}}, 401, "x-api-key header is required"},
		{"no version", map[string][]string{"Anthropic-Version": nil}, 400, "anthropic-version: header is required"},
		{"unknown version", map[string][]string{"Anthropic-Version": {"2024-01-01"}}, 400, `anthropic-version: "2024-01-01" is not a valid version`},
		{"two versions", map[string][]string{"Anthropic-Version": {version2023, version2023}}, 400, "is not a valid version"},
		{"no content type", map[string][]string{"Content-Type": nil}, 400, "content-type: must be application/json"},
		{"other content type", map[string][]string{"Content-Type": {"text/plain"}}, 400, "content-type: must be application/json"},
	} {
		header := goodHeader()
		for key, values := range test.change {
			header[key] = values
		}
		err := Check(header, body)
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: refused: %v", test.name, err)
		case test.says != "" && (err == nil || err.Status != test.status || !strings.Contains(err.Message, test.says)):
			t.Errorf("%s: got %v, want %d %s", test.name, err, test.status, test.says)
		}
	}
}

func TestBodySize(t *testing.T) {
	filler := strings.Repeat(" ", bodyBytesMax-len(with("")))
	if err := Check(goodHeader(), []byte(with("")+filler)); err != nil {
		t.Errorf("a body of exactly 32 MB is refused: %v", err)
	}
	err := Check(goodHeader(), []byte(with("")+filler+" "))
	if err == nil || err.Status != 413 || err.Type != "request_too_large" {
		t.Errorf("a body of 32 MB and a byte: %v", err)
	}
}

func TestMessagesMax(t *testing.T) {
	many := func(n int) []byte {
		return []byte(talk(slices.Repeat([]string{user(`"a"`)}, n)...))
	}
	if err := Check(goodHeader(), many(messagesMax)); err != nil {
		t.Errorf("100,000 messages are refused: %v", err)
	}
	err := Check(goodHeader(), many(messagesMax+1))
	if err == nil || !strings.Contains(err.Message, "List should have at most 100000 items") {
		t.Errorf("100,001 messages: %v", err)
	}
}

func TestNewerVersion(t *testing.T) {
	header := goodHeader()
	header.Set("anthropic-version", version2026)
	cited := `[{"type":"text","text":"a","citations":[{"type":"char_location"}]}]`
	document := assistant(`[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}]`)
	for body, says := range map[string]string{
		on("claude-sonnet-4-6", `"temperature":1`): "temperature: Extra inputs are not permitted",
		on("claude-sonnet-4-6", `"top_p":1`):       "top_p: Extra inputs are not permitted",
		talk(user(cited)):                          "messages.0.content.0.text.citations",
		talk(user(`"a"`), document, user(`"b"`)):   "messages.1.content.0: `document` blocks can only be in `user` messages",
	} {
		if err := Check(goodHeader(), []byte(body)); err != nil {
			t.Errorf("refused under %s: %v", version2023, err)
		}
		err := Check(header, []byte(body))
		if err == nil || !strings.Contains(err.Message, says) {
			t.Errorf("under %s: %v, want %s", version2026, err, says)
		}
	}
}

func TestRelax(t *testing.T) {
	for rule, body := range map[Rule]string{
		RulePrefill:      talk(user(`"a"`), assistant(`"b"`)),
		RuleFirstRole:    talk(assistant(`"a"`), user(`"b"`)),
		RuleForcedChoice: with(`"tools":[` + tool(`"name":"f"`) + `],"tool_choice":{"type":"any"}`),
		RuleSampling:     with(`"temperature":0.2,"top_p":0.5`),
		RuleContext:      on("claude-haiku-4-5", `"messages":[`+user(`"`+strings.Repeat("word", 200_001)+`"`)+`]`),
	} {
		if err := Check(goodHeader(), []byte(body)); err == nil {
			t.Errorf("%s: not refused at all", rule)
		}
		if err := Check(goodHeader(), []byte(body), rule); err != nil {
			t.Errorf("%s: relaxed, but refused: %v", rule, err)
		}
	}
	err := Check(goodHeader(), []byte(talk(assistant(`""`))), RulePrefill, RuleFirstRole)
	if err != nil {
		t.Errorf("an empty conversation, relaxed: %v", err)
	}
}

// FuzzCheck looks for panics, and for answers that are no JSON.
func FuzzCheck(f *testing.F) {
	for _, rule := range rules {
		if len(rule.refused) < 4096 {
			f.Add([]byte(rule.refused), true)
		}
		if len(rule.passes) < 4096 {
			f.Add([]byte(rule.passes), false)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, newer bool) {
		header := goodHeader()
		if newer {
			header.Set("anthropic-version", version2026)
		}
		for _, relax := range [][]Rule{nil, {RulePrefill, RuleFirstRole, RuleForcedChoice, RuleSampling, RuleContext}} {
			r, refusal := read(header, body, relax)
			if refusal != nil {
				checkJSON(t, refusal.Body("req_1"))
				continue
			}
			m := answer(r, new(promptCache).account(r))
			checkMessage(t, m)
		}
	})
}
