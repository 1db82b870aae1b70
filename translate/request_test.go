package translate

import (
	"strings"
	"testing"
)

// up is what goes upstream for a body, or the error's message.
func up(t testing.TB, body string, env *Env) string {
	t.Helper()
	r, refused := Parse([]byte(body))
	if refused != nil {
		if refused.Status != 400 || refused.Type != "invalid_request_error" || refused.Code != "" || refused.Param != "" || refused.Field == "" {
			t.Errorf("refusal %+v is not the contract's 400", refused)
		}
		return refused.Message
	}
	p, refused := Decide(r, env)
	if refused != nil {
		return refused.Message
	}
	var out strings.Builder
	p.Write(func(piece []byte) { out.Write(piece) })
	return out.String()
}

func plainEnv() *Env { return &Env{Models: NewModels("anthropic/", nil)} }

const head = `{"model":"claude-sonnet-5-5","max_tokens":64`

// body puts fields behind a model and a user message.
func body(fields string) string {
	return `{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"go"}]` + fields + `}`
}

// said is a body with these messages.
func said(messages string) string {
	return `{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[` + messages + `]}`
}

func TestMessages(t *testing.T) {
	call := func(id string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}`
	}
	for _, c := range []struct{ messages, want string }{
		{`{"role":"user","content":"hi \u00e9\/"}`, `[{"role":"user","content":[{"type":"text","text":"hi \u00e9\/"}]}]`},
		{`{"role":"user","content":"half \ud83d"}`, `[{"role":"user","content":[{"type":"text","text":"half \ufffd"}]}]`},
		{`{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"b"}]},{"role":"assistant","content":"c "},{"role":"user","content":"d"}`,
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":[{"type":"text","text":"c "}]},{"role":"user","content":[{"type":"text","text":"d"}]}]`},
		{`{"role":"user","content":"a"},{"role":"assistant","content":"b \n\u00a0"}`,
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b"}]}]`},
		{`{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b\\ "},{"type":"text","text":"\t"}]}`,
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b\\"}]}]`},
		{`{"role":"user","content":"a"},{"role":"assistant","content":" "}`, `[{"role":"user","content":[{"type":"text","text":"a"}]}]`},
		{`{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},{"role":"user","content":"b"}`,
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`},
		// Results first, in the order sent, whatever stands between them.
		{`{"role":"user","content":"a"},{"role":"assistant","tool_calls":[` + call("x") + `,` + call("y") + `]},{"role":"tool","tool_call_id":"y","content":""},{"role":"user","content":"u"},{"role":"assistant","content":""},{"role":"tool","tool_call_id":"x","content":"r"}`,
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}},{"type":"tool_use","id":"y","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"y"},{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"r"}]},{"type":"text","text":"u"}]}]`},
		{`{"role":"user","content":"a"},{"role":"assistant","tool_calls":[` + call("a.b") + `,` + call("a_b") + `,` + call("ezatid-a_2Eb") + `]},{"role":"tool","tool_call_id":"a.b"},{"role":"tool","tool_call_id":"a_b"},{"role":"tool","tool_call_id":"ezatid-a_2Eb"}`,
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"ezatid-a_2Eb__0__1","name":"f","input":{}},{"type":"tool_use","id":"a_b","name":"f","input":{}},{"type":"tool_use","id":"ezatid-a_2Eb","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"ezatid-a_2Eb__0__1"},{"type":"tool_result","tool_use_id":"a_b"},{"type":"tool_result","tool_use_id":"ezatid-a_2Eb"}]}]`},
		{`{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":" {\"b\" :1.50,\"a\":\"\\u003c\\ud83d\"}"}}]},{"role":"tool","tool_call_id":"x"}`,
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{"b" :1.50,"a":"\u003c\ufffd"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]`},
		{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"DATA:image/JPG;x=y;Base64,\/9j\/\n4AAQ"}},{"type":"file","file":{"filename":"a","file_data":"data:application/pdf;base64,JVBERi0="}}]}`,
			`[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/4AAQ"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}]}]`},
	} {
		if got, want := up(t, said(c.messages), plainEnv()), head+`,"messages":`+c.want+`}`; got != want {
			t.Errorf("%s\n got %s\nwant %s", c.messages, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	const url = `messages[0].content[0].image_url.url: `
	image := func(url string) string {
		return said(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}`)
	}
	call := `{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]}`
	ask := `{"role":"user","content":"a"}`
	for _, c := range []struct{ body, want string }{
		{``, `request body: is empty`},
		{`[]`, `request body: must be a JSON object`},
		{`{"a":1`, `request body: is not valid JSON: it ends too early`},
		{"{\"a\":\"\xff\"}", `request body: is not valid UTF-8 at byte 6`},
		{`{"a":` + strings.Repeat("[", 100_000) + `}`, `request body: is nested deeper than 512 levels`},
		{`{}`, `model: is required`},
		{`{"model":null}`, `model: is required`},
		{`{"model":5}`, `model: must be a string`},
		{`{"model":""}`, `model: must not be empty`},
		{`{"model":"a","n":1,"\u006e":2}`, `n: duplicate field`},
		{`{"model":"a","messages":[{"role":"user","role":"function","content":"x"}]}`, `messages[0].role: duplicate field`},
		{`{"model":"a","foo":1,"foo":2}`, `foo: duplicate field`},
		{`{"model":"a"}`, `messages: must contain at least one user message`},
		{`{"model":"a","messages":{}}`, `messages: must be an array`},
		{said(``), `messages: must contain at least one user message`},
		{said(`{"role":"system","content":"a"}`), `messages: must contain at least one user message`},
		{said(`{"role":"assistant","content":""}`), `messages: must contain at least one user message`},
		{said(ask + `,{"role":"user","content":""}`), `messages[1].content: must not be empty`},
		{said(`{"role":"function","content":"a"}`), `messages[0].role: the legacy "function" role is not supported; use tools`},
		{said(`{"role":"bot","content":"a"}`), `messages[0].role: must be one of system, developer, user, assistant and tool`},
		{said(`{"role":"user","content":[{"type":"input_audio"}]}`), `messages[0].content[0]: audio input is not supported`},
		{said(`{"role":"user","content":[{"type":"video"}]}`), `messages[0].content[0].type: must be one of text, image_url and file`},
		{said(`{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}`), `messages[0].content[0].file: send the PDF as file_data (a base64 data URL); file_id is not supported`},
		{said(`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","scope":1}}]}`), `messages[0].content[0].cache_control: must be an object of "type" and "ttl"`},
		{said(ask + `,{"role":"tool","tool_call_id":"x","content":"r"}`), `messages[1].tool_call_id: answers no open tool call of the assistant turn before it`},
		{said(ask + `,` + call), `messages[1].tool_calls[0].id: has no tool message that answers it`},
		{said(ask + `,` + call + `,` + ask + `,{"role":"assistant","content":"b"}`), `messages[1].tool_calls[0].id: has no tool message that answers it`},
		{said(ask + `,` + call + `,{"role":"tool","tool_call_id":"x"},{"role":"tool","tool_call_id":"x"}`), `messages[3].tool_call_id: answers no open tool call of the assistant turn before it`},
		{said(ask + `,{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":"[]"}}]}`), `messages[1].tool_calls[0].function.arguments: must be a JSON object`},
		{said(ask + `,{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]}`), `messages[1].tool_calls[0].function.arguments: is not valid JSON: it ends too early`},
		{image(`ftp://a/b`), url + `must be a base64 data URL or an http(s) URL`},
		{image(`http://a/b`), url + `image downloads are turned off here; send the image as a data URL`},
		{image(`data:image/png,abc`), url + `must be a base64 data URL: data:<type>;base64,<data>`},
		{image(`data:image/bmp;base64,AAAA`), url + `must be of type image/jpeg, image/png, image/gif or image/webp`},
		{image(`data:image/png;base64,`), url + `the base64 data is empty`},
		{image(`data:image/png;base64,AAA`), url + `the base64 data is broken`},
		{image(`data:image/png;base64,A===`), url + `the base64 data is broken`},
		{image(`data:image/png;base64,AA=A`), url + `the base64 data is broken`},
		{image(`data:image/png;base64,AA-_`), url + `the base64 data is broken`},
		{image(`data:image/png;base64,JVBERi0=`), url + `is a PDF; send it in a file part`},
		{body(`,"n":2`), `n: only 1 choice per request is supported`},
		{body(`,"top_logprobs":0`), `top_logprobs: log probabilities are not available`},
		{body(`,"logit_bias":{"1":1}`), `logit_bias: is not supported`},
		{body(`,"audio":{}`), `modalities: only text output is supported`},
		{body(`,"modalities":["text","audio"]`), `modalities: only text output is supported`},
		{body(`,"function_call":"auto"`), `functions: the legacy functions API is not supported; use tools`},
		{body(`,"response_format":{"type":"json_schema"}`), `response_format.json_schema: is required`},
		{body(`,"response_format":{"type":"xml"}`), `response_format: type must be "text" or "json_schema"`},
		{body(`,"reasoning_effort":3`), `reasoning_effort: use one of none, minimal, low, medium, high, xhigh, max`},
		{body(`,"stream":"true"`), `stream: must be true or false`},
		{body(`,"max_completion_tokens":1.5`), `max_completion_tokens: must be a whole number of at least 1`},
		{body(`,"max_completion_tokens":0`), `max_completion_tokens: must be a whole number of at least 1`},
		{body(`,"stop":["","\n"]`), `stop: a stop string must have more than white space in it`},
		{body(`,"stop":5`), `stop: must be a string or an array of strings`},
		{body(`,"tools":[{"name":"f"}]`), `tools[0].type: only function tools are supported`},
		{body(`,"tools":[{"type":"function","function":{}}]`), `tools[0].function.name: is required`},
		{body(`,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"requird"`), `tool_choice: must be "auto", "none", "required" or {"type": "function", "function": {"name": …}}`},
		{body(`,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}`), `tool_choice: names a function that is not in tools`},
		{body(`,"prompt_cache_key":"` + strings.Repeat("é", 257) + `"`), `prompt_cache_key: must have at most 256 characters`},
		// The order of decision 6.
		{`{"tools":5,"messages":5,"stream":5,"logit_bias":5,"n":5,"model":5}`, `model: must be a string`},
		{`{"tools":5,"messages":5,"stream":5,"reasoning_effort":5,"n":2,"model":"m"}`, `n: only 1 choice per request is supported`},
		{`{"tools":5,"messages":5,"stream":5,"reasoning_effort":5,"model":"m"}`, `reasoning_effort: use one of none, minimal, low, medium, high, xhigh, max`},
		{`{"tools":5,"messages":5,"stream":5,"model":"m"}`, `stream: must be true or false`},
		{`{"tools":5,"messages":5,"model":"m"}`, `messages: must be an array`},
	} {
		if got := up(t, c.body, plainEnv()); got != c.want {
			t.Errorf("%.300s\n got %.300s\nwant %s", c.body, got, c.want)
		}
	}
}

func TestFields(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"f","description":"d","strict":true,"parameters":{"properties":{}}}},{"type":"function","function":{"name":"g","strict":null}}]`
	const toolsUp = `,"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{}},"strict":true},{"name":"g","input_schema":{"type":"object","properties":{}}}]`
	for _, c := range []struct{ model, fields, want string }{
		{"claude-sonnet-5-5", `,"temperature":0,"top_p":0.1`, ``},
		{"claude-sonnet-4-6", `,"temperature":1.5,"top_p":0.1`, `,"temperature":1`},
		{"claude-sonnet-4-6", `,"temperature":0.20,"reasoning_effort":"none"`, `,"output_config":{"effort":"low"},"temperature":0.20`},
		{"claude-sonnet-4-6", `,"temperature":0.20,"reasoning_effort":"high"`, `,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`},
		{"claude-sonnet-4-6", `,"top_p":1.0`, ``},
		{"claude-sonnet-4-6", `,"top_p":9e-1`, `,"top_p":9e-1`},
		{"claude-opus-4-5", `,"reasoning_effort":"xhigh"`, `,"output_config":{"effort":"xhigh"}`},
		{"claude-haiku-4-5-20251001", `,"reasoning_effort":"high"`, ``},
		{"claude-sonnet-5-5", `,"stop":["","END","\u0041"],"stream":true`, `,"stream":true,"stop_sequences":["END","\u0041"]`},
		{"claude-sonnet-5-5", `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"b":1,"a":2}}},"reasoning_effort":"max"`,
			`,"thinking":{"type":"adaptive"},"output_config":{"effort":"max","format":{"type":"json_schema","schema":{"b":1,"a":2}}}`},
		{"claude-sonnet-5-5", tools + `,"tool_choice":"required","reasoning_effort":"low"`, `,"output_config":{"effort":"low"},"tool_choice":{"type":"any"}` + toolsUp},
		{"claude-sonnet-5-5", tools + `,"parallel_tool_calls":false`, `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}` + toolsUp},
		{"claude-sonnet-5-5", tools + `,"parallel_tool_calls":false,"tool_choice":"none"`, `,"tool_choice":{"type":"none"}` + toolsUp},
		{"claude-sonnet-5-5", tools + `,"tool_choice":{"type":"function","function":{"name":"\u0066"}}`, `,"tool_choice":{"type":"tool","name":"\u0066"}` + toolsUp},
		{"claude-sonnet-5-5", `,"tools":[],"tool_choice":5,"parallel_tool_calls":"x"`, ``},
	} {
		b := `{"model":"anthropic/` + c.model + `","max_tokens":5,"max_completion_tokens":6.4e1,"messages":[{"role":"user","content":"go"}]` + c.fields + `}`
		want := `{"model":"` + c.model + `","max_tokens":64` + c.want + `,"messages":[{"role":"user","content":[{"type":"text","text":"go"}]}]}`
		if got := up(t, b, plainEnv()); got != want {
			t.Errorf("%s %s\n got %s\nwant %s", c.model, c.fields, got, want)
		}
	}
}

func TestBreakpoints(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	env := plainEnv()
	env.AutoCache = true
	for _, c := range []struct{ body, want string }{
		{said(`{"role":"system","content":"s"},{"role":"developer","content":"t"},{"role":"user","content":"a"}`),
			head + `,"system":[{"type":"text","text":"s"},{"type":"text","text":"t"` + mark + `}],"messages":[{"role":"user","content":[{"type":"text","text":"a"` + mark + `}]}]}`},
		{body(`,"tools":[{"type":"function","function":{"name":"f"}}]`),
			head + `,"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}` + mark + `}],"messages":[{"role":"user","content":[{"type":"text","text":"go"` + mark + `}]}]}`},
		{said(`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"ttl":"1h","type":"ephemeral"}},{"type":"text","text":"b"}]}`),
			head + `,"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"b"}]}]}`},
	} {
		if got := up(t, c.body, env); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.body, got, c.want)
		}
	}
}

func TestSessionFromCacheKey(t *testing.T) {
	for key, want := range map[string]string{"conversation-42": "conversation-42", `a b\n é%`: "a b%0A %C3%A9%", " x ": "%20x%20", "": ""} {
		r, refused := Parse([]byte(body(`,"prompt_cache_key":"` + key + `"`)))
		if refused != nil {
			t.Fatal(refused)
		}
		env := plainEnv()
		p, _ := Decide(r, env)
		if p.Session != want {
			t.Errorf("%q gives %q, want %q", key, p.Session, want)
		}
		env.SessionHeader = "own"
		if p, _ = Decide(r, env); p.Session != "own" {
			t.Errorf("the header does not win over %q", key)
		}
	}
}
