// Fuzzing compiles all that a test imports with its counters, which takes minutes for the
// clients: build/fuzz.sh leaves this file out, nothing else does.
//go:build !fuzzing

package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/packages/respjson"
)

// faults lists what a decoded answer of the official OpenAI client has that its type
// does not know, what it lacks, and what has another type or constant.
func faults(path string, v reflect.Value) []string {
	switch v.Kind() {
	case reflect.Slice:
		var found []string
		for i := range v.Len() {
			found = append(found, faults(path+"[]", v.Index(i))...)
		}
		return found
	case reflect.Struct:
		if asAny := v.MethodByName("AsAny"); asAny.IsValid() {
			return faults(path, reflect.ValueOf(asAny.Call(nil)[0].Interface()))
		}
		return structFaults(path, v)
	}
	return nil
}

func structFaults(path string, v reflect.Value) []string {
	meta := v.FieldByName("JSON")
	if !meta.IsValid() {
		return nil
	}
	var found []string
	if extra := meta.FieldByName("ExtraFields"); extra.IsValid() {
		for name := range extra.Interface().(map[string]respjson.Field) {
			found = append(found, path+"."+name+" is unknown")
		}
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		about := meta.FieldByName(field.Name)
		if !about.IsValid() {
			continue
		}
		at := path + "." + field.Name
		state := about.Interface().(respjson.Field)
		constant, isConstant := field.Tag.Lookup("default")
		switch {
		case state.Raw() == respjson.Omitted:
			if isConstant || field.Tag.Get("api") == "required" {
				found = append(found, at+" is missing")
			}
		case state.Raw() == respjson.Null:
		case !state.Valid():
			found = append(found, at+" has another type: "+state.Raw())
		case isConstant && v.Field(i).String() != constant:
			found = append(found, at+" is "+state.Raw())
		default:
			found = append(found, faults(at, v.Field(i))...)
		}
	}
	return found
}

// dataOf reads an event stream in the plainest way: the data of each event.
func dataOf(stream []byte) [][]byte {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(stream), "\ufeff"))
	var events [][]byte
	var lines []string
	for line := range strings.Lines(text) {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		switch {
		case line == "\n" && len(lines) > 0:
			events = append(events, []byte(strings.Join(lines, "\n")))
			lines = nil
		case field == "data":
			lines = append(lines, strings.TrimPrefix(value, " "))
		}
	}
	return events
}

// object is a JSON object whose values keep their spelling.
type object map[string]json.RawMessage

// event is an event of the upstream, as far as a fold needs it.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message object `json:"message"`
	Block   object `json:"content_block"`
	Delta   object `json:"delta"`
	Usage   object `json:"usage"`
}

// foldUpstream puts the whole message together that an upstream's stream stands for.
// It knows nothing of the core. whole is false where the input of a call is cut off;
// the call then keeps the input of its start.
func foldUpstream(t *testing.T, stream []byte) (message []byte, whole bool) {
	t.Helper()
	f := fold{t: t, blocks: map[int]*foldedBlock{}}
	for _, data := range dataOf(stream) {
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if e.Type == "message_stop" {
			break
		}
		f.event(&e)
	}
	return f.message()
}

type fold struct {
	t      *testing.T
	head   object
	usage  object
	blocks map[int]*foldedBlock
	order  []int
}

type foldedBlock struct {
	block object
	kind  string
	text  string // of a text block
	input string // of a call, as it came in deltas
}

func (f *fold) event(e *event) {
	switch e.Type {
	case "message_start":
		f.head = e.Message
		f.usage = object{}
		f.overwrite(f.usage, f.value(e.Message["usage"]))
	case "content_block_start":
		b := &foldedBlock{block: e.Block, kind: f.text(e.Block["type"])}
		if b.kind == "text" {
			b.text = f.text(e.Block["text"])
		}
		f.blocks[e.Index] = b
		f.order = append(f.order, e.Index)
	case "content_block_delta":
		b := f.blocks[e.Index]
		switch kind := f.text(e.Delta["type"]); {
		case kind == "text_delta" && b.kind == "text":
			b.text += f.text(e.Delta["text"])
		case kind == "input_json_delta" && b.kind == "tool_use":
			b.input += f.text(e.Delta["partial_json"])
		}
	case "message_delta":
		f.overwrite(f.head, e.Delta)
		f.overwrite(f.usage, e.Usage)
	}
}

// overwrite lays the values that are not null over those of to.
func (f *fold) overwrite(to, from object) {
	for name, value := range from {
		if string(value) != "null" {
			to[name] = value
		}
	}
}

func (f *fold) message() (message []byte, whole bool) {
	whole = true
	content := []byte("[")
	for i, index := range f.order {
		b := f.blocks[index]
		switch {
		case b.kind == "text":
			b.block["text"] = quoted(b.text)
		case b.input != "" && json.Valid([]byte(b.input)):
			b.block["input"] = json.RawMessage(b.input)
		case b.input != "":
			whole = false
		}
		if i > 0 {
			content = append(content, ',')
		}
		content = b.block.append(content)
	}
	f.head["type"] = json.RawMessage(`"message"`)
	f.head["usage"] = f.usage.append(nil)
	f.head["content"] = append(content, ']')
	return f.head.append(nil), whole
}

// append writes the object, every value as spelled: encoding/json would compact it.
func (o object) append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(o)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, quoted(name)...), ':'), o[name]...)
	}
	return append(dst, '}')
}

// quoted is a JSON string without the escapes that HTML would need.
func quoted(s string) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func (f *fold) value(raw json.RawMessage) object {
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		f.t.Fatalf("%v: %s", err, raw)
	}
	return o
}

func (f *fold) text(raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		f.t.Fatalf("%v: %s", err, raw)
	}
	return s
}

// TestFoldedStreamsOfAllKinds does the same for messages that no one has written down:
// seeded random blocks of all kinds, their deltas cut anywhere and mixed as far as the
// upstream may mix them, usage in one or two message_delta events, pings between, and
// the bytes arriving in pieces of any size.
func TestFoldedStreamsOfAllKinds(t *testing.T) {
	const messages = 400
	seen := map[string]int{}
	for seed := range uint64(messages) {
		g := &upstreamAnswer{rnd: rand.New(rand.NewPCG(8, seed)), seen: seen}
		message, stream := g.write()
		name := fmt.Sprintf("seed %d", seed)
		var cuts []int
		for at := 1 + g.rnd.IntN(200); at < len(stream); at += 1 + g.rnd.IntN(200) {
			cuts = append(cuts, at)
		}
		want := answered(t, message)
		got, err := foldChunks(t, name, streamed(stream, cuts))
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, stream)
		}
		if diff := answersDiff(want, got); diff != "" {
			t.Errorf("%s: the stream does not fold into the whole answer: %s\n%s\n%s", name, diff, message, stream)
		}
		m, stopped, err := accumulated(stream)
		if err != nil || !stopped {
			t.Fatalf("%s: the client: stopped %t, error %v\n%s", name, stopped, err, stream)
		}
		if diff := answersDiff(fromMessage(&m), got); diff != "" {
			t.Errorf("%s: the client folds another message: %s\n%s", name, diff, stream)
		}
	}
	for _, kind := range answerKinds {
		if seen[kind] < messages/20 {
			t.Errorf("%s came %d times in %d messages", kind, seen[kind], messages)
		}
	}
}

var (
	answerKinds   = []string{"text", "tool_use", "thinking", "redacted_thinking", "server_tool_use", "future_block", "two deltas", "input in the start"}
	answerReasons = []string{"end_turn", "tool_use", "stop_sequence", "max_tokens", "model_context_window_exceeded", "refusal", "pause_turn", "of the future"}
	answerTexts   = []string{"", "Hello", " ", "\n\n", "\"quoted\" \\ back", "<b>&amp;</b>", "é", "日本", "🎉👩‍💻", "\u0000\u001f\u007f", "\u2028", "a long run of words without much in it"}
	answerInputs  = []string{`{}`, `{"city": "Oslo"}`, `{ "n" : 1.50 , "big" : 12345678901234567890, "e": 1E5 }`, `{"t":"\u00e9\ud83c\udf89 \"q\" \\ <&>","l":[1,[],{}],"z":null,"a":true}`, `{"":{"":""}}`}
)

// upstreamAnswer writes one random message, whole and as a stream.
type upstreamAnswer struct {
	rnd     *rand.Rand
	seen    map[string]int
	content []string
	pending []*pendingBlock // blocks between their start and their stop
	stream  []byte
}

type pendingBlock struct {
	index  int
	text   bool
	deltas []string
}

func (g *upstreamAnswer) write() (message, stream []byte) {
	usage := [...]int{g.rnd.IntN(1000), g.rnd.IntN(1000), g.rnd.IntN(1000)}
	g.event("message_start", `"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":1}}`,
		usage[0], usage[1], usage[2])
	for range g.rnd.IntN(6) {
		g.begin()
		for len(g.pending) > 0 && g.rnd.IntN(4) > 0 {
			g.proceed()
		}
	}
	for len(g.pending) > 0 {
		g.proceed()
	}
	if g.rnd.IntN(3) == 0 {
		g.seen["two deltas"]++
		usage[0] += 5
		g.event("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":%d,"output_tokens":3}`, usage[0])
	}
	reason, output := answerReasons[g.rnd.IntN(len(answerReasons))], 100+g.rnd.IntN(1000)
	thinking := g.rnd.IntN(100)
	g.event("message_delta", `"delta":{"stop_reason":"%s","stop_sequence":null},"usage":{"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}`, reason, output, thinking)
	g.event("message_stop", "")
	return fmt.Appendf(nil, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":"%s","stop_sequence":null,`+
		`"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}}`,
		strings.Join(g.content, ","), reason, usage[0], usage[1], usage[2], output, thinking), g.stream
}

// event writes an event, and now and then a ping before it.
func (g *upstreamAnswer) event(name, format string, args ...any) {
	if g.rnd.IntN(8) == 0 {
		g.stream = append(g.stream, "event: ping\ndata: {\"type\": \"ping\"}\n\n"...)
	}
	g.stream = fmt.Appendf(g.stream, "event: %s\ndata: {\"type\":\"%s\"", name, name)
	if format != "" {
		g.stream = fmt.Appendf(append(g.stream, ','), format, args...)
	}
	g.stream = append(g.stream, strings.Repeat(" ", g.rnd.IntN(2)*3)+"}\n\n"...)
}

// begin starts a block of a random kind and notes the deltas that it will have. Only
// one text is open at a time: text goes to the client as it comes, so that of two open
// texts no order could be kept.
func (g *upstreamAnswer) begin() {
	index := len(g.content)
	kind := answerKinds[g.rnd.IntN(6)]
	for kind == "text" && slices.ContainsFunc(g.pending, func(b *pendingBlock) bool { return b.text }) {
		kind = answerKinds[g.rnd.IntN(6)]
	}
	g.seen[kind]++
	b := &pendingBlock{index: index, text: kind == "text"}
	var whole, start string
	switch kind {
	case "text":
		text := g.text()
		head := g.pieces(text)[0]
		if g.rnd.IntN(4) > 0 {
			head = ""
		}
		whole = `{"type":"text","text":` + string(quoted(text)) + `}`
		start = `{"type":"text","text":` + string(quoted(head)) + `}`
		for _, piece := range g.pieces(text[len(head):]) {
			b.deltas = append(b.deltas, `{"type":"text_delta","text":`+string(quoted(piece))+`}`)
		}
	case "tool_use":
		input := answerInputs[g.rnd.IntN(len(answerInputs))]
		begin := fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"f_%d","input":`, index, index)
		whole, start = begin+input+`}`, begin+`{}}`
		if g.rnd.IntN(5) == 0 {
			start = whole
			g.seen["input in the start"]++
			break
		}
		b.deltas = append(b.deltas, `{"type":"input_json_delta","partial_json":""}`)
		for _, piece := range g.pieces(input) {
			b.deltas = append(b.deltas, `{"type":"input_json_delta","partial_json":`+string(quoted(piece))+`}`)
		}
	case "thinking":
		whole = `{"type":"thinking","thinking":"secret","signature":"c2ln"}`
		start = `{"type":"thinking","thinking":"","signature":""}`
		b.deltas = []string{`{"type":"thinking_delta","thinking":"secret"}`, `{"type":"signature_delta","signature":"c2ln"}`}
	case "redacted_thinking":
		whole = `{"type":"redacted_thinking","data":"c2Vj"}`
		start = whole
	case "server_tool_use":
		whole = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":"x"}}`
		start = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`
		b.deltas = []string{`{"type":"input_json_delta","partial_json":"{\"q\":\"x\"}"}`}
	default:
		whole = `{"type":"future_block","text":"not for the client"}`
		start = whole
	}
	g.content = append(g.content, whole)
	g.pending = append(g.pending, b)
	g.event("content_block_start", `"index":%d,"content_block":%s`, index, start)
}

// proceed brings a random open block one event further.
func (g *upstreamAnswer) proceed() {
	i := g.rnd.IntN(len(g.pending))
	b := g.pending[i]
	if len(b.deltas) == 0 {
		g.pending = slices.Delete(g.pending, i, i+1)
		g.event("content_block_stop", `"index":%d`, b.index)
		return
	}
	g.event("content_block_delta", `"index":%d,"delta":%s`, b.index, b.deltas[0])
	b.deltas = b.deltas[1:]
}

func (g *upstreamAnswer) text() string {
	var text strings.Builder
	for range 1 + g.rnd.IntN(4) {
		text.WriteString(answerTexts[g.rnd.IntN(len(answerTexts))])
	}
	return text.String()
}

// pieces cuts text at random places between characters; at least one piece.
func (g *upstreamAnswer) pieces(text string) []string {
	var pieces []string
	from := 0
	for at := range text {
		if at > from && g.rnd.IntN(5) == 0 {
			pieces = append(pieces, text[from:at])
			from = at
		}
	}
	return append(pieces, text[from:])
}
