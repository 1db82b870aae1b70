package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"ezat.io/chat-completions/translate/internal/jsontext"
)

var (
	testAnswer = Answer{RequestID: "req_1", Created: 1793318400}
	testReply  = Reply{Model: "m", ModelJSON: `"m"`, Stream: true}
)

// Events of the upstream, in its own spelling.
const (
	evStart    = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`
	evText     = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	evHi       = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`
	evStop0    = `{"type":"content_block_stop","index":0}`
	evTool     = `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"get","input":{}}}`
	evInput    = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`
	evNoInput  = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`
	evStop1    = `{"type":"content_block_stop","index":1}`
	evEnd      = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`
	evEndTool  = `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":7}}`
	evLast     = `{"type":"message_stop"}`
	evPing     = `{"type": "ping"}`
	evOverload = `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"req_2"}`
)

// sseOf spells events as the upstream does.
func sseOf(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		name := "other"
		if _, rest, ok := strings.Cut(e, `"type":"`); ok {
			name, _, _ = strings.Cut(rest, `"`)
		}
		b.WriteString("event: " + name + "\ndata: " + e + "\n\n")
	}
	return b.String()
}

// playStream feeds a stream in pieces whose sizes cuts says, then says the end
// twice.
func playStream(r Reply, stream string, holding bool, cuts func(left int) int) (string, *Stream) {
	s := NewStream(r, testAnswer, holding)
	var out []byte
	left := []byte(stream)
	for {
		n := min(cuts(len(left)), len(left))
		piece := bytes.Clone(left[:n])
		left = left[n:]
		out = s.Feed(out, piece, len(left) == 0)
		for i := range piece {
			piece[i] = 'x' // nothing may point into a piece later
		}
		if len(left) == 0 {
			break
		}
	}
	return string(s.Feed(out, nil, true)), s
}

func uncut(left int) int { return left }

// atCuts plays a stream whole, byte by byte and at random cuts, demands the same
// bytes and the same state each time, and checks the rules that every stream
// keeps.
func atCuts(t testing.TB, r Reply, stream string, holding bool) (string, *Stream) {
	t.Helper()
	out, s := playStream(r, stream, holding, uncut)
	check := func(how string, cuts func(int) int) {
		again, other := playStream(r, stream, holding, cuts)
		if again != out || other.Record() != s.Record() || other.Began() != s.Began() || other.Done() != s.Done() ||
			fmt.Sprint(other.Early()) != fmt.Sprint(s.Early()) {
			t.Fatalf("%s: %q\ngave %q %+v\nwhole %q %+v", how, stream, again, other.Record(), out, s.Record())
		}
	}
	check("byte by byte", func(int) int { return 1 })
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		check(fmt.Sprintf("random cuts, seed %d", seed), func(int) int { return rnd.IntN(200) })
	}
	checkClientStream(t, r, out, s)
	return out, s
}

// checkClientStream holds the client's bytes against what every stream keeps.
func checkClientStream(t testing.TB, r Reply, out string, s *Stream) {
	t.Helper()
	if !s.Done() {
		t.Fatalf("not done at the end of the stream: %q", out)
	}
	if s.Early() != nil {
		if out != "" {
			t.Fatalf("an early error, and %q", out)
		}
		return
	}
	if !strings.HasSuffix(out, "\n\n"+streamEnd) || strings.Count(out, streamEnd) != 1 {
		t.Fatalf("[DONE] is not once at the end: %q", out)
	}
	out = strings.TrimSuffix(out, streamEnd)
	chunks := 0
	for out != "" {
		if rest, ok := strings.CutPrefix(out, pingLine); ok {
			out = rest
			continue
		}
		data, rest, ok := strings.Cut(out, "\n\n")
		data, isData := strings.CutPrefix(data, "data: ")
		if !ok || !isData || strings.ContainsAny(data, "\r\n") {
			t.Fatalf("not an event: %q", out)
		}
		var chunk map[string]json.RawMessage
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		out = rest
		if _, failed := chunk["error"]; failed {
			if len(chunk) != 1 || out != "" {
				t.Fatalf("error event %s before %q", data, out)
			}
			break
		}
		checkChunk(t, r, chunk, data, chunks == 0)
		chunks++
	}
}

func checkChunk(t testing.TB, r Reply, chunk map[string]json.RawMessage, data string, first bool) {
	t.Helper()
	want := map[string]string{
		"id":      `"chatcmpl-` + testAnswer.RequestID + `"`,
		"object":  `"chat.completion.chunk"`,
		"created": strconv.FormatInt(testAnswer.Created, 10),
		"model":   r.ModelJSON,
	}
	for key, value := range want {
		if string(chunk[key]) != value {
			t.Fatalf("%s is not %s: %s", key, value, data)
		}
	}
	usage, has := chunk["usage"]
	if has != r.IncludeUsage || string(chunk["choices"]) != "[]" && has && string(usage) != "null" {
		t.Fatalf("usage out of place: %s", data)
	}
	if role := strings.Contains(data, `"delta":{"role":"assistant","content":""}`); role != first {
		t.Fatalf("role out of place: %s", data)
	}
}

// reduced shows what changes from chunk to chunk: the delta and what follows it,
// usage, errors, pings.
func reduced(out string) []string {
	out = strings.ReplaceAll(out, pingLine, "data: ping\n\n")
	var list []string
	for _, event := range strings.SplitAfter(out, "\n\n") {
		event = strings.TrimSuffix(strings.TrimPrefix(event, "data: "), "\n\n")
		if event == "" {
			continue
		}
		if _, delta, ok := strings.Cut(event, `"choices":[{"index":0,"delta":`); ok {
			event = strings.Replace(delta, `,"logprobs":null,"finish_reason":null}]}`, "", 1)
			if before, reason, ok := strings.Cut(event, `,"logprobs":null,"finish_reason":`); ok {
				event = before + " " + strings.TrimSuffix(reason, "}]}")
			}
		} else if _, usage, ok := strings.Cut(event, `"choices":[],`); ok {
			event = usage
		}
		list = append(list, event)
	}
	return list
}

const (
	roleChunk   = `{"role":"assistant","content":""}`
	brokenEvent = `{"error":{"message":"The upstream's answer could not be read.","type":"server_error","param":null,"code":null}}`
	cutEvent    = `{"error":{"message":"The upstream broke the answer off.","type":"server_error","param":null,"code":null}}`
)

func contentChunk(text string) string { return `{"content":"` + text + `"}` }
func callChunk(index int, id, name string) string {
	return fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, index, id, name)
}
func argumentsChunk(index int, inner string) string {
	return fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":"%s"}}]}`, index, inner)
}
func finishChunk(reason string) string { return `{} "` + reason + `"` }

func TestStreamBytes(t *testing.T) {
	r := testReply
	r.ModelJSON = `"mod\u0065l"`
	r.IncludeUsage = true
	got, _ := atCuts(t, r, sseOf(evStart, evText, evPing, evHi, evStop0, evTool, evNoInput, evInput, evStop1, evEndTool, evLast), false)
	front := `data: {"id":"chatcmpl-req_1","object":"chat.completion.chunk","created":1793318400,"model":"mod\u0065l","choices":[`
	back := `,"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	want := front + `{"index":0,"delta":{"role":"assistant","content":""}` + back +
		": ping\n" +
		front + `{"index":0,"delta":{"content":"Hi"}` + back +
		front + `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"toolu_1","type":"function","function":{"name":"get","arguments":""}}]}` + back +
		front + `{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}` + back +
		front + `{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}` + "\n\n" +
		front + `],"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n\n" +
		"data: [DONE]\n\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"text", []string{evStart, evText, evHi, evHi, evStop0, evEnd, evLast},
			[]string{roleChunk, contentChunk("Hi"), contentChunk("Hi"), finishChunk("stop"), "[DONE]"}},
		{"nothing said", []string{evStart, evEnd, evLast}, []string{roleChunk, finishChunk("stop"), "[DONE]"}},
		{"no reason given", []string{evStart, evLast}, []string{roleChunk, finishChunk("stop"), "[DONE]"}},
		{"an empty delta is none", []string{evStart, evText, strings.Replace(evHi, "Hi", "", 1), evStop0, evEnd, evLast},
			[]string{roleChunk, finishChunk("stop"), "[DONE]"}},
		{"text in the block's start", []string{evStart, strings.Replace(evText, `""`, `"He"`, 1), evHi, evStop0, evEnd, evLast},
			[]string{roleChunk, contentChunk("He"), contentChunk("Hi"), finishChunk("stop"), "[DONE]"}},
		{"escapes as spelled", []string{evStart, evText, strings.Replace(evHi, "Hi", `\u00e9<&>\/\ud83d\ude00`+"\u2028😀", 1), evStop0, evEnd, evLast},
			[]string{roleChunk, contentChunk(`\u00e9<&>\/\ud83d\ude00` + "\u2028😀"), finishChunk("stop"), "[DONE]"}},
		{"half of a surrogate pair", []string{evStart, evText, strings.Replace(evHi, "Hi", `a\ud83d`, 1), strings.Replace(evHi, "Hi", `\ude00b`, 1), evStop0, evEnd, evLast},
			[]string{roleChunk, contentChunk(`a\ufffd`), contentChunk(`\ufffdb`), finishChunk("stop"), "[DONE]"}},
		{"call without input", []string{evStart, evTool, evStop1, evEndTool, evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, "{}"), finishChunk("tool_calls"), "[DONE]"}},
		{"call with an empty delta only", []string{evStart, evTool, evNoInput, evStop1, evEndTool, evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, "{}"), finishChunk("tool_calls"), "[DONE]"}},
		{"call whose block is never closed", []string{evStart, evTool, evEndTool, evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, "{}"), finishChunk("tool_calls"), "[DONE]"}},
		{"input in the block's start", []string{evStart, strings.Replace(evTool, `{}`, `{"b": "\u00e9\"", "n":1.50}`, 1), evStop1, evEndTool, evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, `{\"b\": \"\\u00e9\\\"\", \"n\":1.50}`), finishChunk("tool_calls"), "[DONE]"}},
		{"input in the block's start and deltas", []string{evStart, strings.Replace(evTool, `{}`, `{"b":2}`, 1), evNoInput, evInput, evStop1, evEndTool, evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, `{\"a\":1}`), finishChunk("tool_calls"), "[DONE]"}},
		{"no input in the block's start", []string{evStart, strings.Replace(evTool, `,"input":{}`, ``, 1), evInput, evStop1, evEndTool, evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, `{\"a\":1}`), finishChunk("tool_calls"), "[DONE]"}},
		{"cut arguments stay cut", []string{evStart, evTool, strings.Replace(evInput, `:1}`, `:`, 1), evStop1, strings.Replace(evEnd, "end_turn", "max_tokens", 1), evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, `{\"a\":`), finishChunk("length"), "[DONE]"}},
		{"thinking is not shown", []string{evStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"secret"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"secret"}}`,
			evStop0, evTool, evInput, evStop1, evEndTool, evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, `{\"a\":1}`), finishChunk("tool_calls"), "[DONE]"}},
		{"unknown blocks, whatever is in them", []string{evStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"x","name":"y","input":{"q":1}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
			evHi, evStop0, evEnd, evLast},
			[]string{roleChunk, finishChunk("stop"), "[DONE]"}},
		{"deltas of another kind than their block", []string{evStart, evText, evTool,
			strings.Replace(evInput, `"index":1`, `"index":0`, 1), strings.Replace(evHi, `"index":0`, `"index":1`, 1), evStop0, evStop1, evEnd, evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, `{}`), finishChunk("stop"), "[DONE]"}},
		{"unknown deltas and events", []string{evStart, evText,
			`{"type":"content_block_delta","index":9,"delta":{"type":"citations_delta","citation":{}}}`,
			`{"type":"content_block_delta","delta":{"type":"future_delta"}}`,
			`{"type":"message_annotation","index":0}`, `{"type":7}`, `{}`, evHi, evStop0, evStop1, evEnd, evLast},
			[]string{roleChunk, contentChunk("Hi"), finishChunk("stop"), "[DONE]"}},
		{"blocks open side by side", []string{evStart, evText, evTool,
			strings.Replace(strings.Replace(evTool, `"index":1`, `"index":7`, 1), "toolu_1", "toolu_2", 1),
			evInput, evHi, strings.Replace(evInput, `"index":1`, `"index":7`, 1), evInput, evStop1, evHi,
			`{"type":"content_block_stop","index":7}`, evStop0, evEndTool, evLast},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), callChunk(1, "toolu_2", "get"), argumentsChunk(0, `{\"a\":1}`), contentChunk("Hi"),
				argumentsChunk(1, `{\"a\":1}`), argumentsChunk(0, `{\"a\":1}`), contentChunk("Hi"), finishChunk("tool_calls"), "[DONE]"}},
		{"an index that is used again", []string{evStart, evText, evHi, evStop0, evText, evHi, evStop0, evEnd, evLast},
			[]string{roleChunk, contentChunk("Hi"), contentChunk("Hi"), finishChunk("stop"), "[DONE]"}},
		{"pings", []string{evPing, evStart, `{"type":"ping"}`, evText, evPing, evHi, `{"type":"ping","x":1}`, evStop0, evEnd, evPing, evLast, evPing},
			[]string{"ping", roleChunk, "ping", "ping", contentChunk("Hi"), "ping", "ping", finishChunk("stop"), "[DONE]"}},
		{"two message deltas", []string{evStart, evEndTool, strings.Replace(evEnd, `"end_turn"`, `null`, 1), evLast},
			[]string{roleChunk, finishChunk("tool_calls"), "[DONE]"}},
		{"nothing behind [DONE]", []string{evStart, evEnd, evLast, evText, evHi, evOverload, evStart, evLast, "junk"},
			[]string{roleChunk, finishChunk("stop"), "[DONE]"}},

		{"error in the middle", []string{evStart, evText, evHi, evOverload, evHi, evLast},
			[]string{roleChunk, contentChunk("Hi"), `{"error":{"message":"Overloaded","type":"server_error","param":null,"code":"overloaded"}}`, "[DONE]"}},
		{"error of an unknown type", []string{evStart, `{"type":"error","error":{"type":"future_error","message":"Oh"}}`},
			[]string{roleChunk, `{"error":{"message":"Oh","type":"server_error","param":null,"code":null}}`, "[DONE]"}},
		{"error without an error", []string{evStart, `{"type":"error"}`},
			[]string{roleChunk, `{"error":{"message":"The upstream failed to answer the request.","type":"server_error","param":null,"code":null}}`, "[DONE]"}},
		{"no end", []string{evStart, evTool, strings.Replace(evInput, `:1}`, `:`, 1)},
			[]string{roleChunk, callChunk(0, "toolu_1", "get"), argumentsChunk(0, `{\"a\":`), cutEvent, "[DONE]"}},
		{"no end behind the message's delta", []string{evStart, evText, evHi, evStop0, evEnd},
			[]string{roleChunk, contentChunk("Hi"), cutEvent, "[DONE]"}},
		{"nothing at all", nil, []string{cutEvent, "[DONE]"}},
		{"not JSON", []string{evStart, evText, evHi, "{"}, []string{roleChunk, contentChunk("Hi"), brokenEvent, "[DONE]"}},
		{"not an object", []string{evStart, "[1]"}, []string{roleChunk, brokenEvent, "[DONE]"}},
		{"not UTF-8", []string{evStart, evText, strings.Replace(evHi, "Hi", "\xff", 1)}, []string{roleChunk, brokenEvent, "[DONE]"}},
		{"too deep", []string{evStart, `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`}, []string{roleChunk, brokenEvent, "[DONE]"}},
		{"a second start", []string{evStart, evText, evHi, evStart}, []string{roleChunk, contentChunk("Hi"), brokenEvent, "[DONE]"}},
		{"a block before the start", []string{evText, evStart}, []string{brokenEvent, "[DONE]"}},
		{"a delta before the start", []string{evPing, evHi}, []string{"ping", brokenEvent, "[DONE]"}},
		{"a block's stop before the start", []string{evStop0}, []string{brokenEvent, "[DONE]"}},
		{"the message's delta before the start", []string{evEnd}, []string{brokenEvent, "[DONE]"}},
		{"the end before the start", []string{evLast}, []string{brokenEvent, "[DONE]"}},
		{"text for a block that is not open", []string{evStart, evText, evStop0, evHi}, []string{roleChunk, brokenEvent, "[DONE]"}},
		{"arguments for a block that is not open", []string{evStart, evInput}, []string{roleChunk, brokenEvent, "[DONE]"}},
		{"a block opened twice", []string{evStart, evText, evText}, []string{roleChunk, brokenEvent, "[DONE]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, _ := atCuts(t, testReply, sseOf(c.events...), false)
			got := reduced(out)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestStreamMalformed breaks each known event in one place: the stream fails, it
// loses nothing silently.
func TestStreamMalformed(t *testing.T) {
	for _, c := range []struct{ event, old, new string }{
		{evStart, `"message":{`, `"massage":{`},
		{evStart, `"usage":{`, `"usage":7,"x":{`},
		{evStart, `"input_tokens":10`, `"input_tokens":"10"`},
		{evStart, `"input_tokens":10`, `"input_tokens":-1`},
		{evStart, `"input_tokens":10`, `"input_tokens":1.5`},
		{evText, `"index":0,`, ``},
		{evText, `"index":0,`, `"index":"0",`},
		{evText, `"index":0,`, `"index":-1,`},
		{evText, `"index":0,`, `"index":null,`},
		{evText, `"content_block":{`, `"content":{`},
		{evText, `"type":"text"`, `"type":1`},
		{evText, `"text":""`, `"text":null`},
		{evTool, `"id":"toolu_1"`, `"id":7`},
		{evTool, `"name":"get"`, `"name":null`},
		{evTool, `"input":{}`, `"input":"{}"`},
		{evTool, `"input":{}`, `"input":[]`},
		{evHi, `"index":0,`, ``},
		{evHi, `"delta":{`, `"dolta":{`},
		{evHi, `"type":"text_delta"`, `"type":null`},
		{evHi, `"text":"Hi"`, `"text":7`},
		{evHi, `"text":"Hi"`, `"txet":"Hi"`},
		{evInput, `"partial_json"`, `"partial"`},
		{evStop0, `,"index":0`, ``},
		{evEnd, `"delta":{`, `"delta":1,"x":{`},
		{evEnd, `"end_turn"`, `true`},
		{evEnd, `"output_tokens":7`, `"output_tokens":[]`},
		{evEnd, `"usage":{`, `"usage":[],"x":{`},
	} {
		broken := strings.Replace(c.event, c.old, c.new, 1)
		if broken == c.event || !json.Valid([]byte(broken)) {
			t.Fatalf("the case does not fit its event: %v", c)
		}
		events := []string{evStart, evText, evTool, broken, evEnd, evLast}
		switch c.event {
		case evStart:
			events = []string{broken, evEnd, evLast}
		case evText:
			events = []string{evStart, broken, evEnd, evLast}
		case evTool:
			events = []string{evStart, evText, broken, evEnd, evLast}
		}
		out, s := atCuts(t, testReply, sseOf(events...), false)
		if !strings.Contains(out, brokenEvent) || s.Record().Outcome == OutcomeOK {
			t.Errorf("%s passed as %q", broken, reduced(out))
		}
	}
}

func TestFinishReasons(t *testing.T) {
	for stop, want := range map[string]string{
		"end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "word_of_the_future": "stop", "": "stop",
		"max_tokens": "length", "model_context_window_exceeded": "length", "tool_use": "tool_calls", "refusal": "content_filter",
	} {
		out, s := atCuts(t, testReply, sseOf(evStart, strings.Replace(evEnd, "end_turn", stop, 1), evLast), false)
		if got := reduced(out); got[1] != finishChunk(want) || s.Record().FinishReason != want {
			t.Errorf("%s became %q, want %s", stop, got, want)
		}
	}
}

func TestStreamFraming(t *testing.T) {
	stream := sseOf(evStart, evText, evPing, evHi, evStop0, evEnd, evLast)
	want, _ := atCuts(t, testReply, stream, false)
	for name, other := range map[string]string{
		"CRLF":             strings.ReplaceAll(stream, "\n", "\r\n"),
		"CR":               strings.ReplaceAll(stream, "\n", "\r"),
		"no names":         strings.ReplaceAll(stream, "event: ", "x: "),
		"wrong names":      strings.ReplaceAll(stream, "event: ", "event: x"),
		"no spaces":        strings.ReplaceAll(stream, ": {", ":{"),
		"byte order mark":  "\uFEFF" + stream,
		"comments":         ": a\n" + strings.ReplaceAll(stream, "data: ", ": comment\nid: 7\nretry: 1\ndata: "),
		"several lines":    strings.ReplaceAll(stream, `,"`, ",\ndata: \""),
		"no blank line":    strings.TrimRight(stream, "\n"),
		"padding":          strings.ReplaceAll(stream, "}}\n", "}   }  \n"),
		"other key order":  strings.Replace(stream, `"type":"content_block_delta","index":0`, `"index":0,"type":"content_block_delta"`, 1),
		"other space":      strings.ReplaceAll(stream, `"index":0`, `"index" : 0 `),
		"further fields":   strings.ReplaceAll(stream, `"text":"Hi"}`, `"text":"Hi","x":[1]}`),
		"repeated keys":    strings.ReplaceAll(stream, `"text":"Hi"}`, `"text":"Hi","text":"No"}`),
		"large other line": stream[:len(stream)-1] + "x: " + strings.Repeat("y", 100_000) + "\n\n",
	} {
		if other == stream {
			t.Fatalf("%s changed nothing", name)
		}
		if got, _ := atCuts(t, testReply, other, false); got != want {
			t.Errorf("%s: got %q", name, reduced(got))
		}
	}
}

// TestEventTooLong has an event just within the limit and one above it (decision
// 36), each in the spelling that is read in place, whole and in pieces.
func TestEventTooLong(t *testing.T) {
	text := func(extra int) string {
		line := "data: " + evHi
		return strings.Repeat("a", eventBytesMax-len(line)+len("Hi")+extra)
	}
	for _, extra := range []int{0, 1} {
		stream := sseOf(evStart, evText, strings.Replace(evHi, "Hi", text(extra), 1), evStop0, evEnd, evLast)
		for name, cuts := range map[string]func(int) int{"whole": uncut, "in pieces": func(int) int { return 1_000_003 }} {
			out, s := playStream(testReply, stream, false, cuts)
			checkClientStream(t, testReply, out, s)
			if fits := !strings.Contains(out, brokenEvent); fits != (extra == 0) {
				t.Errorf("%s, %d bytes above the limit: %.200q", name, extra, out[max(0, len(out)-300):])
			}
		}
	}
}

func TestStreamBounds(t *testing.T) {
	blocks := func(n int) (events []string) {
		events = []string{evStart}
		for i := range n {
			events = append(events, strings.Replace(evText, `"index":0`, `"index":`+strconv.Itoa(i), 1))
		}
		return append(events, evEnd, evLast)
	}
	out, _ := playStream(testReply, sseOf(blocks(openBlocksMax)...), false, uncut)
	if strings.Contains(out, brokenEvent) {
		t.Error("blocks within the bound failed")
	}
	out, _ = playStream(testReply, sseOf(blocks(openBlocksMax+1)...), false, uncut)
	if !strings.Contains(out, brokenEvent) {
		t.Error("blocks without end passed")
	}
	input := `{"a":"` + strings.Repeat("x", eventBytesMax/4) + `"}`
	events := []string{evStart}
	for i := range 4 {
		events = append(events, strings.NewReplacer(`"index":1`, `"index":`+strconv.Itoa(i), `{}`, input).Replace(evTool))
	}
	out, _ = playStream(testReply, sseOf(events...), false, uncut)
	if n := strings.Count(out, `"id":"toolu_1"`); n != 3 || !strings.Contains(out, brokenEvent) {
		t.Errorf("input that blocks hold is not bounded: %d calls began", n)
	}
}

// TestEarly: a failure before the first event while the headers wait is a real
// status; after it, or where headers do not wait, an event (decision 37).
func TestEarly(t *testing.T) {
	gateway := testReply
	gateway.GatewayKey = true
	errorOf := func(kind string) string { return `{"type":"error","error":{"type":"` + kind + `","message":"why"}}` }
	for _, c := range []struct {
		name   string
		reply  Reply
		events []string
		want   Error // zero: no early error
		began  bool
	}{
		{"overloaded", testReply, []string{evOverload}, Error{Status: 503, Message: "Overloaded", Type: "server_error", Code: "overloaded"}, false},
		{"rate limit", testReply, []string{errorOf("rate_limit_error")}, Error{Status: 429, Message: "why", Type: "rate_limit_error", Code: "rate_limit_exceeded"}, false},
		{"invalid", testReply, []string{errorOf("invalid_request_error")}, Error{Status: 400, Message: "why", Type: "invalid_request_error"}, false},
		{"conflict", testReply, []string{errorOf("conflict_error")}, Error{Status: 400, Message: "why", Type: "invalid_request_error"}, false},
		{"billing", testReply, []string{errorOf("billing_error")}, Error{Status: 402, Message: "why", Type: "insufficient_quota", Code: "insufficient_quota"}, false},
		{"too large", testReply, []string{errorOf("request_too_large")}, Error{Status: 413, Message: "why", Type: "invalid_request_error", Code: "request_too_large"}, false},
		{"timeout", testReply, []string{errorOf("timeout_error")}, Error{Status: 504, Message: "why", Type: "server_error", Code: "timeout"}, false},
		{"api error", testReply, []string{errorOf("api_error")}, Error{Status: 500, Message: "why", Type: "server_error"}, false},
		{"unknown", testReply, []string{errorOf("future_error")}, Error{Status: 500, Message: "why", Type: "server_error"}, false},
		{"the client's key", testReply, []string{errorOf("authentication_error")}, Error{Status: 401, Message: "why", Type: "invalid_request_error", Code: "invalid_api_key"}, false},
		{"the gateway's key", gateway, []string{errorOf("authentication_error")}, Error{Status: 500, Message: "The upstream failed to answer the request.", Type: "server_error"}, false},
		{"what the gateway's key may not", gateway, []string{errorOf("permission_error")}, Error{Status: 500, Message: "The upstream failed to answer the request.", Type: "server_error"}, false},
		{"model", testReply, []string{errorOf("not_found_error")}, Error{Status: 404, Message: "The model `m` does not exist or you do not have access to it.", Type: "invalid_request_error", Param: "model", Code: "model_not_found"}, false},
		{"nothing", testReply, nil, Error{Status: 500, Message: "The upstream broke the answer off.", Type: "server_error"}, false},
		{"not JSON", testReply, []string{"<html>"}, Error{Status: 500, Message: "The upstream's answer could not be read.", Type: "server_error"}, false},
		{"text first", testReply, []string{evHi, evStart}, Error{Status: 500, Message: "The upstream's answer could not be read.", Type: "server_error"}, false},
		{"behind a ping", testReply, []string{evPing, evOverload}, Error{}, true},
		{"behind an unknown event", testReply, []string{`{"type":"future"}`, evOverload}, Error{}, true},
		{"behind the start", testReply, []string{evStart, evOverload}, Error{}, true},
		{"none", testReply, []string{evStart, evEnd, evLast}, Error{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, s := atCuts(t, c.reply, sseOf(c.events...), true)
			var got Error
			if s.Early() != nil {
				got = *s.Early()
			}
			if got != c.want || s.Began() != c.began {
				t.Errorf("early %+v, began %v; want %+v, %v", got, s.Began(), c.want, c.began)
			}
			rec := s.Record()
			if c.want.Status != 0 && (rec.Outcome != OutcomeUpstreamError || rec.Status != c.want.Status || rec.Usage != Usage{}) {
				t.Errorf("record %+v", rec)
			}
			out, free := atCuts(t, c.reply, sseOf(c.events...), false)
			if free.Early() != nil || !strings.HasSuffix(out, streamEnd) || c.reply.GatewayKey && strings.Contains(out, "why") {
				t.Errorf("without waiting headers: %v, %q", free.Early(), out)
			}
			if c.want.Status != 0 && (free.Record().Outcome != OutcomeUpstreamError || free.Record().Status != 200) {
				t.Errorf("record without waiting headers %+v", free.Record())
			}
		})
	}
}

// TestBeganWithTheFirstEvent: headers wait for the first whole event and no
// longer.
func TestBeganWithTheFirstEvent(t *testing.T) {
	for _, first := range []string{evPing, evStart, `{"type":"future"}`} {
		event := sseOf(first)
		s := NewStream(testReply, testAnswer, true)
		out := s.Feed(nil, []byte(event[:len(event)-1]), false)
		if s.Began() || len(out) > 0 {
			t.Errorf("began before the end of %q", event)
		}
		s.Feed(out, []byte(event[len(event)-1:]), false)
		if !s.Began() || s.Done() {
			t.Errorf("did not begin with %q", event)
		}
	}
}

func TestStreamUsage(t *testing.T) {
	r := testReply
	r.IncludeUsage = true
	start := func(usage string) string { return `{"type":"message_start","message":{"usage":` + usage + `}}` }
	delta := func(usage string) string { return `{"type":"message_delta","delta":{},"usage":` + usage + `}` }
	for _, c := range []struct {
		name   string
		events []string
		want   Usage
	}{
		{"only output in the delta", []string{start(`{"input_tokens":27,"cache_read_input_tokens":3,"output_tokens":1}`), delta(`{"output_tokens":15}`)},
			Usage{Prompt: 30, Cached: 3, Completion: 15}},
		{"null is not there", []string{start(`{"input_tokens":27,"cache_creation_input_tokens":2,"output_tokens":4,"output_tokens_details":{"thinking_tokens":3}}`),
			delta(`{"input_tokens":null,"cache_creation_input_tokens":null,"output_tokens":null,"output_tokens_details":null}`)},
			Usage{Prompt: 29, CacheWrite: 2, Completion: 4, Reasoning: 3}},
		{"later values replace", []string{start(`{"input_tokens":27,"output_tokens":4}`), delta(`{"input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":9}`),
			delta(`{"output_tokens":8,"output_tokens_details":{"thinking_tokens":5}}`)},
			Usage{Prompt: 6, Cached: 3, CacheWrite: 2, Completion: 8, Reasoning: 5}},
		{"none", []string{`{"type":"message_start","message":{}}`, `{"type":"message_delta","delta":{}}`}, Usage{}},
		{"absurd", []string{start(`{"input_tokens":99999999999999999999999999,"cache_creation_input_tokens":18446744073709551616,"cache_read_input_tokens":9223372036854775807,"output_tokens":9007199254740993}`)},
			Usage{Prompt: 3 * tokensMax, Cached: tokensMax, CacheWrite: tokensMax, Completion: tokensMax}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, s := atCuts(t, r, sseOf(append(c.events, evLast)...), false)
			want := string(c.want.append(nil))
			if got := reduced(out); got[len(got)-2] != `"usage":`+want+"}" || s.Record().Usage != c.want {
				t.Errorf("got %q, want %s", got, want)
			}
		})
	}
}

// TestClientLeft stops a stream in the middle: the record then has the last
// input, and the larger of the reported and the estimated output.
func TestClientLeft(t *testing.T) {
	hello := strings.Replace(evHi, "Hi", `12345\u00e9\n`, 1) // 8 bytes of text
	for _, c := range []struct {
		name   string
		events []string
		want   Usage
	}{
		{"before the first event", nil, Usage{}},
		{"before any text", []string{evStart}, Usage{Prompt: 10, Completion: 1}},
		{"text", []string{evStart, evText, hello}, Usage{Prompt: 10, Completion: 2}},
		{"rounded up", []string{evStart, evText, hello, strings.Replace(evHi, "Hi", "x", 1)}, Usage{Prompt: 10, Completion: 3}},
		{"arguments", []string{evStart, evTool, evInput, evInput}, Usage{Prompt: 10, Completion: 4}}, // 14 bytes
		{"input in the block's start", []string{evStart, strings.Replace(evTool, `{}`, `{"b":"\u00e9"}`, 1), evStop1}, Usage{Prompt: 10, Completion: 4}},
		{"input that we made up", []string{evStart, evTool, evStop1}, Usage{Prompt: 10, Completion: 1}},
		{"more reported", []string{evStart, evText, hello, evStop0, evEnd}, Usage{Prompt: 10, Completion: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewStream(testReply, testAnswer, true)
			s.Feed(nil, []byte(sseOf(c.events...)+"event: cont"), false)
			want := Record{Model: "m", Stream: true, Status: 200, Outcome: OutcomeClientLeft, Usage: c.want, Estimated: true}
			if got := s.Record(); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestStreamRecords(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   Record
	}{
		{"well", []string{evStart, evEnd, evLast}, Record{Outcome: OutcomeOK, FinishReason: "stop", Usage: Usage{Prompt: 10, Completion: 7}}},
		{"failed", []string{evStart, evText, evHi, evEnd, evOverload}, Record{Outcome: OutcomeFailed}},
		{"broken off", []string{evStart, evText, evHi, evEnd}, Record{Outcome: OutcomeFailed}},
	} {
		c.want.Model, c.want.Stream, c.want.Status = "m", true, 200
		if _, s := atCuts(t, testReply, sseOf(c.events...), true); s.Record() != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, s.Record(), c.want)
		}
	}
}

// TestNoChunkWaits feeds event by event: each chunk comes with the event that
// caused it.
func TestNoChunkWaits(t *testing.T) {
	s := NewStream(testReply, testAnswer, true)
	for _, c := range []struct {
		event string
		want  int // events for the client
	}{
		{evStart, 1}, {evText, 0}, {evHi, 1}, {evHi, 1}, {evStop0, 0}, {evTool, 1}, {evInput, 1}, {evStop1, 0},
		{strings.Replace(evTool, `"index":1`, `"index":2`, 1), 1}, {`{"type":"content_block_stop","index":2}`, 1},
		{evPing, 1}, {evEndTool, 0}, {evLast, 2},
	} {
		out := s.Feed(nil, []byte(sseOf(c.event)), false)
		if got := reduced(string(out)); len(got) != c.want {
			t.Errorf("%s gave %q at once, want %d", c.event, got, c.want)
		}
	}
	if !s.Done() {
		t.Error("not done")
	}
}

// TestKnownSpelling: what is read in place, and what is not.
func TestKnownSpelling(t *testing.T) {
	running := func() *Stream {
		s := NewStream(testReply, testAnswer, false)
		s.Feed(nil, []byte(sseOf(evStart, evText, evTool)), false)
		return s
	}
	for _, c := range []struct {
		in   string
		want int // events that are read in place
	}{
		{sseOf(evHi), 1},
		{"data: " + evHi + "\n\n", 1},
		{sseOf(evInput, evHi, evInput), 3},
		{sseOf(evHi, evStop0, evHi), 1},
		{strings.ReplaceAll(sseOf(evHi), "}}", "}  }   "), 1},
		{strings.ReplaceAll(sseOf(evHi), `"index":0`, `"index":00`), 0},
		{strings.ReplaceAll(sseOf(evHi), `"index":0`, `"index":9`), 0},
		{strings.ReplaceAll(sseOf(evHi), `"index":0`, `"index":`), 0},
		{strings.ReplaceAll(sseOf(evHi), `"index":0`, `"index":1`), 0},
		{strings.ReplaceAll(sseOf(evHi), `"index":0`, `"index":0000000000000000000000`), 0},
		{strings.ReplaceAll(sseOf(evHi), "}}", "}}}"), 0},
		{strings.ReplaceAll(sseOf(evHi), "}}", "}"), 0},
		{strings.ReplaceAll(sseOf(evHi), "}}", "},"), 0},
		{strings.ReplaceAll(sseOf(evHi), "Hi", "\xff"), 0},
		{strings.ReplaceAll(sseOf(evHi), "Hi", `\x`), 0},
		{strings.ReplaceAll(sseOf(evHi), "Hi", "\t"), 0},
		{strings.TrimSuffix(sseOf(evHi), "\n"), 0},
		{strings.TrimSuffix(sseOf(evHi), "\n") + "x\n", 0},
		{strings.ReplaceAll(sseOf(evHi), "\n", "\r\n"), 0},
		{sseOf(evPing), 0},
		{"", 0},
	} {
		out, n := running().quick(nil, []byte(c.in))
		if got := strings.Count(string(out), "\n\n"); got != c.want || (n > 0) != (c.want > 0) {
			t.Errorf("%q: %d events in %d bytes are read in place, want %d", c.in, got, n, c.want)
		}
	}
}

// sameByAnyWay gives one event's data to three streams in the same state: in
// place, by its known spelling, and the general way. All must agree.
func sameByAnyWay(t *testing.T, data []byte) {
	t.Helper()
	if bytes.ContainsAny(data, "\r\n") || len(data) == 0 || data[0] == ' ' {
		return
	}
	running := func() *Stream {
		s := NewStream(testReply, testAnswer, false)
		s.Feed(nil, []byte(sseOf(evStart, evText, evTool,
			`{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":""}}`)), false)
		return s
	}
	state := func(s *Stream) string {
		return fmt.Sprint(s.done, s.outcome, s.generated, s.finish, s.counts, s.calls, s.blocks)
	}
	slack := append(bytes.Clone(data), make([]byte, jsontext.Slack)...)[:len(data)]
	general := running()
	want := string(general.parse(nil, slack))
	known := running()
	if got := string(known.event(nil, slack)); got != want || state(known) != state(general) {
		t.Fatalf("%q\nby its spelling %q %s\nthe general way %q %s", data, got, state(known), want, state(general))
	}
	if general.done {
		return // what Feed lets go of then differs
	}
	inPlace := running()
	in := []byte("event: content_block_delta\ndata: " + string(data) + "\n\n")
	if got := string(inPlace.Feed(nil, in, false)); got != want || state(inPlace) != state(general) {
		t.Fatalf("%q\nin place %q %s\nthe general way %q %s", data, got, state(inPlace), want, state(general))
	}
}

var deltaSeeds = []string{
	evHi, evInput, evNoInput, evPing, `{"type":"ping"}`, evStop0, evText,
	strings.Replace(evHi, "Hi", `\ud83d\ude00\ud83d \u0041\"\\\/\b\f\n\r\t`+"é阴😀\u2028", 1),
	strings.Replace(evHi, "Hi", "<&>\x7f", 1), strings.Replace(evHi, "Hi", "\xed\xa0\x80", 1), strings.Replace(evHi, "Hi", "a\x00", 1),
	strings.Replace(evHi, `"index":0`, `"index":2`, 1), strings.Replace(evInput, `"index":1`, `"index":01`, 1),
	strings.Replace(evHi, `}}`, `}   }  `, 1), strings.Replace(evHi, `}}`, `,"x":1}}`, 1), strings.Replace(evHi, `"delta"`, `"dolta"`, 1),
}

// TestSpellingsAgree mutates the known shapes byte by byte.
func TestSpellingsAgree(t *testing.T) {
	for _, seed := range deltaSeeds {
		sameByAnyWay(t, []byte(seed))
		for i := range len(seed) {
			for _, c := range []byte("\"\\}{ 0,:a\x00\xff") {
				mutated := []byte(seed)
				mutated[i] = c
				sameByAnyWay(t, mutated)
			}
			sameByAnyWay(t, []byte(seed[:i]))
			sameByAnyWay(t, []byte(seed[:i]+seed[i+1:]))
			sameByAnyWay(t, []byte(seed[:i]+seed[i:i+1]+seed[i:]))
		}
	}
}

func FuzzDelta(f *testing.F) {
	for _, seed := range deltaSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(sameByAnyWay)
}

func FuzzStream(f *testing.F) {
	for _, events := range [][]string{
		{evStart, evText, evPing, evHi, evStop0, evTool, evNoInput, evInput, evStop1, evEndTool, evLast},
		{evPing, evOverload}, {evStart, evTool, evOverload}, {evStart, strings.Replace(evTool, `{}`, `{"b":1}`, 1), evEnd, evLast, evHi},
	} {
		stream := sseOf(events...)
		f.Add([]byte(stream), false, true)
		f.Add([]byte(strings.ReplaceAll(stream, "\n", "\r\n")), true, false)
		f.Add([]byte(strings.TrimRight(stream, "\n")), true, true)
	}
	f.Fuzz(func(t *testing.T, stream []byte, holding, usage bool) {
		r := testReply
		r.IncludeUsage = usage
		atCuts(t, r, string(stream), holding)
	})
}

// TestStreamAllocatesNothing counts allocations of a running stream: in the known
// spelling, in others, and cut inside events.
func TestStreamAllocatesNothing(t *testing.T) {
	other := strings.Replace(evHi, `"index":0`, `"index": 0`, 1)
	text := sseOf(evHi, evInput, evPing, other, evInput, evHi, evStop0, evText, `{"type":"future","x":[1,{"y":null}]}`)
	s := NewStream(testReply, testAnswer, false)
	out := s.Feed(make([]byte, 0, 1<<16), []byte(sseOf(evStart, evText, evTool)), false)
	chunks := [][]byte{[]byte(text), []byte(text[:len(text)/3]), []byte(text[len(text)/3:])}
	bytesOut := 0
	play := func() {
		for _, chunk := range chunks {
			bytesOut += len(s.Feed(out[:0], chunk, false))
		}
	}
	play()
	if n := testing.AllocsPerRun(200, play); n != 0 || bytesOut == 0 || s.Done() {
		t.Errorf("%v allocations, %d bytes, done %v", n, bytesOut, s.Done())
	}
}

func BenchmarkStream(b *testing.B) {
	long := strings.Replace(evHi, "Hi", "a few words of an answer", 1)
	for name, event := range map[string]string{
		"text":            long,
		"arguments":       strings.Replace(evInput, `{\"a\":1}`, `{\"city\": \"Oslo\", \"n\": 1`, 1),
		"text, general":   strings.Replace(long, `"index":0`, `"index": 0`, 1),
		"text, non-ASCII": strings.Replace(evHi, "Hi", "阴气渐重阴气渐重", 1),
	} {
		b.Run(name, func(b *testing.B) {
			s := NewStream(testReply, testAnswer, false)
			out := s.Feed(nil, []byte(sseOf(evStart, evText, evTool)), false)
			in := []byte(sseOf(event))
			out = make([]byte, 0, 1<<12)
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				out = s.Feed(out[:0], in, false)
			}
			if len(out) == 0 || s.Done() {
				b.Fatal("the stream does not run")
			}
		})
	}
}
