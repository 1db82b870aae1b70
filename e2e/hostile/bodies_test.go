package hostile_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ezat.io/chat-completions/translate/cases/worst"
)

// bodyMax is the contract's 32 MB.
const bodyMax = 33_554_432

// attackBody is one body and what must come of it.
type attackBody struct {
	name   string
	body   func() string // made when it is needed: together they are half a gigabyte
	status int           // 0: an answer or a 4xx
}

// try sends a hostile body over a kept connection, and a good one behind it. What goes up
// may be four times as long as the body, and 64 KB.
func (w *world) try(t *testing.T, b attackBody) {
	t.Helper()
	mark := w.mark()
	body := strings.ReplaceAll(b.body(), "MARK", mark)
	r, err := w.post(t.Context(), w.client, body)
	switch {
	case err != nil:
		t.Errorf("%s: %v", b.name, err)
	case b.status != 0 && r.Status != b.status:
		t.Errorf("%s: %d, want %d: %.300q", b.name, r.Status, b.status, r.Body)
	case r.Status == 200:
		if _, err := r.text(false); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	case r.Status >= 400 && r.Status < 500:
		if err := r.wantError(); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	default:
		t.Errorf("%s: %d %.300q", b.name, r.Status, r.Body)
	}
	if up := w.up.size(mark); up > 4*len(body)+64<<10 {
		t.Errorf("%s: %d bytes became %d", b.name, len(body), up)
	}
	if err := w.ask(t.Context(), w.client, false); err != nil {
		t.Errorf("behind %s: %v", b.name, err)
		// Where a VM has died, the next body is judged by itself.
		if !await(func() bool { return w.ask(t.Context(), w.client, false) == nil }) {
			t.Fatal("nothing is answered any more")
		}
	}
}

// calls is a conversation whose assistant has called with these ids, with or without the
// results; each id is spelled as in JSON.
func calls(ids []string, results bool, question string) string {
	var b strings.Builder
	b.WriteString(`{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[`)
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}`)
	}
	b.WriteString("]}")
	for _, id := range ids {
		if results {
			b.WriteString(`,{"role":"tool","tool_call_id":"` + id + `","content":"r"}`)
		}
	}
	b.WriteString(`,{"role":"user","content":"` + question + `"}],"tools":[{"type":"function","function":{"name":"f"}}]}`)
	return b.String()
}

// testCallIDs: an id of 8 MB that looks like a mapped one made each further foreign id 8
// MB long. That body comes first, without and with results, then two hundred of its kind.
func (w *world) testCallIDs(t *testing.T) {
	ids := append([]string{"ezatid-" + strings.Repeat("_", 8<<20), "ezatid-a_21"}, repeat("a!", 200)...)
	for _, results := range []bool{false, true} {
		w.try(t, attackBody{name: fmt.Sprintf("8 MB, 200 foreign ids, results: %v", results), body: func() string { return calls(ids, results, "MARK") }})
	}
	random := rand.New(rand.NewPCG(8, 200))
	for i := range 200 {
		ids, about := idsOfAKind(random)
		results := random.IntN(3) > 0
		w.try(t, attackBody{name: fmt.Sprintf("variation %d (%s, results: %v)", i, about, results), body: func() string { return calls(ids, results, "MARK") }})
	}
}

func repeat(id string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = id
	}
	return list
}

// idsOfAKind are a few long ids that look like mapped ones, or nearly, and many short
// ones whose mapped forms meet them.
func idsOfAKind(random *rand.Rand) (ids []string, about string) {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	prefix := pick("ezatid-", "ezatid-", "ezatid-a", "ezatid-a_21", "ezatid-a_21_", "ezatid", "", "a", `\u0065zatid-`)
	fill := pick("_", "_", "_", "_2", "-", "a", "_21", `\u005f`, "!", "é", "__a", `\ud83d`)
	long := 1 << (6 + random.IntN(15)) // 64 B to 1 MB
	if random.IntN(25) == 0 {
		long = 8 << 20
	}
	many := 1 << random.IntN(11)
	foreign := pick("a!", "a!", "a.", "é", "!", "a_!", strings.Repeat("a!", 40), "")
	numbered := random.IntN(2) == 0
	for i := range 1 + random.IntN(3) {
		ids = append(ids, prefix+strings.Repeat(fill, (long>>i)/len(fill)))
	}
	ids = append(ids, pick("ezatid-a_21", "ezatid-a_21__", "ezatid-_21", "ezatid-a_2e"))
	for i := range many {
		id := foreign
		if numbered {
			id += fmt.Sprint(i)
		}
		ids = append(ids, id)
	}
	if random.IntN(3) > 0 { // the long ones first, last, or somewhere
		random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	}
	return ids, fmt.Sprintf("%d bytes of %q behind %q, %d times %.10q, numbered: %v", long, fill, prefix, many, foreign, numbered)
}

// testBodies: the worst that was found by hand, each of its own kind.
func (w *world) testBodies(t *testing.T) {
	for _, b := range worstBodies() {
		w.try(t, b)
	}
	for _, b := range worst.Bodies() {
		if strings.Contains(b.Name, "image URL") {
			continue // they lead out of this machine
		}
		w.try(t, attackBody{b.Name, func() string { return string(b.Make(256 << 10)) }, 0})
	}
}

// messagesBody is a body with these messages, of which the last holds the mark; try puts
// it in the place of MARK.
func messagesBody(messages, more string) string {
	return `{"model":"anthropic/claude-sonnet-5-5","max_tokens":64` + more + `,"messages":[` + messages + `{"role":"user","content":"MARK"}]}`
}

// each is text n times, with its number in the place of #.
func each(n int, text string) string {
	var b strings.Builder
	before, after, _ := strings.Cut(text, "#")
	for i := range n {
		b.WriteString(before)
		fmt.Fprint(&b, i)
		b.WriteString(after)
	}
	return b.String()
}

// said is a body whose first message has this content, in JSON.
func said(content string) string { return messagesBody(`{"role":"user","content":`+content+`},`, "") }

func worstBodies() []attackBody {
	const mb = 1 << 20
	a := func(n int) string { return strings.Repeat("a", n) }
	pixel := `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},`
	return []attackBody{
		{"400,000 ignored keys", func() string { return messagesBody("", each(400_000, `,"k#":1`)) }, 400},
		{"9,000 ignored keys", func() string { return messagesBody("", each(9_000, `,"k#":1`)) }, 200},
		{"300,000 keys spelled with \\u", func() string { return messagesBody("", each(300_000, `,"\u006b#":1`)) }, 400},
		{"1,900,000 values in an ignored field", func() string { return messagesBody("", `,"x":[`+strings.Repeat("1,", 1_900_000)+`1]`) }, 400},
		{"a key of 8 MB, twice", func() string { return messagesBody("", `,"`+a(8*mb)+`":1,"`+a(8*mb)+`":1`) }, 400},
		{"400,000 empty messages", func() string { return messagesBody(strings.Repeat(`{},`, 400_000), "") }, 400},
		{"120,000 messages", func() string { return messagesBody(strings.Repeat(`{"role":"user","content":"a"},`, 120_000), "") }, 0},
		{"60,000 images", func() string { return said(`[` + strings.Repeat(pixel, 60_000) + `{"type":"text","text":"MARK"}]`) }, 0},
		{"60,000 system texts", func() string { return messagesBody(strings.Repeat(`{"role":"system","content":"a"},`, 60_000), "") }, 0},
		{"50,000 foreign ids", func() string {
			return strings.Replace(calls(strings.Split(strings.TrimSuffix(each(50_000, "a!#,"), ","), ","), true, "MARK"), "go", "x", 1)
		}, 0},
		{"30 MB of half surrogates", func() string { return said(`"` + strings.Repeat(`\ud83d`, 30*mb/6) + `"`) }, 0},
		{"30 MB of escapes", func() string { return said(`"` + strings.Repeat(`\"\u0041\n`, 3*mb) + `"`) }, 0}, // too long for the model
		{"16 MB of control characters spelled with \\u", func() string { return said(`"` + strings.Repeat(`\u0001`, 16*mb/6) + `"`) }, 0},
		{"30 MB of text", func() string { return said(`"` + a(30*mb) + `"`) }, 0},
		{"30 MB of white space", func() string { return strings.Repeat(" \n", 15*mb) + messagesBody("", "") }, 200},
		{"a byte more than 32 MB", func() string { return strings.Repeat(" ", bodyMax+1) }, 413},
		{"nothing but 32 MB of zeros", func() string { return strings.Repeat("\x00", bodyMax) }, 400},
		{"16 MB of brackets", func() string { return strings.Repeat("[", 16*mb) }, 400},
		{"16 MB of nested objects", func() string { return strings.Repeat(`{"a":`, 3*mb) }, 400},
		{"deep arguments", func() string {
			return strings.Replace(calls([]string{"a"}, true, "MARK"), `"{}"`, `"{\"a\":`+strings.Repeat("[", 2*mb)+`"`, 1)
		}, 400},
		{"deep schema", func() string {
			return messagesBody("", `,"tools":[{"type":"function","function":{"name":"f","parameters":{"a":`+strings.Repeat("[", 2*mb)+strings.Repeat("]", 2*mb)+`}}}]`)
		}, 400},
		{"a model of 8 MB", func() string { return strings.Replace(messagesBody("", ""), "anthropic/claude-sonnet-5-5", a(8*mb), 1) }, 404},
		{"a role of 8 MB", func() string { return messagesBody(`{"role":"`+a(8*mb)+`","content":"a"},`, "") }, 400},
		{"a part's type of 8 MB", func() string { return said(`[{"type":"` + a(8*mb) + `"}]`) }, 400},
		{"a named tool of 8 MB that is not there", func() string {
			return messagesBody("", `,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"`+a(8*mb)+`"}}`)
		}, 400},
		{"a cache key of 8 MB", func() string { return messagesBody("", `,"prompt_cache_key":"`+a(8*mb)+`"`) }, 400},
		{"a number of 8 MB", func() string { return messagesBody("", `,"temperature":0.`+strings.Repeat("0", 8*mb)) }, 0},
		{"a limit of 8 MB", func() string { return messagesBody("", `,"max_completion_tokens":1`+strings.Repeat("0", 8*mb)) }, 0},
		{"an exponent of 8 MB", func() string { return messagesBody("", `,"top_p":1e-`+strings.Repeat("9", 8*mb)) }, 0},
		{"100,000 stops", func() string { return messagesBody("", `,"stop":[`+strings.Repeat(`"a",`, 100_000)+`"a"]`) }, 0},
		{"40,000 tools", func() string {
			return messagesBody("", `,"tools":[`+strings.Repeat(`{"type":"function","function":{"name":"f"}},`, 40_000)+`{"type":"function","function":{"name":"f"}}]`)
		}, 0},
		{"a URL of 8 MB", func() string { return said(`[{"type":"image_url","image_url":{"url":"http://` + a(8*mb) + `/"}}]`) }, 400},
		{"100,000 URLs", func() string {
			return said(`[` + strings.Repeat(`{"type":"image_url","image_url":{"url":"http://127.0.0.1/"}},`, 100_000) + `{"type":"text","text":"a"}]`)
		}, 400},
		{"base64 between white space", func() string {
			return said(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat(`A\n`, 2*mb) + `"}}]`)
		}, 0},
		{"the head of a data URL of 8 MB", func() string {
			return said(`[{"type":"image_url","image_url":{"url":"data:image/png;` + a(8*mb) + `;base64,AAAA"}}]`)
		}, 400},
		{"8 MB, and the last byte is no UTF-8", func() string { return said(`"` + a(8*mb) + "\xff" + `"`) }, 400},
		{"8 MB that break off", func() string { return said(`"` + a(8*mb))[:8*mb] }, 400},
		{"nothing", func() string { return "" }, 400},
		{"a byte order mark alone", func() string { return "\ufeff" }, 400},
	}
}
