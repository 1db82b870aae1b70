// Built on the second opinions, and left out with them: see opinions_test.go.
//go:build !fuzzing

package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ability is a row of the reference's table of models, as the contract's rules need it.
type ability struct {
	name      string
	maxTokens int
	adaptive  bool
	efforts   string // the levels that the model has
	sampling  bool
	forced    bool // takes a forced choice
	prefill   bool
}

const (
	allLevels = "low medium high xhigh max"
	noXHigh   = "low medium high max"
	toHigh    = "low medium high"
)

// abilities are the models of the built-in table. A test holds the list against it.
var abilities = []ability{
	{"claude-fable-5-2", 128_000, true, allLevels, false, false, false},
	{"claude-fable-5-1", 128_000, true, allLevels, false, false, false},
	{"claude-fable-5", 128_000, true, allLevels, false, false, false},
	{"claude-mythos-5-2", 128_000, true, allLevels, false, false, false},
	{"claude-mythos-5-1", 128_000, true, allLevels, false, false, false},
	{"claude-mythos-5", 128_000, true, allLevels, false, false, false},
	{"claude-opus-5-5", 128_000, true, allLevels, false, false, false},
	{"claude-sonnet-5-5", 128_000, true, allLevels, false, false, false},
	{"claude-haiku-5-5", 128_000, true, allLevels, false, true, false},
	{"claude-opus-5", 128_000, true, allLevels, false, true, false},
	{"claude-sonnet-5", 128_000, true, allLevels, false, true, false},
	{"claude-opus-4-8", 128_000, true, allLevels, false, true, false},
	{"claude-opus-4-7", 128_000, true, allLevels, false, true, false},
	{"claude-opus-4-6", 128_000, true, noXHigh, true, true, false},
	{"claude-sonnet-4-6", 128_000, true, noXHigh, true, true, false},
	{"claude-opus-4-5", 64_000, false, toHigh, true, true, true},
	{"claude-sonnet-4-5", 64_000, false, "", true, true, true},
	{"claude-haiku-4-5", 64_000, false, "", true, true, true},
}

// TestAbilitiesAreOfTheTable: a model that the built-in table gains or loses changes
// what the tests of kinds must send.
func TestAbilitiesAreOfTheTable(t *testing.T) {
	source, err := os.ReadFile("models.go")
	if err != nil {
		t.Fatal(err)
	}
	var table, ours []string
	for _, match := range regexp.MustCompile(`"(claude-[a-z0-9-]+)":`).FindAllSubmatch(source, -1) {
		table = append(table, string(match[1]))
	}
	for _, model := range abilities {
		ours = append(ours, model.name)
	}
	slices.Sort(table)
	slices.Sort(ours)
	if len(table) == 0 || !slices.Equal(table, ours) {
		t.Errorf("the built-in table has %q, the tests %q", table, ours)
	}
}

// model is a name that a client may send.
type model struct {
	said string // as the client says it
	up   string
	ability
	known bool
}

// models are the names: each of the table plain or with the prefix, dated ones, and one
// that nobody knows, which counts as one of the newest.
func models() []model {
	var all []model
	for i, a := range abilities {
		m := model{said: a.name, up: a.name, ability: a, known: true}
		if i%2 == 0 {
			m.said = "anthropic/" + a.name
		}
		all = append(all, m)
	}
	dated := func(i int) model {
		name := abilities[i].name + "-20260915"
		return model{said: "anthropic/" + name, up: name, ability: abilities[i], known: true}
	}
	unknown := model{said: "gpt-9", up: "gpt-9", ability: abilities[0]}
	return append(all, dated(7), dated(14), dated(17), unknown)
}

// field is a value of a field that a client may send.
type field struct {
	json string // "" for a field that is not sent
	// What must become of it: depends on the field.
	up     string
	reason string
}

// toolSet is a value of tools.
type toolSet struct {
	json   string
	up     []string // the tools that must go up, without an automatic breakpoint
	first  string   // the name of the first one
	reason string
	marks  []string // its own
}

func (s toolSet) any() bool { return len(s.up) > 0 }

const (
	cityParameters = `{"properties":{"city":{"type":"string","minLength":1,"x-order":1.0}},"required":["city"],"type":"object"}`
	plainStrict    = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	strictSchema   = `{"type":"object","properties":{"n":{"type":["integer","null"]}},"required":["n"],"additionalProperties":false}`
)

// functionTool is a list of one tool.
func functionTool(function, up, reason string) toolSet {
	return toolSet{json: `[{"type":"function","function":{` + function + `}}]`, up: []string{up}, first: "f", reason: reason}
}

// functionSchema is a list of one tool with these parameters.
func functionSchema(parameters, up, reason string) toolSet {
	return functionTool(`"name":"f","parameters":`+parameters, `{"name":"f","input_schema":`+up+`}`, reason)
}

// toolSets are the kinds of tools: the contract's table, decision 18 and 29.
var toolSets = []toolSet{
	{},
	{json: `null`},
	{json: `[]`},
	functionTool(`"name":"f"`, `{"name":"f","input_schema":{"type":"object","properties":{}}}`, ""),
	functionTool(`"name":"f","description":"d \u003c","parameters":null,"strict":null`, `{"name":"f","description":"d \u003c","input_schema":{"type":"object","properties":{}}}`, ""),
	functionTool(`"strict":true,"parameters":`+strictSchema+`,"name":"f"`, `{"name":"f","input_schema":`+strictSchema+`,"strict":true}`, ""),
	functionTool(`"name":"f","strict":false,"parameters":`+cityParameters, `{"name":"f","input_schema":`+cityParameters+`,"strict":false}`, ""),
	functionTool(`"name":"f","strict":true,"parameters":`+cityParameters, `{"name":"f","input_schema":`+cityParameters+`,"strict":true}`, "strict schema"),
	functionSchema(`{}`, `{"type":"object","properties":{}}`, ""),
	functionSchema(`{"properties":{"z":{"maximum":1E+30},"a":{"default":12345678901234567890}}}`, `{"type":"object","properties":{"z":{"maximum":1E+30},"a":{"default":12345678901234567890}}}`, ""),
	functionSchema(`{"type":"array"}`, `{"type":"array"}`, "schema type"),
	functionSchema(`{"type":null}`, `{"type":null}`, "schema type"),
	functionSchema(`{"anyOf":[{"type":"object"}]}`, `{"type":"object","anyOf":[{"type":"object"}]}`, "schema combinator"),
	functionSchema(`{"type":"object","required":["a","a"]}`, `{"type":"object","required":["a","a"]}`, "schema keyword"),
	functionTool(`"name":"a b"`, `{"name":"a b","input_schema":{"type":"object","properties":{}}}`, "tool name").named("a b"),
	{
		json:  `[{"type":"function","function":{"name":"f"},"cache_control":null},{"function":{"name":"g","parameters":` + cityParameters + `},"type":"function"}]`,
		up:    []string{`{"name":"f","input_schema":{"type":"object","properties":{}}}`, `{"name":"g","input_schema":` + cityParameters + `}`},
		first: "f",
	},
	{
		json:   `[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`,
		up:     []string{`{"name":"f","input_schema":{"type":"object","properties":{}}}`, `{"name":"f","input_schema":{"type":"object","properties":{}}}`},
		first:  "f",
		reason: "equal tool names",
	},
	{
		json:  `[{"type":"function","function":{"name":"f"},"cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"function","function":{"name":"g"}}]`,
		up:    []string{`{"name":"f","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral","ttl":"1h"}}`, `{"name":"g","input_schema":{"type":"object","properties":{}}}`},
		first: "f",
		marks: []string{`tools.0 {"type":"ephemeral","ttl":"1h"}`},
	},
	strictTools(20, ""),
	strictTools(21, "many strict tools"),
}

func strictTools(n int, reason string) toolSet {
	s := toolSet{first: "f0", reason: reason}
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"type":"function","function":{"name":"f%d","strict":true,"parameters":%s}}`, i, plainStrict))
		s.up = append(s.up, fmt.Sprintf(`{"name":"f%d","input_schema":%s,"strict":true}`, i, plainStrict))
	}
	s.json = "[" + strings.Join(list, ",") + "]"
	return s
}

func (s toolSet) named(name string) toolSet {
	s.first = name
	return s
}

// Kinds of tool_choice and parallel_tool_calls: decision 19. up is the type that goes
// up, NAME in json stands for the first tool's name. An empty up with a value sent is
// refused where there are tools.
var (
	choices = []field{
		{}, {json: `null`},
		{json: `"auto"`, up: "auto"},
		{json: `"none"`, up: "none"},
		{json: `"required"`, up: "any"},
		{json: `{"type":"function","function":{"name":"NAME"}}`, up: "tool"},
		{json: `{"type":"function","function":{"name":"absent"}}`},
		{json: `{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`},
		{json: `"any"`},
		{json: `7`},
	}
	parallels = []field{{}, {json: `null`}, {json: `true`}, {json: `false`, up: "single"}}
)

// Kinds of the other fields.
var (
	efforts = []field{
		{}, {json: `null`}, {json: `"none"`, up: "low"}, {json: `"minimal"`, up: "low"},
		{json: `"low"`, up: "low"}, {json: `"medium"`, up: "medium"}, {json: `"high"`, up: "high"}, {json: `"xhigh"`, up: "xhigh"}, {json: `"max"`, up: "max"},
	}
	outputFormats = []field{ // up: the schema
		{}, {json: `null`}, {json: `{"type":"text"}`},
		{json: `{"type":"json_schema","json_schema":{"name":"n","description":"d","strict":true,"schema":` + strictSchema + `}}`, up: strictSchema},
		{json: `{"json_schema":{"schema":` + cityParameters + `},"type":"json_schema"}`, up: cityParameters, reason: "output schema"},
	}
	temperatures = []field{ // up: what models with sampling get
		{}, {json: `null`}, {json: `0`, up: `0`}, {json: `0.70`, up: `0.70`}, {json: `1`, up: `1`}, {json: `1.0`, up: `1.0`}, {json: `1.5`, up: `1`}, {json: `2E0`, up: `1`},
		{json: `-1`, up: `-1`, reason: "negative sampling"},
	}
	topPs = []field{{}, {json: `null`}, {json: `0.5`, up: `0.5`}, {json: `0.990`, up: `0.990`}, {json: `1`}, {json: `1.0`}, {json: `-0.5`, up: `-0.5`, reason: "negative sampling"}}
	stops = []field{
		{}, {json: `null`}, {json: `"END"`, up: `["END"]`}, {json: `["a","","\u00e9\n"]`, up: `["a","\u00e9\n"]`}, {json: `[]`}, {json: `""`}, {json: `["",""]`},
		{json: `["1","2","3","4","5"]`, up: `["1","2","3","4","5"]`},
	}
	limits = []field{ // up: the digits
		{}, {json: `"max_tokens":null`}, {json: `"max_tokens":64`, up: `64`}, {json: `"max_completion_tokens":1e3`, up: `1000`}, {json: `"max_tokens":10.0,"max_completion_tokens":null`, up: `10`},
		{json: `"max_tokens":5,"max_completion_tokens":70`, up: `70`}, {json: `"max_tokens":128000`, up: `128000`}, {json: `"max_completion_tokens":99999999999999999999`, up: `99999999999999999999`},
	}
	streams = []field{
		{}, {json: `"stream":false,"stream_options":null`}, {json: `"stream":null`}, {json: `"stream":true`, up: "true"},
		{json: `"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}`, up: "true"}, {json: `"stream":true,"stream_options":{}`, up: "true"},
	}
	ignored = []field{
		{}, {json: `"user":"u","seed":7,"presence_penalty":0.1,"frequency_penalty":0,"store":true,"metadata":{"a":"b"},"service_tier":"auto"`},
		{json: `"n":1,"logprobs":false,"logit_bias":{},"modalities":["text"],"functions":null,"audio":null,"verbosity":"low","future":{"a":1}`},
	}
)

// talk is a conversation with breakpoints of the client's own in some places.
type talk struct {
	name     string
	messages string
	system   int      // system blocks that go up
	newest   string   // the place of the newest block
	marks    []string // of the client's own
	reasons  []string
	prefill  bool
	calls    bool
}

const (
	mark5m  = `{"type":"ephemeral"}`
	mark1h  = `{"ttl":"1h","type":"ephemeral"}`
	up1h    = `{"type":"ephemeral","ttl":"1h"}`
	forever = `{"type":"forever"}`
)

func marked(text, mark string) string {
	return `[{"type":"text","text":"` + text + `","cache_control":` + mark + `}]`
}

const (
	talkSystem = `{"role":"system","content":"S"},`
	talkUser   = `{"role":"user","content":"go"}`
	talkCalls  = `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":""}},{"id":"call_2","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"1"},{"role":"tool","tool_call_id":"call_2","content":`
)

// talks are the places in which a client's breakpoints stand: decisions 28 and 29.
var talks = []talk{
	{name: "user", messages: talkUser, newest: "messages.0.0"},
	{name: "system", messages: talkSystem + talkUser, system: 1, newest: "messages.0.0"},
	{name: "results", messages: talkSystem + talkUser + talkCalls + `"2"}`, system: 1, newest: "messages.2.1", calls: true},
	{name: "results and user", messages: talkUser + talkCalls + `""},{"role":"user","content":"on"}`, newest: "messages.2.2", calls: true},
	{name: "prefill", messages: talkUser + `,{"role":"assistant","content":"{ "}`, newest: "messages.1.0", prefill: true},
	{name: "on a message", messages: `{"role":"user","content":"go","cache_control":{"type":"ephemeral"}}`, newest: "messages.0.0"},
	{name: "own, system", messages: `{"role":"system","content":` + marked("S", mark5m) + `},` + talkUser, system: 1, marks: []string{"system.0 " + mark5m}},
	{name: "own, 1h first", messages: `{"role":"system","content":` + marked("S", mark1h) + `},{"role":"user","content":` + marked("go", mark5m) + `}`, system: 1,
		marks: []string{"system.0 " + up1h, "messages.0.0 " + mark5m}},
	{name: "own, 5m first", messages: `{"role":"developer","content":` + marked("S", mark5m) + `},{"role":"user","content":` + marked("go", mark1h) + `}`, system: 1,
		marks: []string{"system.0 " + mark5m, "messages.0.0 " + up1h}},
	{name: "own, unknown", messages: `{"role":"user","content":` + marked("go", forever) + `}`, marks: []string{"messages.0.0 " + forever}, reasons: []string{"unknown mark"}},
	{name: "own, unknown ttl", messages: `{"role":"user","content":` + marked("go", `{"type":"ephemeral","ttl":"2h"}`) + `}`, marks: []string{`messages.0.0 {"type":"ephemeral","ttl":"2h"}`}, reasons: []string{"unknown mark"}},
	{name: "own, on empty text", messages: `{"role":"user","content":[{"type":"text","text":"","cache_control":{"type":"ephemeral"}},{"type":"text","text":"go"}]}`, marks: []string{}},
	{name: "own, null", messages: `{"role":"user","content":` + marked("go", "null") + `}`, newest: "messages.0.0"},
	{name: "own, everywhere", messages: `{"role":"system","content":` + marked("S", mark5m) + `},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,` + gifData + `"},"cache_control":` + mark5m +
		`},{"type":"file","file":{"file_data":"data:application/pdf;base64,` + pdfData + `"},"cache_control":` + mark5m + `},{"type":"text","text":"go","cache_control":` + mark5m + `}]}`, system: 1,
		marks: []string{"system.0 " + mark5m, "messages.0.0 " + mark5m, "messages.0.1 " + mark5m, "messages.0.2 " + mark5m}},
	{name: "own, in a result", messages: talkUser + talkCalls + marked("2", mark5m) + `}`, marks: []string{"messages.2.1.0 " + mark5m}, calls: true},
	{name: "own, five", messages: `{"role":"system","content":` + marked("S", mark5m) + `},{"role":"user","content":` + marked("go", mark5m) + `},{"role":"assistant","content":` + marked("A", mark5m) +
		`},{"role":"user","content":` + marked("a", mark5m) + `},{"role":"user","content":` + marked("b", mark5m) + `}`, system: 1,
		marks: []string{"system.0 " + mark5m, "messages.0.0 " + mark5m, "messages.1.0 " + mark5m, "messages.2.0 " + mark5m, "messages.2.1 " + mark5m}},
}

// asked is one combination.
type asked struct {
	model
	tools                                                                    toolSet
	choice, parallel, effort, format, temperature, topP, stop, limit, stream field
	ignored                                                                  field
	talk                                                                     talk
	cacheOff                                                                 bool
	order                                                                    *rand.Rand // of the fields in the body, nil for the usual one
}

func (a *asked) json() string {
	fields := []string{`"model":` + string(quoted(a.said)), `"messages":[` + a.talk.messages + `]`}
	choice := a.choice.json
	if choice != "" {
		choice = strings.ReplaceAll(choice, "NAME", a.tools.first)
	}
	for _, f := range []struct{ name, value string }{
		{"tools", a.tools.json}, {"tool_choice", choice}, {"parallel_tool_calls", a.parallel.json},
		{"reasoning_effort", a.effort.json}, {"response_format", a.format.json},
		{"temperature", a.temperature.json}, {"top_p", a.topP.json}, {"stop", a.stop.json},
	} {
		if f.value != "" {
			fields = append(fields, `"`+f.name+`":`+f.value)
		}
	}
	for _, f := range []string{a.limit.json, a.stream.json, a.ignored.json} {
		if f != "" {
			fields = append(fields, f)
		}
	}
	if a.order != nil {
		a.order.Shuffle(len(fields), func(i, k int) { fields[i], fields[k] = fields[k], fields[i] })
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// forced tells whether the model must call a tool.
func (a *asked) forced() bool {
	return a.tools.any() && (a.choice.up == "any" || a.choice.up == "tool")
}

// refused is how the refusal begins, "" for none.
func (a *asked) refused() string {
	if a.tools.any() && a.choice.json != "" && a.choice.json != "null" && a.choice.up == "" {
		return "tool_choice: "
	}
	return ""
}

// thinks tells whether thinking must be asked for: the contract's table of efforts.
func (a *asked) thinks() bool {
	plain := a.effort.json == `"none"` || a.effort.json == `"minimal"`
	return a.effort.up != "" && !plain && a.adaptive && !a.forced()
}

// fields are the top-level fields that must go up, messages, tools and system left out.
func (a *asked) fields() map[string]string {
	f := map[string]string{"model": string(quoted(a.up)), "max_tokens": a.limit.up}
	if a.limit.up == "" {
		f["max_tokens"] = strconv.Itoa(min(32_000, a.maxTokens))
	}
	if a.stream.up != "" {
		f["stream"] = "true"
	}
	var config []string
	if a.effort.up != "" && a.efforts != "" {
		config = append(config, `"effort":"`+a.effort.up+`"`)
	}
	if a.format.up != "" {
		config = append(config, `"format":{"type":"json_schema","schema":`+a.format.up+`}`)
	}
	if config != nil {
		f["output_config"] = "{" + strings.Join(config, ",") + "}"
	}
	if a.thinks() {
		f["thinking"] = `{"type":"adaptive"}`
	}
	if a.sampling && !a.thinks() {
		if a.temperature.up != "" {
			f["temperature"] = a.temperature.up
		} else if a.topP.up != "" {
			f["top_p"] = a.topP.up
		}
	}
	if a.stop.up != "" {
		f["stop_sequences"] = a.stop.up
	}
	if choice := a.choiceUp(); choice != "" {
		f["tool_choice"] = choice
	}
	return f
}

// choiceUp is the tool_choice that must go up: the contract's table, decision 19.
func (a *asked) choiceUp() string {
	kind := a.choice.up
	single := a.parallel.up != "" && kind != "none"
	if kind == "" && single {
		kind = "auto"
	}
	if kind == "" || !a.tools.any() {
		return ""
	}
	choice := `{"type":"` + kind + `"`
	if kind == "tool" {
		choice += `,"name":` + string(quoted(a.tools.first))
	}
	if single {
		choice += `,"disable_parallel_tool_use":true`
	}
	return choice + "}"
}

// marks are the breakpoints that must go up.
func (a *asked) marks() []string {
	own := slices.Concat(a.tools.marks, a.talk.marks)
	if len(own) > 0 || a.talk.marks != nil || a.cacheOff {
		return own
	}
	switch {
	case a.talk.system > 0:
		own = append(own, fmt.Sprintf("system.%d", a.talk.system-1)+automaticMark)
	case a.tools.any():
		own = append(own, fmt.Sprintf("tools.%d", len(a.tools.up)-1)+automaticMark)
	}
	return append(own, a.talk.newest+automaticMark)
}

// reasons are why the upstream refuses it.
func (a *asked) reasons() []string {
	why := slices.Clone(a.talk.reasons)
	because := func(is bool, reason string) {
		if is && reason != "" {
			why = append(why, reason)
		}
	}
	because(!a.known, "unknown model")
	because(a.tools.any(), a.tools.reason)
	because(a.format.up != "", a.format.reason)
	because(a.effort.up != "" && a.efforts != "" && !slices.Contains(strings.Fields(a.efforts), a.effort.up), "lacking level")
	because(a.forced() && !a.ability.forced, "forced choice")
	fields := a.fields()
	because(fields["temperature"] != "", a.temperature.reason)
	because(fields["top_p"] != "", a.topP.reason)
	limit, err := strconv.Atoi(fields["max_tokens"])
	because(err != nil || limit > a.maxTokens, "too many tokens")
	because(a.talk.prefill && !a.ability.prefill, "prefill")
	because(a.talk.prefill && a.format.up != "", "prefill with a format")
	marks := a.marks()
	because(len(marks) > 4, "five marks")
	short := slices.IndexFunc(marks, func(m string) bool { return strings.HasSuffix(m, mark5m) })
	because(short >= 0 && slices.ContainsFunc(marks[short:], func(m string) bool { return strings.HasSuffix(m, up1h) }), "short mark first")
	return why
}

// combinations holds combinations against the core and the stand-in.
type combinations struct {
	*filter
	*ledger
	stopper
}

func (c *combinations) try(t *testing.T, a asked) {
	t.Helper()
	body := a.json()
	c.autoCache = !a.cacheOff
	out, refusal := c.up(body)
	if want := a.refused(); want != "" {
		c.note(t, refusedFor(t, body, refusal, want))
		return
	}
	if refusal != nil {
		t.Errorf("refused: %s:\n%s", refusal.Message, body)
		c.note(t, false)
		return
	}
	up := readUp(t, out)
	tools := make([]string, len(up.Tools))
	for i, tool := range up.Tools {
		tools[i] = strings.Replace(string(tool), `,"cache_control":`+mark5m, "", 1)
	}
	c.note(t, same(t, "tools", tools, append([]string{}, a.tools.up...), body) &&
		same(t, "breakpoints", up.marks(t), a.marks(), body) &&
		sameFields(t, out, a.fields(), body) &&
		c.hold(t, out, a.reasons()))
}

// sameFields compares the top-level fields as spelled.
func sameFields(t *testing.T, out []byte, want map[string]string, body string) bool {
	t.Helper()
	var got map[string]json.RawMessage
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	spelled := map[string]string{}
	for name, value := range got {
		if name != "messages" && name != "tools" && name != "system" {
			spelled[name] = string(bytes.TrimSpace(value))
		}
	}
	if reflect.DeepEqual(spelled, want) {
		return true
	}
	t.Errorf("fields:\n  got  %v\n  want %v\n%s", spelled, want, body)
	return false
}

func pick[T any](rnd *rand.Rand, kinds []T) T { return kinds[rnd.IntN(len(kinds))] }

// usual is a combination of the plainest values.
func usual(m model) asked { return asked{model: m, talk: talks[1], limit: limits[2]} }

// TestKindsOfTools: every model with every tool_choice, parallel_tool_calls and
// reasoning_effort, without tools, with one, and with two; every kind of tools with
// every choice.
func TestKindsOfTools(t *testing.T) {
	c := &combinations{filter: newFilter(), ledger: newLedger("unknown model", "lacking level", "forced choice",
		"equal tool names", "tool name", "schema type", "schema combinator", "schema keyword", "strict schema", "many strict tools")}
	few := []toolSet{toolSets[0], toolSets[3], toolSets[15]}
	for _, m := range models() {
		for _, choice := range choices {
			for _, parallel := range parallels {
				for _, effort := range efforts {
					for _, tools := range few {
						a := usual(m)
						a.tools, a.choice, a.parallel, a.effort = tools, choice, parallel, effort
						c.try(t, a)
					}
				}
			}
		}
	}
	for _, m := range []model{models()[0], models()[8], models()[16]} {
		for _, tools := range toolSets {
			for _, choice := range choices {
				for _, parallel := range parallels {
					a := usual(m)
					a.tools, a.choice, a.parallel, a.talk = tools, choice, parallel, talks[0]
					c.try(t, a)
				}
			}
		}
	}
	c.check(t, 10_000)
}

// TestKindsOfReasoningAndSampling: every model with every effort, temperature and top_p,
// with a forced choice and without.
func TestKindsOfReasoningAndSampling(t *testing.T) {
	c := &combinations{filter: newFilter(), ledger: newLedger("unknown model", "lacking level", "forced choice", "negative sampling")}
	for _, m := range models() {
		for _, effort := range efforts {
			for _, temperature := range temperatures {
				for _, topP := range topPs {
					a := usual(m)
					a.effort, a.temperature, a.topP = effort, temperature, topP
					c.try(t, a)
				}
				a := usual(m)
				a.tools, a.choice = toolSets[3], choices[4]
				a.effort, a.temperature = effort, temperature
				c.try(t, a)
			}
		}
	}
	c.check(t, 8000)
}

// TestKindsOfOutput: every model with every limit, format and stop, streamed or not;
// every limit where a conversation ends with the assistant.
func TestKindsOfOutput(t *testing.T) {
	c := &combinations{filter: newFilter(), ledger: newLedger("unknown model", "too many tokens", "output schema", "prefill", "prefill with a format")}
	for _, m := range models() {
		for _, format := range outputFormats {
			for _, limit := range limits {
				for _, stop := range stops {
					a := usual(m)
					a.format, a.limit, a.stop = format, limit, stop
					a.stream = streams[c.checked%len(streams)]
					c.try(t, a)
				}
			}
			for _, stream := range streams {
				a := usual(m)
				a.format, a.stream, a.talk = format, stream, talks[4]
				c.try(t, a)
			}
		}
	}
	c.check(t, 4000)
}

// TestKindsOfBreakpoints: every place of the client's own breakpoints with every kind of
// tools, automatic caching on and off.
func TestKindsOfBreakpoints(t *testing.T) {
	c := &combinations{filter: newFilter(), ledger: newLedger("five marks", "short mark first", "unknown mark", "prefill",
		"equal tool names", "tool name", "schema type", "schema combinator", "schema keyword", "strict schema", "many strict tools")}
	for _, m := range []model{models()[7], models()[17]} {
		for _, talk := range talks {
			for _, tools := range toolSets {
				for _, off := range []bool{false, true} {
					a := usual(m)
					a.talk, a.tools, a.cacheOff = talk, tools, off
					c.try(t, a)
				}
			}
		}
	}
	c.check(t, 500)
}

// TestKindsAtRandom mixes everything, the fields of the body in any order.
func TestKindsAtRandom(t *testing.T) {
	c := &combinations{filter: newFilter(), ledger: newLedger("unknown model", "lacking level", "forced choice",
		"equal tool names", "tool name", "schema type", "schema combinator", "schema keyword", "strict schema", "many strict tools", "output schema",
		"too many tokens", "negative sampling", "five marks", "short mark first", "unknown mark", "prefill", "prefill with a format")}
	all := models()
	for seed := range uint64(8000) {
		rnd := rand.New(rand.NewPCG(4, seed))
		a := asked{
			model: pick(rnd, all), tools: pick(rnd, toolSets), choice: pick(rnd, choices), parallel: pick(rnd, parallels),
			effort: pick(rnd, efforts), format: pick(rnd, outputFormats), temperature: pick(rnd, temperatures), topP: pick(rnd, topPs),
			stop: pick(rnd, stops), limit: pick(rnd, limits), stream: pick(rnd, streams), ignored: pick(rnd, ignored),
			talk: pick(rnd, talks), cacheOff: rnd.IntN(2) == 0, order: rnd,
		}
		if rnd.IntN(3) > 0 { // mostly what the upstream takes
			a.tools, a.choice, a.talk = toolSets[rnd.IntN(7)], choices[rnd.IntN(4)], talks[rnd.IntN(4)]
			a.format, a.limit = outputFormats[rnd.IntN(4)], limits[rnd.IntN(6)]
		}
		c.try(t, a)
	}
	c.check(t, 3000)
}
