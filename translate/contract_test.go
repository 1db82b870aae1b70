package translate_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ezat.io/chat-completions/translate"
	"ezat.io/chat-completions/translate/cases"
)

// These tests show rows of the contract and decisions that no single exchange of the
// corpus can show: sizes, counts, and many requests.

// upstreamBytes is what goes up for a body, or the refusal.
func upstreamBytes(parser *translate.Parser, body []byte) ([]byte, *translate.Error) {
	request, refusal := parser.Parse(body)
	if refusal != nil {
		return nil, refusal
	}
	env := &translate.Env{Models: translate.NewModels("anthropic/", nil), AutoCache: true}
	plan, refusal := translate.Decide(request, env)
	if refusal != nil {
		return nil, refusal
	}
	var out []byte
	plan.Write(func(piece []byte) { out = append(out, piece...) })
	return out, nil
}

// TestDeepNesting shows decision 5 at its border, wherever the nesting is: 512 levels
// pass, 513 are a 400, and a hundred thousand do not overflow anything. A good request
// passes right after.
func TestDeepNesting(t *testing.T) {
	const good = `{"model":"m","messages":[{"role":"user","content":"x"}]}`
	var parser translate.Parser
	for _, place := range []struct {
		name   string
		before string
		after  string
		around int // levels of the body around the nesting
	}{
		{"ignored field", `{"model":"m","messages":[{"role":"user","content":"x"}],"metadata":`, `}`, 1},
		{"tool schema", `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"t","parameters":{"default":`, `}}}]}`, 5},
		{"arguments", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{\"a\":`,
			`}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}]}`, 1},
	} {
		for _, kind := range []struct{ name, open, close string }{
			{"arrays", "[", "]"},
			{"objects", `{"a":`, "}"},
		} {
			open := kind.open
			if place.name == "arguments" {
				open = strings.ReplaceAll(open, `"`, `\"`)
			}
			nested := func(levels int) []byte {
				middle := "1"
				n := levels - place.around
				return []byte(place.before + strings.Repeat(open, n) + middle + strings.Repeat(kind.close, n) + place.after)
			}
			for _, levels := range []int{200, 512} {
				if _, refusal := upstreamBytes(&parser, nested(levels)); refusal != nil {
					t.Errorf("%s, %s: %d levels: %v", place.name, kind.name, levels, refusal)
				}
			}
			for _, levels := range []int{513, 100_000} {
				if _, refusal := upstreamBytes(&parser, nested(levels)); refusal == nil || refusal.Status != 400 {
					t.Errorf("%s, %s: %d levels: %v, want a 400", place.name, kind.name, levels, refusal)
				}
			}
			if _, refusal := upstreamBytes(&parser, []byte(good)); refusal != nil {
				t.Errorf("a good request after %s, %s: %v", place.name, kind.name, refusal)
			}
		}
	}
	for _, open := range []string{"[", `{"a":`, `{"messages":[`} {
		if _, refusal := upstreamBytes(&parser, []byte(strings.Repeat(open, 100_000))); refusal == nil || refusal.Status != 400 {
			t.Errorf("%s without end: %v, want a 400", open, refusal)
		}
	}
}

// TestValuesLimit shows decision 46: 500,000 values pass, one more is a 400, also
// when arguments bring it.
func TestValuesLimit(t *testing.T) {
	const limit = 500_000
	const path = "messages[1].tool_calls[0].function.arguments"
	var parser translate.Parser
	// The object, model, messages, the message, its role, its content and the list:
	// seven values around those of the list.
	list := func(n int) []byte {
		return []byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"metadata":[` + strings.Repeat("1,", n-1) + `1]}`)
	}
	if _, refusal := upstreamBytes(&parser, list(limit-7)); refusal != nil {
		t.Errorf("%d values: %v", limit, refusal)
	}
	wantRefusal(t, &parser, list(limit-6), "request body: has more than 500000 values")
	// Nineteen in the body, and two around the list in the arguments.
	arguments := func(n int) []byte {
		return []byte(`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{\"a\":[` +
			strings.Repeat("1,", n-1) + `1]}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}]}`)
	}
	if _, refusal := upstreamBytes(&parser, arguments(limit-21)); refusal != nil {
		t.Errorf("%d values, most in arguments: %v", limit, refusal)
	}
	wantRefusal(t, &parser, arguments(limit-20), path+": brings the request body to more than 500000 values")
}

// TestMembersLimit shows decision 46: 10,000 members of an object that is read pass,
// one more is a 400; objects that pass through may have more.
func TestMembersLimit(t *testing.T) {
	const limit, text = 10_000, "has more than 10000 members"
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"key%d":%d`, i, i)
		}
		return b.String()
	}
	var parser translate.Parser
	for _, place := range []struct {
		body, path string
		own        int
	}{
		{`{"model":"m","messages":[{"role":"user","content":"x"}]%s}`, "request body: ", 2},
		{`{"model":"m","messages":[{"role":"user","content":"x"%s}]}`, "messages[0]: ", 2},
		{`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"%s}]}]}`, "messages[0].content[0]: ", 2},
		{`{"model":"m","messages":[{"role":"user","content":"x"}],"stream_options":{"include_usage":true%s}}`, "stream_options: ", 1},
		{`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"%s}}]}`, "tools[0].function: ", 1},
	} {
		body := func(n int) []byte { return []byte(strings.Replace(place.body, "%s", members(n-place.own), 1)) }
		if _, refusal := upstreamBytes(&parser, body(limit)); refusal != nil {
			t.Errorf("%s%d members: %v", place.path, limit, refusal)
		}
		wantRefusal(t, &parser, body(limit+1), place.path+text)
	}
	for _, passes := range []string{
		`{"model":"m","messages":[{"role":"user","content":"x"}],"metadata":{"a":1%s}}`,
		`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"a":1%s}}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":1%q}"}}]},{"role":"tool","tool_call_id":"c"}]}`,
	} {
		many := members(limit + 1)
		passes = strings.Replace(strings.Replace(passes, "%q", strings.ReplaceAll(many, `"`, `\"`), 1), "%s", many, 1)
		if _, refusal := upstreamBytes(&parser, []byte(passes)); refusal != nil {
			t.Errorf("%.150s…: %v", passes, refusal)
		}
	}
}

// wantRefusal sends a body that must be a 400 with that text.
func wantRefusal(t *testing.T, parser *translate.Parser, body []byte, text string) {
	t.Helper()
	if _, refusal := upstreamBytes(parser, body); refusal == nil || refusal.Status != 400 || refusal.Message != text {
		t.Errorf("%.100s…: %v, want %s", body, refusal, text)
	}
}

// TestLongerThanTheLimit shows decision 42: a body of nearly 32 MB may come out longer
// than that.
func TestLongerThanTheLimit(t *testing.T) {
	const turns = 80_000
	var body bytes.Buffer
	body.WriteString(`{"model":"m","messages":[`)
	for range turns {
		body.WriteString(`{"role":"user","content":"x"},{"role":"assistant","content":"y"},`)
	}
	body.WriteString(`{"role":"user","content":"`)
	body.WriteString(strings.Repeat("z", translate.BodyBytesMax-body.Len()-4))
	body.WriteString(`"}]}`)
	if body.Len() != translate.BodyBytesMax {
		t.Fatalf("the body has %d bytes", body.Len())
	}
	out, refusal := upstreamBytes(new(translate.Parser), body.Bytes())
	if refusal != nil {
		t.Fatal(refusal)
	}
	if len(out) <= translate.BodyBytesMax {
		t.Errorf("%d bytes come out, which shows nothing", len(out))
	}
	if !bytes.HasSuffix(out, []byte(`z","cache_control":{"type":"ephemeral"}}]}]}`)) {
		t.Errorf("ends in %q", out[len(out)-60:])
	}
}

// TestSameBytes shows decision 7: the same request gives the same bytes in every
// translation, by a fresh Parser and by a used one.
func TestSameBytes(t *testing.T) {
	body := conversation(7)
	want, refusal := upstreamBytes(new(translate.Parser), body)
	if refusal != nil {
		t.Fatal(refusal)
	}
	var used translate.Parser
	for i := range 100 {
		if i%3 == 0 {
			if _, refusal := upstreamBytes(&used, conversation(i%5)); refusal != nil {
				t.Fatal(refusal)
			}
		}
		got, refusal := upstreamBytes(&used, body)
		if refusal != nil || !bytes.Equal(got, want) {
			t.Fatalf("translation %d differs: %v\n%s\n%s", i, refusal, got, want)
		}
	}
}

// TestConversationPrefix shows why caching pays: over forty turns of an agent's
// conversation, what one turn sent up is the beginning of what the next one sends, but
// for the mark that moves on.
func TestConversationPrefix(t *testing.T) {
	var before []byte
	for turn := range 40 {
		out, refusal := upstreamBytes(new(translate.Parser), conversation(turn))
		if refusal != nil {
			t.Fatal(refusal)
		}
		head, messages, found := bytes.Cut(out, []byte(`"messages":[`))
		if !found {
			t.Fatalf("no messages in %s", out)
		}
		mark := []byte(`,"cache_control":{"type":"ephemeral"}`)
		if n := bytes.Count(head, mark); n != 1 {
			t.Errorf("turn %d: %d marks before the messages, want one", turn, n)
		}
		if n := bytes.Count(messages, mark); n != 1 {
			t.Errorf("turn %d: %d marks in the messages, want one", turn, n)
		}
		if last := bytes.LastIndex(messages, mark); !bytes.Equal(messages[last+len(mark):], []byte(`}]}]}`)) {
			t.Errorf("turn %d: the mark is not on the newest block", turn)
		}
		plain := append(append([]byte(nil), head...), bytes.ReplaceAll(messages, mark, nil)...)
		plain = bytes.TrimSuffix(plain, []byte(`]}`))
		if !bytes.HasPrefix(plain, before) {
			t.Fatalf("turn %d does not begin with turn %d:\n%s\n%s", turn, turn-1, plain, before)
		}
		before = plain
	}
}

// conversation is an agent's request after some turns: each adds two parallel calls
// with foreign ids, their results (one of them an image), and every third a word of
// the user.
func conversation(turns int) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"anthropic/claude-sonnet-5-5","reasoning_effort":"high","tools":[` +
		`{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"string"}}}}},` +
		`{"type":"function","function":{"name":"shot"}}],` +
		`"messages":[{"role":"system","content":"You are an agent. 1 < 2 & 3"},{"role":"user","content":"Fix it."}`)
	for i := range turns {
		fmt.Fprintf(&b, `,{"role":"assistant","content":"Step %d\u2026","tool_calls":[`+
			`{"id":"functions.read:%d","type":"function","function":{"name":"read","arguments":"{\"z\":%d.50,\"a\":\"\\u00e9\"}"}},`+
			`{"id":"call_%d","type":"function","function":{"name":"shot","arguments":""}}]}`, i, i, i, i)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%d","content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}]}`, i)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"functions.read:%d","content":"line %d\n"}`, i, i)
		if i%3 == 2 {
			b.WriteString(`,{"role":"user","content":"Go on."}`)
		}
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// TestStreamsDoNotMix feeds two streams in turns, byte by byte: each gives what it gives
// alone, and one that is dropped half-way leaves nothing behind for the next.
func TestStreamsDoNotMix(t *testing.T) {
	replies := []translate.Reply{
		{Model: "one", Stream: true, IncludeUsage: true},
		{Model: "two", Stream: true},
	}
	var sources [2][]byte
	for i, name := range []string{"streams/13-interleaved-thinking-tools", "streams/02-text-unicode-long"} {
		sources[i] = streamOf(t, name)
	}
	alone := func(i int) string {
		facts := translate.Answer{RequestID: fmt.Sprint("r", i), Created: int64(i)}
		return string(translate.NewStream(replies[i], facts, true).Feed(nil, sources[i], true))
	}
	want := [2]string{alone(0), alone(1)}
	var streams [2]*translate.Stream
	for i := range streams {
		streams[i] = translate.NewStream(replies[i], translate.Answer{RequestID: fmt.Sprint("r", i), Created: int64(i)}, true)
	}
	var got [2][]byte
	for at := range max(len(sources[0]), len(sources[1])) {
		for i, s := range streams {
			if at < len(sources[i]) {
				got[i] = s.Feed(got[i], sources[i][at:at+1], at == len(sources[i])-1)
			}
		}
	}
	for i := range got {
		if string(got[i]) != want[i] {
			t.Errorf("stream %d differs from what it gives alone:\n%s\n%s", i, got[i], want[i])
		}
	}
	half := translate.NewStream(replies[0], translate.Answer{RequestID: "half"}, true)
	half.Feed(nil, sources[0][:len(sources[0])/2], false)
	if again := alone(1); again != want[1] {
		t.Errorf("after a stream that was dropped half-way:\n%s\n%s", again, want[1])
	}
}

// streamOf is the upstream's answer in a case.
func streamOf(t *testing.T, name string) []byte {
	t.Helper()
	all, err := cases.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Name == name {
			return c.Calls[0].Answer.Body
		}
	}
	t.Fatalf("no case %s", name)
	return nil
}
