package translate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// answerBody is a whole answer of the upstream with the given content blocks.
func answerBody(content string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[` + content + `],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":2,"cache_read_input_tokens":1,"output_tokens":20,"output_tokens_details":{"thinking_tokens":5}}}`
}

func TestAnswerBytes(t *testing.T) {
	r := Reply{Model: "model", ModelJSON: `"mod\u0065l"`}
	got, rec, err := r.Answer([]byte("kept "), []byte(answerBody(`{"type":"thinking","thinking":"secret plan","signature":"c2ln"},{"type":"text","text":"One. "},{"type":"tool_use","id":"toolu_1","name":"get","input":{"a": 1.50}},{"type":"text","text":"Two."},{"type":"tool_use","id":"toolu_2","name":"get","input":{}}`)), testAnswer)
	if err != nil {
		t.Fatal(err)
	}
	want := `kept {"id":"chatcmpl-req_1","object":"chat.completion","created":1793318400,"model":"mod\u0065l","choices":[{"index":0,"message":{"role":"assistant","content":"One. Two.","refusal":null,` +
		`"tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"get","arguments":"{\"a\": 1.50}"}},{"id":"toolu_2","type":"function","function":{"name":"get","arguments":"{}"}}]},` +
		`"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":6,"completion_tokens":20,"total_tokens":26,"prompt_tokens_details":{"cached_tokens":1,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":5}}}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if wantRec := (Record{Model: "model", Status: 200, Outcome: OutcomeOK, FinishReason: "stop", Usage: Usage{6, 1, 2, 20, 5}}); rec != wantRec {
		t.Errorf("record %+v, want %+v", rec, wantRec)
	}
}

func TestAnswerContent(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"none", ``, `"content":null,"refusal":null}`},
		{"only thinking", `{"type":"thinking","thinking":"x"},{"type":"redacted_thinking","data":"x"}`, `"content":null,"refusal":null}`},
		{"an empty text", `{"type":"text","text":""}`, `"content":"","refusal":null}`},
		{"only unknown blocks", `{"type":"server_tool_use","id":"a","name":"b","input":{}},{"type":"future","text":7}`, `"content":null,"refusal":null}`},
		{"spelled as sent", `{"type":"text","text":"\u00e9<&>\/\ud83d\ude00\n","citations":null}`, `"content":"\u00e9<&>\/\ud83d\ude00\n",`},
		{"halves that meet are no pair", `{"type":"text","text":"a\ud83d"},{"type":"text","text":"\ude00b"}`, `"content":"a\ufffd\ufffdb",`},
		{"call without input", `{"type":"tool_use","id":"a","name":"b"},{"type":"tool_use","id":"c","name":"d","input":null}`,
			`"content":null,"refusal":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"b","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"d","arguments":"{}"}}]}`},
		{"arguments as spelled", "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"b\",\"input\":{ \"z\":9007199254740993,\n\"a\":[0.1000,1E+2,null],\"s\":\"<&>\\u003c\\n\\\\ é😀\"}}",
			`"arguments":"{ \"z\":9007199254740993,\n\"a\":[0.1000,1E+2,null],\"s\":\"<&>\\u003c\\n\\\\ é😀\"}"`},
		{"half of a pair in arguments", `{"type":"tool_use","id":"a\ud83d","name":"b","input":{"\ude00":"\ud83d\ude00\ud83d"}}`,
			`{"id":"a\ufffd","type":"function","function":{"name":"b","arguments":"{\"\\ufffd\":\"\\ud83d\\ude00\\ufffd\"}"}}`},
	} {
		r := Reply{Model: "m\n\"x"}
		got, _, err := r.Answer(nil, []byte(answerBody(c.content)), testAnswer)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !strings.Contains(string(got), c.want) || !json.Valid(got) || !strings.Contains(string(got), `"model":"m\n\"x"`) {
			t.Errorf("%s: got %s, want in it %s", c.name, got, c.want)
		}
	}
}

func TestAnswerFinishReasons(t *testing.T) {
	for stop, want := range map[string]string{
		`"end_turn"`: "stop", `"stop_sequence"`: "stop", `"pause_turn"`: "stop", `"future"`: "stop", `null`: "stop",
		`"max_tokens"`: "length", `"model_context_window_exceeded"`: "length", `"tool_use"`: "tool_calls", `"refusal"`: "content_filter",
		`"max_t\u006fkens"`: "length",
	} {
		var r Reply
		got, rec, err := r.Answer(nil, []byte(strings.Replace(answerBody(``), `"end_turn"`, stop, 1)), testAnswer)
		if err != nil || !strings.Contains(string(got), `"finish_reason":"`+want+`"}]`) || rec.FinishReason != want {
			t.Errorf("%s: got %s, %v, want %s", stop, got, err, want)
		}
	}
}

func TestAnswerUsage(t *testing.T) {
	for _, c := range []struct {
		usage string
		want  Usage
	}{
		{`"usage":{"input_tokens":3,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,"output_tokens":20,"output_tokens_details":null,"server_tool_use":null}`, Usage{Prompt: 3, Completion: 20}},
		{`"usage":{}`, Usage{}},
		{`"usage":null`, Usage{}},
		{`"unused":0`, Usage{}},
		{`"usage":{"input_tokens":0,"output_tokens":00000}`, Usage{Prompt: -1}},
		{`"usage":{"input_tokens":1125899906842625,"output_tokens":99999999999999999999}`, Usage{Prompt: tokensMax, Completion: tokensMax}},
		{`"usage":{"input_tokens":-1}`, Usage{Prompt: -1}},
		{`"usage":{"input_tokens":1.0}`, Usage{Prompt: -1}},
		{`"usage":{"input_tokens":1e3}`, Usage{Prompt: -1}},
		{`"usage":{"output_tokens":"7"}`, Usage{Prompt: -1}},
		{`"usage":{"output_tokens_details":7}`, Usage{Prompt: -1}},
		{`"usage":{"output_tokens_details":{"thinking_tokens":true}}`, Usage{Prompt: -1}},
		{`"usage":7`, Usage{Prompt: -1}},
	} {
		var r Reply
		got, rec, err := r.Answer(nil, []byte(`{"type":"message","content":[],"stop_reason":"end_turn",`+c.usage+`}`), testAnswer)
		if refused := c.want.Prompt < 0; refused != (err != nil) || !refused && rec.Usage != c.want {
			t.Errorf("%s: got %s, %+v, %v", c.usage, got, rec, err)
		}
	}
}

// TestNotAMessage: a 200 that is not a message is a 500 (decision 40), and
// nothing is written.
func TestNotAMessage(t *testing.T) {
	good := answerBody(`{"type":"text","text":"Hi"},{"type":"tool_use","id":"a","name":"b","input":{}}`)
	bodies := []string{
		"", " ", "null", "[]", "7", `"x"`, "{}", "<html></html>", good[:len(good)-1], good + "x", good + good, "\uFEFF" + good,
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
		`[` + good + `]`, sseOf(evStart, evLast),
		strings.Replace(good, "Hi", "\xff", 1),
		strings.Replace(good, `"input":{}`, `"input":{"a":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)+`}`, 1),
		strings.Replace(good, `"Hi"`, `"Hi","x":[`+strings.Repeat("1,", answerValuesMax)+`1]`, 1),
	}
	for _, change := range [][2]string{
		{`"type":"message"`, `"type":"completion"`}, {`"type":"message"`, `"type":7`}, {`"type":"message",`, ``},
		{`"content":[`, `"content":{},"x":[`}, {`"content":[`, `"content":"Hi","x":[`}, {`"content":[`, `"contents":[`}, {`"content":[`, `"content":["text",`}, {`"content":[`, `"content":[{"text":"x"},`},
		{`"type":"text"`, `"type":null`}, {`"text":"Hi"`, `"text":null`}, {`"text":"Hi"`, `"txet":"Hi"`}, {`"text":"Hi"`, `"text":["Hi"]`},
		{`"id":"a"`, `"id":7`}, {`"name":"b"`, `"nam":"b"`}, {`"input":{}`, `"input":"{}"`}, {`"input":{}`, `"input":[]`},
		{`"stop_reason":"end_turn"`, `"stop_reason":7`},
	} {
		body := strings.Replace(good, change[0], change[1], 1)
		if body == good || !json.Valid([]byte(body)) {
			t.Fatalf("%v does not fit", change)
		}
		bodies = append(bodies, body)
	}
	for _, body := range bodies {
		r := Reply{Model: "m"}
		dst := []byte("kept")
		got, rec, err := r.Answer(dst, []byte(body), testAnswer)
		if err == nil || *err != *BadUpstream() || string(got) != "kept" || rec != (Record{Model: "m", Status: 500, Outcome: OutcomeUpstreamError}) {
			t.Errorf("%.200q: got %q, %+v, %v", body, got, rec, err)
		}
	}
	var r Reply
	if _, _, err := r.Answer(nil, []byte(good), testAnswer); err != nil {
		t.Errorf("the body that all others were made from: %v", err)
	}
}

// TestFoldedStreamIsTheAnswer: the chunks of a stream, put together as clients
// do, give what the whole answer gives for the same content.
func TestFoldedStreamIsTheAnswer(t *testing.T) {
	r := testReply
	r.IncludeUsage = true
	stream, _ := atCuts(t, r, sseOf(evStart, evText, evHi, strings.Replace(evHi, "Hi", ` \u00e9\ud83d`, 1), evStop0, evTool,
		strings.Replace(evInput, `:1}`, `: `, 1), strings.Replace(evInput, `{\"a\":1}`, `\"\\u00e9\"}`, 1), evStop1,
		strings.NewReplacer(`"index":1`, `"index":2`, `toolu_1`, `toolu_2`).Replace(evTool), `{"type":"content_block_stop","index":2}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"cache_read_input_tokens":4,"output_tokens":9,"output_tokens_details":{"thinking_tokens":3}}}`, evLast), false)
	whole, _, err := r.Answer(nil, []byte(`{"type":"message","content":[{"type":"text","text":"Hi \u00e9\ud83d"},{"type":"tool_use","id":"toolu_1","name":"get","input":{"a": "\u00e9"}},{"type":"tool_use","id":"toolu_2","name":"get","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":9,"output_tokens_details":{"thinking_tokens":3}}}`), testAnswer)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := foldStream(t, stream), compactAnswer(t, whole); got != want {
		t.Errorf("folded\n%s\nwhole\n%s", got, want)
	}
}

type foldedCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type foldedAnswer struct {
	ID      string          `json:"id"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Content string          `json:"content"`
	Calls   []foldedCall    `json:"tool_calls"`
	Finish  string          `json:"finish_reason"`
	Usage   json.RawMessage `json:"usage"`
}

func foldStream(t *testing.T, stream string) string {
	t.Helper()
	var a foldedAnswer
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, streamEnd), "\n\n") {
		if event == "" {
			continue
		}
		var chunk struct {
			ID      string
			Created int64
			Model   string
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Index int
						foldedCall
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
			Usage json.RawMessage
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &chunk); err != nil {
			t.Fatal(err)
		}
		a.ID, a.Created, a.Model, a.Usage = chunk.ID, chunk.Created, chunk.Model, chunk.Usage
		for _, choice := range chunk.Choices {
			a.Content += choice.Delta.Content
			a.Finish += choice.FinishReason
			for _, call := range choice.Delta.ToolCalls {
				if call.Index == len(a.Calls) {
					a.Calls = append(a.Calls, call.foldedCall)
					continue
				}
				a.Calls[call.Index].Function.Arguments += call.Function.Arguments
			}
		}
	}
	out, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func compactAnswer(t *testing.T, body []byte) string {
	t.Helper()
	var whole struct {
		foldedAnswer
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls []foldedCall `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(body, &whole); err != nil || len(whole.Choices) != 1 {
		t.Fatalf("%v: %s", err, body)
	}
	a := whole.foldedAnswer
	a.Content, a.Calls, a.Finish = whole.Choices[0].Message.Content, whole.Choices[0].Message.ToolCalls, whole.Choices[0].FinishReason
	out, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func FuzzAnswer(f *testing.F) {
	for _, content := range []string{``, `{"type":"text","text":"Hi\u00e9\ud83d"},{"type":"tool_use","id":"a","name":"b","input":{"x":[1,"\n"]}}`, `{"type":"future"}`} {
		f.Add([]byte(answerBody(content)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := Reply{Model: "m"}
		got, rec, err := r.Answer(nil, body, testAnswer)
		switch {
		case err != nil:
			if len(got) > 0 || err.Status != 500 || rec.Outcome != OutcomeUpstreamError {
				t.Fatalf("%q: %q, %+v, %v", body, got, rec, err)
			}
		case !json.Valid(got) || rec.Outcome != OutcomeOK || bytes.Contains(got, []byte("\n")):
			t.Fatalf("%q: %q, %+v", body, got, rec)
		}
	})
}
