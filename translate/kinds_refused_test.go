// Built on the second opinions, and left out with them: see opinions_test.go.
//go:build !fuzzing

package translate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// fault is a faulty top-level field or message.
type fault struct {
	json string
	want string // how the refusal begins; %d is a message's index
}

// name is that of a top-level field.
func (b fault) name() string {
	name, _, _ := strings.Cut(b.json, ":")
	return name
}

const (
	wholeNumber = ": must be a whole number of at least 1"
	legacy      = "functions: the legacy functions API is not supported; use tools"
	textOnly    = "modalities: only text output is supported"
	jsonObject  = `response_format: type "json_object" is not supported; use "json_schema" with a schema (objects need "additionalProperties": false)`
	someEfforts = "reasoning_effort: use one of none, minimal, low, medium, high, xhigh, max"
)

// badFields are faults of top-level fields before messages, in the order in which they
// are reported: decision 6.
var badFields = []fault{
	{`"model":null`, `model: `},
	{`"model":""`, `model: `},
	{`"model":7`, `model: `},
	{`"n":2`, `n: only 1 choice per request is supported`},
	{`"n":0`, `n: only 1 choice per request is supported`},
	{`"n":"1"`, `n: `},
	{`"logprobs":true`, `logprobs: log probabilities are not available`},
	{`"logprobs":"no"`, `logprobs: `},
	{`"top_logprobs":0`, `top_logprobs: log probabilities are not available`},
	{`"logit_bias":{"1":1}`, `logit_bias: is not supported`},
	{`"logit_bias":[]`, `logit_bias: `},
	{`"audio":{"format":"wav","voice":"x"}`, textOnly},
	{`"modalities":["text","audio"]`, textOnly},
	{`"modalities":[]`, textOnly},
	{`"web_search_options":{}`, `web_search_options: is not supported`},
	{`"functions":[]`, legacy},
	{`"function_call":"auto"`, legacy},
	{`"response_format":{"type":"json_object"}`, jsonObject},
	{`"response_format":"json"`, `response_format: `},
	{`"response_format":{}`, `response_format: `},
	{`"response_format":{"type":"grammar"}`, `response_format: `},
	{`"response_format":{"type":"json_schema"}`, `response_format.json_schema: `},
	{`"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`, `response_format.json_schema.schema: `},
	{`"response_format":{"type":"json_schema","json_schema":{"schema":true}}`, `response_format.json_schema.schema: `},
	{`"reasoning_effort":"extreme"`, someEfforts},
	{`"reasoning_effort":1`, someEfforts},
	{`"stream":"true"`, `stream: `},
	{`"stream_options":true`, `stream_options: `},
	{`"stream_options":{"include_usage":1}`, `stream_options.include_usage: `},
	{`"temperature":"0"`, `temperature: `},
	{`"top_p":[1]`, `top_p: `},
	{`"max_completion_tokens":0`, `max_completion_tokens` + wholeNumber},
	{`"max_completion_tokens":1.5`, `max_completion_tokens` + wholeNumber},
	{`"max_tokens":"64"`, `max_tokens` + wholeNumber},
	{`"max_tokens":-1`, `max_tokens` + wholeNumber},
	{`"stop":" \n"`, `stop: `},
	{`"stop":["a",1]`, `stop: `},
	{`"stop":["a","\u3000"]`, `stop: `},
	{`"stop":{}`, `stop: `},
	{`"prompt_cache_key":1`, `prompt_cache_key: `},
	{`"prompt_cache_key":"` + strings.Repeat("é", 257) + `"`, `prompt_cache_key: `},
}

// badToolFields are the faults behind messages, in their order.
var badToolFields = []fault{
	{`"tools":{}`, `tools: `},
	{`"tools":["f"]`, `tools[0]: `},
	{`"tools":[{"type":"web_search"}]`, `tools[0].type: only function tools are supported`},
	{`"tools":[{"type":"custom","custom":{"name":"x"}}]`, `tools[0].type: only function tools are supported`},
	{`"tools":[{"function":{"name":"f"}}]`, `tools[0].type: only function tools are supported`},
	{`"tools":[{"type":"function"}]`, `tools[0].function: `},
	{`"tools":[{"type":"function","function":"f"}]`, `tools[0].function: `},
	{`"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"description":"d"}}]`, `tools[1].function.name: `},
	{`"tools":[{"type":"function","function":{"name":""}}]`, `tools[0].function.name: `},
	{`"tools":[{"type":"function","function":{"name":"f","description":7}}]`, `tools[0].function.description: `},
	{`"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`, `tools[0].function.parameters: `},
	{`"tools":[{"type":"function","function":{"name":"f","strict":"true"}}]`, `tools[0].function.strict: `},
	{`"tools":[{"type":"function","function":{"name":"f"},"cache_control":"ephemeral"}]`, `tools[0].cache_control: `},
	{`"tools":[{"type":"function","function":{"name":"f","name":"g"}}]`, `tools[0].function.name: duplicate field`},
	{`"tool_choice":"any"`, `tool_choice: `},
	{`"tool_choice":{"type":"tool","name":"f"}`, `tool_choice: `},
	{`"tool_choice":{"type":"function","function":{"name":"absent"}}`, `tool_choice: `},
	{`"tool_choice":{"type":"function","function":{}}`, `tool_choice: `},
	{`"tool_choice":{"type":"custom","custom":{"name":"f"}}`, `tool_choice: `},
	{`"parallel_tool_calls":"false"`, `parallel_tool_calls: `},
}

// badMessages are faults of a message.
var badMessages = []fault{
	{`7`, `messages[%d]: must be an object`},
	{`null`, `messages[%d]: must be an object`},
	{`{"content":"x"}`, `messages[%d].role: `},
	{`{"role":"critic","content":"x"}`, `messages[%d].role: `},
	{`{"role":"function","name":"f","content":"x"}`, `messages[%d].role: the legacy "function" role is not supported; use tools`},
	{`{"role":"user","role":"user","content":"x"}`, `messages[%d].role: duplicate field`},
	{`{"role":"user"}`, `messages[%d].content: `},
	{`{"role":"user","content":""}`, `messages[%d].content: `},
	{`{"role":"user","content":[{"type":"text","text":""}]}`, `messages[%d].content: `},
	{`{"role":"user","content":7}`, `messages[%d].content: `},
	{`{"role":"system","content":{"type":"text"}}`, `messages[%d].content: `},
	{`{"role":"assistant","content":true}`, `messages[%d].content: `},
	{`{"role":"user","content":[{"type":"text","text":"x"},{"type":"input_audio","input_audio":{}}]}`, `messages[%d].content[1]: audio input is not supported`},
	{`{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}`, `messages[%d].content[0].file: send the PDF as file_data (a base64 data URL); file_id is not supported`},
	{`{"role":"system","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, `messages[%d].content[0].type: `},
	{`{"role":"assistant","content":[{"type":"file","file":{}}]}`, `messages[%d].content[0].type: `},
	{`{"role":"user","content":[{"type":"refusal","refusal":"x"}]}`, `messages[%d].content[0].type: `},
	{`{"role":"assistant","content":[{"type":"refusal","refusal":1}]}`, `messages[%d].content[0].refusal: `},
	{`{"role":"user","content":[{"type":"image_url"}]}`, `messages[%d].content[0].image_url: `},
	{`{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,iVBO"}]}`, `messages[%d].content[0].image_url: `},
	{`{"role":"user","content":[{"type":"image_url","image_url":{}}]}`, `messages[%d].content[0].image_url.url: `},
	{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/bmp;base64,iVBO"}}]}`, `messages[%d].content[0].image_url.url: `},
	{`{"role":"user","content":[{"type":"text","text":"x","cache_control":"ephemeral"}]}`, `messages[%d].content[0].cache_control: `},
	{`{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","scope":"x"}}]}`, `messages[%d].content[0].cache_control: `},
	{`{"role":"assistant","tool_calls":{}}`, `messages[%d].tool_calls: `},
	{`{"role":"assistant","tool_calls":["x"]}`, `messages[%d].tool_calls[0]: `},
	{`{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":""}}]}`, `messages[%d].tool_calls[0].id: `},
	{`{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{}}]}`, `messages[%d].tool_calls[0].type: `},
	{`{"role":"assistant","tool_calls":[{"id":"c","type":"function"}]}`, `messages[%d].tool_calls[0].function: `},
	{`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"arguments":""}}]}`, `messages[%d].tool_calls[0].function.name: `},
	{`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{}}}]}`, `messages[%d].tool_calls[0].function.arguments: `},
	{`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}`, `messages[%d].tool_calls[0].function.arguments: `},
	{`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"[]"}}]}`, `messages[%d].tool_calls[0].function.arguments: `},
	{`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{} {}"}}]}`, `messages[%d].tool_calls[0].function.arguments: `},
	{`{"role":"tool","content":"x"}`, `messages[%d].tool_call_id: `},
	{`{"role":"tool","tool_call_id":"nobody","content":"x"}`, `messages[%d].tool_call_id: `},
}

// lateFaults are faults that show only when all messages have been read, or when the
// gateway's settings are looked at: they come after all others.
var lateFaults = []fault{
	{`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}`, `messages[%d].tool_calls[0].id: `},
	{`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}`, `messages[%d].content[1].image_url.url: `},
}

// badBodies are faults of the body itself.
var badBodies = []string{``, ` `, `{`, `null`, `[]`, `"x"`, `{"model":"m",}`, `{"model":"m"}{}`, "{\"model\":\"\xff\"}", `{"model":"m","messages":[{"role":"user","content":"x"}]} x`}

// spoiled is a body with these faults: fields are top-level ones, messages stand behind
// good ones, in order. It is otherwise as random as an accepted one.
func spoiled(rnd *rand.Rand, fields []fault, messages []fault) (body string, index int) {
	taken := map[string]bool{}
	var all []string
	for _, b := range fields {
		all = append(all, b.json)
		taken[b.name()] = true
	}
	good := []string{
		`{"role":"system","content":"S"}`, talkUser, `{"role":"assistant","content":"A"}`,
		`{"role":"user","content":[{"type":"text","text":"é"}]}`,
	}
	list := []string{talkUser}
	for range rnd.IntN(3) {
		list = append(list, pick(rnd, good))
	}
	index = len(list)
	for _, b := range messages {
		list = append(list, b.json)
	}
	for _, field := range []string{
		`"model":"anthropic/claude-sonnet-5-5"`, `"messages":[` + strings.Join(list, ",") + `]`,
		`"tools":[{"type":"function","function":{"name":"f"}}]`, `"tool_choice":"auto"`, `"max_tokens":64`, `"stream":true`, `"future":{"n":2}`,
	} {
		if !taken[fault{json: field}.name()] {
			all = append(all, field)
		}
	}
	rnd.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return "{" + strings.Join(all, ",") + "}", index
}

// TestKindsOfRefusals: every faulty piece is refused for the contract's or a decision's
// reason, whatever stands around it, and of every two the one is named that decision 6
// puts first, in whatever order the body has them.
func TestKindsOfRefusals(t *testing.T) {
	f := newFilter()
	var s stopper
	n := uint64(0)
	refuse := func(want fault, fields, messages []fault) {
		t.Helper()
		n++
		body, index := spoiled(rand.New(rand.NewPCG(6, n)), fields, messages)
		text := want.want
		if strings.Contains(text, "%d") {
			text = fmt.Sprintf(text, index)
		}
		_, refusal := f.up(body)
		s.note(t, refusedFor(t, body, refusal, text))
	}
	ranked := append(append([]fault{}, badFields...), badToolFields...)
	for i, first := range ranked {
		refuse(first, []fault{first}, nil)
		for _, second := range ranked[i+1:] {
			if first.name() != second.name() {
				refuse(first, []fault{first, second}, nil)
				refuse(first, []fault{second, first}, nil)
			}
		}
	}
	for _, message := range badMessages {
		refuse(message, nil, []fault{message})
		for _, other := range badMessages {
			refuse(message, nil, []fault{message, other})
		}
		for _, field := range badFields {
			refuse(field, []fault{field}, []fault{message})
		}
		for _, field := range badToolFields {
			refuse(message, []fault{field}, []fault{message})
		}
	}
	for _, late := range lateFaults {
		refuse(late, nil, []fault{late})
		for _, field := range badFields {
			refuse(field, []fault{field}, []fault{late})
		}
	}
	for _, body := range badBodies {
		_, refusal := f.up(body)
		s.note(t, refusedFor(t, body, refusal, "request body: "))
	}
	for _, messages := range []string{`null`, `[]`, `[{"role":"system","content":"x"}]`, `[{"role":"assistant","content":""}]`} {
		body := `{"model":"m","messages":` + messages + `}`
		_, refusal := f.up(body)
		s.note(t, refusedFor(t, body, refusal, noUser))
	}
	if n < 7000 {
		t.Errorf("only %d combinations were refused", n)
	}
}
