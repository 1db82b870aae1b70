package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func checkJSON(t *testing.T, raw []byte) {
	t.Helper()
	if !json.Valid(raw) {
		t.Fatalf("not JSON: %s", raw)
	}
}

// checkMessage checks what holds for every answer in both forms.
func checkMessage(t *testing.T, m *message) {
	t.Helper()
	checkJSON(t, m.appendMessage(nil))
	if m.usage.output < m.usage.thinking || m.usage.input < 0 {
		t.Fatalf("odd usage: %+v", m.usage)
	}
	for _, event := range m.events() {
		_, data, ok := bytes.Cut(event, []byte("\ndata: "))
		if !ok || !bytes.HasSuffix(data, []byte("\n\n")) || bytes.Count(data, []byte("\n")) != 2 {
			t.Fatalf("not one event: %q", event)
		}
		checkJSON(t, data)
	}
}

// reply answers a body and returns the whole message.
func replyTo(t *testing.T, cache *promptCache, body string, relax ...Rule) gjson.Result {
	t.Helper()
	r, refusal := read(goodHeader(), []byte(body), relax)
	if refusal != nil {
		t.Fatalf("refused: %v\n%.300s", refusal, body)
	}
	m := answer(r, cache.account(r))
	checkMessage(t, m)
	return gjson.ParseBytes(m.appendMessage(nil))
}

// brief writes an answer in one line: its blocks, then why it stopped.
func brief(m gjson.Result) string {
	var parts []string
	for _, block := range m.Get("content").Array() {
		switch block.Get("type").Str {
		case "text":
			parts = append(parts, fmt.Sprintf("%q", block.Get("text").Str))
		case "thinking":
			parts = append(parts, "thinking")
		case "tool_use":
			parts = append(parts, block.Get("name").Str+block.Get("input").Raw)
		}
	}
	parts = append(parts, m.Get("stop_reason").Str)
	if stop := m.Get("stop_sequence"); stop.Type == gjson.String {
		parts = append(parts, fmt.Sprintf("%q", stop.Str))
	}
	return strings.Join(parts, " ")
}

const weatherTool = `{"name":"get_weather","input_schema":{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["c","f"]}},"required":["city"]}}`
const timeTool = `{"name":"get_time","input_schema":{"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]}}`
const bareTool = `{"name":"list_tickets","input_schema":{"type":"object"}}`

func tools(members ...string) string { return `"tools":[` + strings.Join(members, ",") + `]` }

func says(text string) string { return `"messages":[` + user(`"`+text+`"`) + `]` }

func TestAnswers(t *testing.T) {
	plain, forcing, thinker := "claude-opus-4-8", "claude-opus-4-8", "claude-sonnet-5-5"
	answered := user(`"Use the tool for Oslo"`) + `,` + assistant(`[`+call1+`,`+call2+`]`) + `,` +
		user(`[`+result1+`,{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"two"},`+imageOf("image/png", png1x1)+`]}]`)
	for _, test := range []struct {
		name, model, members, want string
	}{
		{"echo", plain, says("Hi"), `"You wrote: \"Hi\"." end_turn`},
		{"echo of parts", plain, `"messages":[` + user(`[{"type":"text","text":"a"},`+imageOf("image/png", png1x1)+`,{"type":"text","text":"b"}]`) + `]`, `"You wrote: \"a\\nb\". You sent 1 images or documents." end_turn`},
		{"count", plain, says("Count from 3 to 6."), `"3\n4\n5\n6" end_turn`},
		{"count downwards", plain, says("Count from 3 to 1."), `"" end_turn`},
		{"repeat", plain, says("Repeat after me: é\\u2028🙂"), `"é\u2028🙂" end_turn`},
		{"words", plain, says("Write 3 words"), `"a quiet river" end_turn`},
		{"stop sequence", plain, says("Count from 1 to 9") + `,"stop_sequences":["7","\n5"]`, `"1\n2\n3\n4" stop_sequence "\n5"`},
		{"stop sequence that does not come", plain, says("Count from 1 to 3") + `,"stop_sequences":["7"]`, `"1\n2\n3" end_turn`},
		{"limit", plain, says("Write 30 words") + `,"max_tokens":4`, `"a quiet river ca" max_tokens`},
		{"limit inside a character", plain, says("Repeat after me: abc🙂abc") + `,"max_tokens":1`, `"abc" max_tokens`},
		{"limit before the stop sequence", plain, says("Count from 1 to 9") + `,"stop_sequences":["7"],"max_tokens":1`, `"1\n2\n" max_tokens`},
		{"limit of nothing", plain, says("Hi") + `,"max_tokens":0`, `max_tokens`},
		{"thinking by default", thinker, says("Count from 1 to 2"), `thinking "1\n2" end_turn`},
		{"thinking off", thinker, says("Count from 1 to 2") + `,"thinking":{"type":"between_tools"}`, `"1\n2" end_turn`},
		{"thinking asked for", plain, says("Count from 1 to 2") + `,"thinking":{"type":"adaptive"}`, `thinking "1\n2" end_turn`},
		{"thinking left out at a small limit", thinker, says("Count from 1 to 2") + `,"max_tokens":40`, `"1\n2" end_turn`},
		{"thinking with a budget", "claude-haiku-4-5", says("Count from 1 to 2") + `,"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024}`, `thinking "1\n2" end_turn`},
		{"effort", thinker, says("Count from 1 to 2") + `,"output_config":{"effort":"max"}`, `"1\n2" end_turn`},
		{"refusal", thinker, says("Say " + WordRefuse), `"" refusal`},
		{"refusal midway", plain, says("Count from 1 to 2 " + WordRefuseMidway), `"1\n2" refusal`},
		{"context full", plain, says("Count from 1 to 2 " + WordContextFull), `"1\n2" model_context_window_exceeded`},

		{"tool by request", thinker, says("Weather in Oslo? Use the tool.") + `,` + tools(weatherTool, timeTool), `thinking get_weather{"city": "Oslo"} tool_use`},
		{"tool by name", plain, says("get_time please") + `,` + tools(weatherTool, timeTool), `"I'll look that up." get_time{"zone": "example zone"} tool_use`},
		{"no tool wanted", plain, says("Weather in Oslo?") + `,` + tools(weatherTool), `"You wrote: \"Weather in Oslo?\"." end_turn`},
		{"name as a part of a word", plain, says("get_timely") + `,` + tools(timeTool), `"You wrote: \"get_timely\"." end_turn`},
		{"choice none", plain, says("Use the tool") + `,` + tools(weatherTool) + `,"tool_choice":{"type":"none"}`, `"You wrote: \"Use the tool\"." end_turn`},
		{"two cities", thinker, says("Use get_weather for Paris and Oslo") + `,` + tools(weatherTool), `thinking get_weather{"city": "Paris"} get_weather{"city": "Oslo"} tool_use`},
		{"two tools", thinker, says("Use get_time and get_weather for Rome") + `,` + tools(weatherTool, timeTool), `thinking get_time{"zone": "example zone"} get_weather{"city": "Rome"} tool_use`},
		{"one at a time", thinker, says("Use get_weather for Paris and Oslo") + `,` + tools(weatherTool) + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, `thinking get_weather{"city": "Paris"} tool_use`},
		{"thinking between calls", thinker, says("Use get_weather for Paris and Oslo") + `,"max_tokens":400,"output_config":{"effort":"xhigh"},` + tools(weatherTool), `thinking get_weather{"city": "Paris"} thinking get_weather{"city": "Oslo"} tool_use`},
		{"forced", forcing, says("Hi") + `,` + tools(weatherTool) + `,"tool_choice":{"type":"any"}`, `get_weather{"city": "Oslo"} tool_use`},
		{"forced by name", forcing, says("get_weather") + `,` + tools(weatherTool, bareTool) + `,"tool_choice":{"type":"tool","name":"list_tickets"}`, `list_tickets{} tool_use`},
		{"results", plain, `"messages":[` + answered + `],` + tools(weatherTool), `"The tool says: 1; two [image]." end_turn`},
		{"results without tools", plain, `"messages":[` + answered + `]`, `"The tool says: 1; two [image]." end_turn`},
		{"empty result", plain, `"messages":[` + user(`"a"`) + `,` + assistant(`[`+call1+`]`) + `,` + user(`[{"type":"tool_result","tool_use_id":"t1"}]`) + `]`, `"The tool says: nothing." end_turn`},
		{"results and a new text", thinker, `"messages":[` + strings.TrimSuffix(answered, "]}") + `,{"type":"text","text":"Now get_time"}]}],` + tools(weatherTool, timeTool), `thinking get_time{"zone": "example zone"} tool_use`},
		{"several times, first", thinker, says("Use the tool 2 times") + `,` + tools(bareTool), `thinking list_tickets{} tool_use`},
		{"several times, second", thinker, `"messages":[` + user(`"Use the tool 2 times"`) + `,` + assistant(`[`+call1+`]`) + `,` + user(`[`+result1+`]`) + `],` + tools(bareTool), `thinking list_tickets{} tool_use`},
		{"several times, done", thinker, `"messages":[` + user(`"Use the tool 1 times"`) + `,` + assistant(`[`+call1+`]`) + `,` + user(`[`+result1+`]`) + `],` + tools(bareTool), `thinking "The tool says: 1." end_turn`},
		{"forced to go on", forcing, `"messages":[` + user(`"Use the tool"`) + `,` + assistant(`[`+strings.Replace(call1, `"f"`, `"get_weather"`, 1)+`]`) + `,` + user(`[`+result1+`]`) + `],` + tools(weatherTool, bareTool) + `,"tool_choice":{"type":"any"}`, `list_tickets{} tool_use`},
		{"limit inside a call", forcing, says("Hi") + `,"max_tokens":3,` + tools(weatherTool) + `,"tool_choice":{"type":"any"}`, `get_weather{} max_tokens`},
		{"limit before a call", plain, says("Use the tool") + `,"max_tokens":3,` + tools(weatherTool), `"I'll look th" max_tokens`},

		{"structured", plain, says("Paris") + `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false,"properties":{"city":{"type":"string"},"n":{"type":"integer"},"when":{"type":"string","format":"date"},"o":{"type":"string"}},"required":["city","n","when"]}}}`, `"{\"city\": \"Paris\", \"n\": 1, \"when\": \"2026-11-30\"}" end_turn`},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := on(test.model, test.members)
			got := replyTo(t, new(promptCache), body)
			if b := brief(got); b != test.want {
				t.Errorf("got  %s\nwant %s", b, test.want)
			}
			if again := replyTo(t, new(promptCache), body); again.Raw != got.Raw {
				t.Errorf("the same request got another answer:\n%s\n%s", got.Raw, again.Raw)
			}
			limit := gjson.Get(body, "max_tokens").Int()
			if output := got.Get("usage.output_tokens").Int(); output > limit || (got.Get("stop_reason").Str == "max_tokens") != (output == limit) {
				t.Errorf("%d output tokens with a limit of %d and stop_reason %s", output, limit, got.Get("stop_reason").Str)
			}
		})
	}
}

func TestThinkingDisplay(t *testing.T) {
	for _, test := range []struct {
		model, thinking string
		shown           bool
	}{
		{"claude-sonnet-5-5", `{"type":"adaptive"}`, false},
		{"claude-sonnet-5-5", `{"type":"adaptive","display":"summarized"}`, true},
		{"claude-sonnet-4-6", `{"type":"adaptive"}`, true},
		{"claude-sonnet-4-6", `{"type":"adaptive","display":"omitted"}`, false},
	} {
		m := replyTo(t, new(promptCache), on(test.model, says("Hi")+`,"thinking":`+test.thinking))
		block := m.Get("content.0")
		if block.Get("type").Str != "thinking" || block.Get("signature").Str == "" || (block.Get("thinking").Str != "") != test.shown {
			t.Errorf("%s %s: %s", test.model, test.thinking, block.Raw)
		}
		if m.Get("usage.output_tokens_details.thinking_tokens").Int() == 0 {
			t.Errorf("%s %s: no thinking tokens", test.model, test.thinking)
		}
	}
}

// TestFill holds made-up values against the schemas they are made for.
func TestFill(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string"}`:                                        `"example"`,
		`{"type":["null","string"]}`:                               `"example"`,
		`{"type":"string","minLength":9}`:                          `"examplexx"`,
		`{"type":"string","maxLength":2}`:                          `"ex"`,
		`{"type":"null"}`:                                          `null`,
		`{"type":"boolean"}`:                                       `true`,
		`{"type":"integer","minimum":7}`:                           `7`,
		`{"type":"integer","exclusiveMinimum":1}`:                  `2`,
		`{"type":"integer","maximum":-2}`:                          `-2`,
		`{"type":"integer","exclusiveMaximum":1}`:                  `0`,
		`{"type":"integer","multipleOf":5,"minimum":6}`:            `10`,
		`{"type":"number","minimum":0.5,"maximum":0.75}`:           `0.75`,
		`{"type":"number"}`:                                        `1`,
		`{"const":{"a":[1]}}`:                                      `{"a":[1]}`,
		`{"enum":["b","a"]}`:                                       `"b"`,
		`{"anyOf":[{"type":"null"},{"type":"boolean"}]}`:           `true`,
		`{"anyOf":[{"type":"null"}]}`:                              `null`,
		`{"oneOf":[{"type":"integer"}]}`:                           `1`,
		`{"type":"array","items":{"type":"integer"}}`:              `[1]`,
		`{"type":"array","items":{"type":"integer"},"minItems":3}`: `[1, 1, 1]`,
		`{"type":"array","items":{"type":"integer"},"maxItems":0}`: `[]`,
		`{"properties":{"a":{"type":"null"}},"required":["a"]}`:    `{"a": null}`,
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["b","c"]}`:                                           `{"b": 1}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"$defs":{"x":{"type":"string","format":"uuid"}}}`:                    `{"a": "123e4567-e89b-42d3-a456-426614174000"}`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}]}`: `{"a": 1, "b": 1}`,
		`{"type":"object","properties":{"home_city":{"type":"string"}}}`:                                                                                `{"home_city": "Oslo"}`,
		`{}`: `"example"`,
	} {
		n, err := parseJSON([]byte(schema))
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		if got := fill(n, "Oslo"); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", schema, got, want)
		}
	}
}

// TestFillBounds shows that schemas which refer to themselves end.
func TestFillBounds(t *testing.T) {
	wide := `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"x":{"$ref":"#/$defs/a"},"y":{"$ref":"#/$defs/a"}},"required":["x","y"]}}}`
	all := `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`
	for _, schema := range []string{wide, all, `{"$ref":"#"}`, `{"type":"array","items":{"$ref":"#"},"minItems":100000}`} {
		n, err := parseJSON([]byte(schema))
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		got := fill(n, "Oslo")
		checkJSON(t, []byte(got))
		if len(got) > 100_000 {
			t.Errorf("%s: %d bytes", schema, len(got))
		}
	}
}

func TestEmptyInputVaries(t *testing.T) {
	forms := map[string]bool{}
	for _, name := range []string{"abc", "abcd", "abcde"} {
		forms[strings.Join(inputPieces(content{name: name, input: "{}"}), "|")+fmt.Sprint(len(inputPieces(content{name: name, input: "{}"})))] = true
	}
	if len(forms) != 3 {
		t.Errorf("want three ways to stream no input: %v", forms)
	}
}
