// Built on the second opinions, and left out with them: see opinions_test.go.
//go:build !fuzzing

package translate_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// saidPart is a content part that a client may send.
type saidPart struct {
	json  string
	roles string // that take it
	up    string // the block that goes up, as upBlock describes it; "" for a part that is left out
	// bad is how the refusal goes on behind the part's index: where a role in roles
	// sends it, or everywhere when roles is empty.
	bad    string
	reason string // why the upstream refuses it
}

const (
	everyRole = "system developer user assistant tool"
	fileRoles = "user tool"

	pngData  = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	gifData  = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
	jpegData = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//"
	webpData = "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEA"
	pdfData  = "JVBERi0xLjQKMSAwIG9iago8PD4+CmVuZG9iagp0cmFpbGVyCjw8Pj4KJSVFT0YK"
	textData = "aGVsbG8gd29ybGQhIQ=="
)

func textPart(text string) saidPart {
	part := saidPart{json: `{"type":"text","text":` + string(quoted(text)) + `}`, roles: everyRole}
	if text != "" {
		part.up = fmt.Sprintf("text %q", text)
	}
	return part
}

func imagePart(url, up string) saidPart {
	return saidPart{json: `{"type":"image_url","image_url":{"url":"` + url + `","detail":"high"}}`, roles: fileRoles, up: up}
}

func filePart(file, up string) saidPart {
	return saidPart{json: `{"type":"file","file":{` + file + `}}`, roles: fileRoles, up: up}
}

func badPart(json, bad string) saidPart { return saidPart{json: json, bad: bad} }

func badFile(part saidPart, bad string) saidPart {
	part.up, part.bad = "", bad
	return part
}

func refusedUpstream(part saidPart, reason string) saidPart {
	part.reason = reason
	return part
}

// parts are the kinds of content parts: the contract's table and decisions 8, 10, 11,
// 17, 24 and 25.
var parts = []saidPart{
	textPart("A"),
	textPart(""),
	textPart(" \n"),
	textPart("é <&> \"q\" \\ 🎉"),
	{json: `{"type":"text","text":"half \ud83c","name":"x","prompt_cache_breakpoint":{"mode":"explicit"}}`, roles: everyRole, up: "text \"half \ufffd\""},
	{json: `{"type":"refusal","refusal":"I can't"}`, roles: "assistant"},
	imagePart("data:image/png;base64,"+pngData, "image image/png "+pngData),
	imagePart("data:image/jpeg;base64,"+jpegData, "image image/jpeg "+jpegData),
	imagePart("data:image/webp;base64,"+webpData, "image image/webp "+webpData),
	imagePart("DATA:Image/JPG;charset=utf-8;BASE64,"+gifData[:20]+` \n`+gifData[20:], "image image/gif "+gifData),
	refusedUpstream(imagePart("data:image/png;base64,"+textData, "image image/png "+textData), "unknown bytes"),
	refusedUpstream(imagePart("data:image/png;base64,iVBORw0KGgoAAAANSR==", "image image/png iVBORw0KGgoAAAANSR=="), "stray bits"),
	badFile(imagePart("data:image/svg+xml;base64,"+textData, ""), ".image_url.url: "),
	badFile(imagePart("data:image/png;base64,", ""), ".image_url.url: "),
	badFile(imagePart("data:image/png;base64,iVBO*w0K", ""), ".image_url.url: "),
	badFile(imagePart("data:image/png,iVBO", ""), ".image_url.url: "),
	badFile(imagePart("data:image/png;base64,"+pdfData, ""), ".image_url.url: "),
	badFile(imagePart("ftp://example.com/a.png", ""), ".image_url.url: "),
	filePart(`"file_data":"data:application/pdf;base64,`+pdfData+`","filename":"a.pdf"`, "document application/pdf "+pdfData),
	refusedUpstream(filePart(`"file_data":"data:application/pdf;base64,`+textData+`"`, "document application/pdf "+textData), "no PDF"),
	badFile(filePart(`"file_id":"file-1"`, ""), ".file: send the PDF as file_data (a base64 data URL); file_id is not supported"),
	badFile(filePart(`"file_data":"data:text/plain;base64,`+textData+`"`, ""), ".file.file_data: "),
	badFile(filePart(`"file_data":"`+pdfData+`"`, ""), ".file.file_data: "),
	badFile(filePart(``, ""), ".file.file_data: "),
	badPart(`{"type":"input_audio","input_audio":{"data":"","format":"wav"}}`, ": audio input is not supported"),
	badPart(`{"type":"video_url","video_url":{"url":"x"}}`, ".type: "),
	badPart(`{"text":"A"}`, ".type: "),
	badPart(`"A"`, ": must be an object"),
	badPart(`null`, ": must be an object"),
	badPart(`{"type":"text"}`, ".text: "),
	badPart(`{"type":"text","text":null}`, ".text: "),
	badPart(`{"type":"text","text":"A","text":"B"}`, ".text: duplicate field"),
}

// saidCall is a tool call of an assistant message.
type saidCall struct{ id, arguments, input string }

// saidMessage is a message that a client may send.
type saidMessage struct {
	role    string
	content string     // JSON, used where parts is nil
	parts   []saidPart // of a list, or the one of a string
	calls   []saidCall
	answers string // tool_call_id
}

// saidText is a message whose content is a string.
func saidText(role, text string) saidMessage {
	return saidMessage{role: role, content: string(quoted(text)), parts: []saidPart{textPart(text)}}
}

// saidList is a message whose content is a list of parts.
func saidList(role string, parts ...saidPart) saidMessage {
	var list []string
	for _, part := range parts {
		list = append(list, part.json)
	}
	return saidMessage{role: role, content: "[" + strings.Join(list, ",") + "]", parts: parts}
}

func (m saidMessage) json() string {
	fields := []string{`"role":"` + m.role + `"`}
	if m.content != "" {
		fields = append(fields, `"content":`+m.content)
	}
	if m.calls != nil {
		var calls []string
		for _, c := range m.calls {
			calls = append(calls, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":"f","arguments":%s}}`, quoted(c.id), quoted(c.arguments)))
		}
		fields = append(fields, `"tool_calls":[`+strings.Join(calls, ",")+`]`)
	}
	if m.answers != "" {
		fields = append(fields, `"tool_call_id":`+string(quoted(m.answers)))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// wantTurn is a turn that must go up.
type wantTurn struct {
	assistant       bool
	results, blocks []string
	texts           []string // of the texts among its blocks
}

// wanted is what must become of a conversation: decisions 10 to 16, told once more and
// in another way than the core does.
type wanted struct {
	ids     map[string]string // foreign call ids as they go up
	refused string            // how the refusal begins, "" for none
	system  []string
	turns   []wantTurn
	reasons []string // why the upstream refuses it

	spoken bool        // some message is neither system nor developer
	open   []*wantCall // the calls of the newest assistant turn
	seen   map[string]int
}

type wantCall struct {
	path     string
	id, up   string
	answered bool
}

func want(messages []saidMessage, ids map[string]string) *wanted {
	w := &wanted{ids: ids, seen: map[string]int{}}
	for i := range messages {
		if w.message(i, &messages[i]); w.refused != "" {
			return w
		}
	}
	if !w.spoken {
		w.refused = noUser
	} else if w.unanswered(); w.refused == "" {
		w.finish()
	}
	return w
}

func (w *wanted) message(i int, m *saidMessage) {
	at := "messages[" + strconv.Itoa(i) + "]"
	w.spoken = w.spoken || m.role != "system" && m.role != "developer"
	var answered *wantCall
	switch m.role {
	case "function":
		w.refused = at + `.role: the legacy "function" role is not supported; use tools`
		return
	case "tool":
		k := slices.IndexFunc(w.open, func(c *wantCall) bool { return c.id == m.answers && !c.answered })
		if k < 0 {
			w.refused = at + ".tool_call_id: "
			return
		}
		answered = w.open[k]
		answered.answered = true
	}
	blocks, texts, bad := w.content(m)
	if bad != "" {
		w.refused = at + bad
		return
	}
	switch m.role {
	case "system", "developer":
		for k, text := range texts {
			if strings.TrimSpace(text) != "" {
				w.system = append(w.system, blocks[k])
			}
		}
	case "user":
		if len(blocks) == 0 {
			w.refused = at + ".content: "
			return
		}
		w.turn(false).add(blocks, texts)
	case "tool":
		t := w.turn(false)
		t.results = append(t.results, fmt.Sprintf("result %s %s", answered.up, strings.Join(blocks, ", ")))
	case "assistant":
		w.assistant(at, m, blocks, texts)
	}
}

func (w *wanted) assistant(at string, m *saidMessage, blocks, texts []string) {
	if len(blocks) == 0 && len(m.calls) == 0 {
		return
	}
	if n := len(w.turns); n > 0 && !w.turns[n-1].assistant {
		if w.unanswered(); w.refused != "" {
			return
		}
		w.open = nil
	}
	t := w.turn(true)
	t.add(blocks, texts)
	for k, c := range m.calls {
		call := &wantCall{path: fmt.Sprintf("%s.tool_calls[%d].id", at, k), id: c.id, up: w.id(c.id, w.seen[c.id])}
		w.open = append(w.open, call)
		t.blocks = append(t.blocks, fmt.Sprintf("call %s f %s", call.up, c.input))
		w.seen[c.id]++
	}
}

// unanswered refuses a call without a result.
func (w *wanted) unanswered() {
	for _, c := range w.open {
		if !c.answered {
			w.refused = c.path + ": "
			return
		}
	}
}

const noUser = "messages: must contain at least one user message"

func (w *wanted) because(reason string) { w.reasons = append(w.reasons, reason) }

// id is what becomes of a call's id that so many calls before it had.
func (w *wanted) id(id string, uses int) string {
	mapped, foreign := w.ids[id]
	switch {
	case uses == 0 && foreign:
		return mapped
	case uses == 0:
		return id
	case !foreign:
		mapped = "ezatid-" + strings.ReplaceAll(id, "_", "_5F")
	}
	return mapped + "__" + strconv.Itoa(uses)
}

func (w *wanted) turn(assistant bool) *wantTurn {
	if n := len(w.turns); n == 0 || w.turns[n-1].assistant != assistant {
		w.turns = append(w.turns, wantTurn{assistant: assistant})
	}
	return &w.turns[len(w.turns)-1]
}

func (t *wantTurn) add(blocks, texts []string) {
	t.blocks = append(t.blocks, blocks...)
	t.texts = append(t.texts, texts...)
}

// content gives the blocks of a message and the texts among them, or how its refusal
// goes on behind the message's index.
func (w *wanted) content(m *saidMessage) (blocks, texts []string, bad string) {
	for k, part := range m.parts {
		at := fmt.Sprintf(".content[%d]", k)
		switch takes := slices.Contains(strings.Fields(part.roles), m.role); {
		case part.roles == "":
			return nil, nil, at + part.bad
		case !takes:
			return nil, nil, at + ".type: "
		case part.bad != "":
			return nil, nil, at + part.bad
		case part.up == "":
			continue
		}
		blocks = append(blocks, part.up)
		if part.reason != "" {
			w.because(part.reason)
		}
		if quoted, ok := strings.CutPrefix(part.up, "text "); ok {
			text, err := strconv.Unquote(quoted)
			if err != nil {
				panic(err) // the table's own text
			}
			texts = append(texts, text)
		}
	}
	return blocks, texts, ""
}

// finish applies decision 16 and finds why the upstream refuses what is left.
func (w *wanted) finish() {
	for len(w.turns) > 0 && w.turns[len(w.turns)-1].assistant {
		t := &w.turns[len(w.turns)-1]
		last, end := len(t.blocks)-1, len(t.texts)-1
		t.texts[end] = strings.TrimSpace("|" + t.texts[end])[1:]
		t.blocks[last] = fmt.Sprintf("text %q", t.texts[end])
		if t.texts[end] != "" {
			break
		}
		t.blocks, t.texts = t.blocks[:last], t.texts[:end]
		if last == 0 {
			w.turns = w.turns[:len(w.turns)-1]
		}
	}
	if len(w.turns) == 0 {
		w.refused = noUser
		return
	}
	if w.turns[0].assistant {
		w.because("assistant first")
	}
	for _, t := range w.turns {
		if len(t.texts) > 0 && strings.TrimSpace(strings.Join(t.texts, "")) == "" {
			w.because("blank text")
		}
	}
}

func (w *wanted) prefill() bool { return w.turns[len(w.turns)-1].assistant }

// lines describe what must go up as upBody does.
func (w *wanted) lines() []string {
	lines := []string{"system: " + strings.Join(w.system, ", ")}
	for _, t := range w.turns {
		role := "user: "
		if t.assistant {
			role = "assistant: "
		}
		lines = append(lines, role+strings.Join(append(slices.Clone(t.results), t.blocks...), ", "))
	}
	return lines
}

// marks are the automatic breakpoints that must go up.
func (w *wanted) marks(tools int) []string {
	var marks []string
	switch {
	case len(w.system) > 0:
		marks = append(marks, fmt.Sprintf("system.%d", len(w.system)-1)+automaticMark)
	case tools > 0:
		marks = append(marks, fmt.Sprintf("tools.%d", tools-1)+automaticMark)
	}
	last := w.turns[len(w.turns)-1]
	return append(marks, fmt.Sprintf("messages.%d.%d", len(w.turns)-1, len(last.results)+len(last.blocks)-1)+automaticMark)
}

// conversations holds conversations against the core and the stand-in.
type conversations struct {
	*filter
	*ledger
	stopper
	ids map[string]string // foreign call ids as they went up the first time
	n   int
}

// foreignID is an id that the upstream does not take.
var foreignID = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

func newConversations(names ...string) *conversations {
	return &conversations{filter: newFilter(), ledger: newLedger(names...), ids: map[string]string{}}
}

// learn finds out, once for each id, how it goes up, and that it meets no other.
func (c *conversations) learn(t *testing.T, id string) {
	t.Helper()
	if c.ids[id] != "" || !foreignID.MatchString(id) {
		return
	}
	body, refusal := c.up(`{"model":"m","messages":[` + saidText("user", "go").json() + `,` +
		saidMessage{role: "assistant", calls: []saidCall{{id, "", "{}"}}}.json() + `,` +
		saidMessage{role: "tool", answers: id}.json() + `]}`)
	if refusal != nil {
		t.Fatal(refusal)
	}
	up := readUp(t, body)
	mapped := up.Messages[1].Content[0].ID
	if mapped == "" || foreignID.MatchString(mapped) || up.Messages[2].Content[0].ToolUseID != mapped {
		t.Fatalf("the id %q goes up so: %s", id, body)
	}
	for other, taken := range c.ids {
		if taken == mapped {
			t.Fatalf("the ids %q and %q both become %q", id, other, mapped)
		}
	}
	c.ids[id] = mapped
}

// try sends one conversation. Every other one goes to a model that takes prefill, has
// tools, or has automatic caching off.
func (c *conversations) try(t *testing.T, messages []saidMessage) {
	t.Helper()
	c.n++
	model, tools := "claude-sonnet-5-5", 0
	var list []string
	for _, m := range messages {
		list = append(list, m.json())
		for _, call := range m.calls {
			c.learn(t, call.id)
		}
	}
	body := `"messages":[` + strings.Join(list, ",") + `]}`
	if c.n%4 < 2 {
		body, tools = `"tools":[{"type":"function","function":{"name":"f"}}],`+body, 1
	}
	if c.n%2 == 0 {
		model = "claude-haiku-4-5"
	}
	body = `{"model":"` + model + `",` + body
	c.autoCache = c.n%8 != 0
	w := want(messages, c.ids)
	out, refusal := c.up(body)
	if w.refused != "" {
		c.note(t, refusedFor(t, body, refusal, w.refused))
		return
	}
	if refusal != nil {
		t.Errorf("refused: %s:\n%s", refusal.Message, body)
		c.note(t, false)
		return
	}
	if w.prefill() && model != "claude-haiku-4-5" {
		w.because("prefill")
	}
	up := readUp(t, out)
	var marks []string
	if c.autoCache {
		marks = w.marks(tools)
	}
	c.note(t, same(t, "conversation", up.conversation(), w.lines(), body) &&
		same(t, "breakpoints", up.marks(t), marks, body) &&
		c.hold(t, out, w.reasons))
}

// kindOfMessage makes a message; open are the ids of the calls that have no result yet.
type kindOfMessage struct {
	name string
	make func(id func() string, open []string) saidMessage
}

func fixed(name string, m saidMessage) kindOfMessage {
	return kindOfMessage{name, func(func() string, []string) saidMessage { return m }}
}

func withContent(role, content string) saidMessage { return saidMessage{role: role, content: content} }

// calling makes an assistant message with calls, whose ids have the given beginnings;
// "same" is always the same id.
func calling(name string, m saidMessage, prefixes ...string) kindOfMessage {
	return kindOfMessage{name, func(id func() string, _ []string) saidMessage {
		m.calls = nil
		for k, prefix := range prefixes {
			call := saidCall{id: prefix + id(), arguments: "", input: "{}"}
			if prefix == "same" {
				call.id = "same"
			}
			if k%2 == 1 {
				call.arguments, call.input = ` {"a": 1.50, "b":"\u00e9"} `, `{"a": 1.50, "b":"\u00e9"}`
			}
			m.calls = append(m.calls, call)
		}
		return m
	}}
}

// answering makes a tool message that answers the call that pick chooses.
func answering(name string, m saidMessage, pick func(open []string) string) kindOfMessage {
	return kindOfMessage{name, func(_ func() string, open []string) saidMessage {
		m.answers = "call_none"
		if len(open) > 0 {
			m.answers = pick(open)
		}
		return m
	}}
}

func first(open []string) string { return open[0] }
func last(open []string) string  { return open[len(open)-1] }
func none([]string) string       { return "call_none" }

var (
	somePNG = imagePart("data:image/png;base64,"+pngData, "image image/png "+pngData)
	somePDF = filePart(`"file_data":"data:application/pdf;base64,`+pdfData+`"`, "document application/pdf "+pdfData)
	refusal = saidPart{json: `{"type":"refusal","refusal":"no"}`, roles: "assistant"}
)

// common are the kinds of messages of which conversations are mostly made.
var common = []kindOfMessage{
	fixed("system", saidText("system", "S")),
	fixed("user", saidText("user", "U")),
	fixed("user, blank", saidText("user", " ")),
	fixed("assistant", saidText("assistant", "A")),
	fixed("assistant, null", withContent("assistant", "null")),
	fixed("assistant, white space behind", saidText("assistant", "A \n")),
	calling("call", withContent("assistant", "null"), "call_"),
	calling("text and two calls", saidText("assistant", "I'll look."), "call_", "call_"),
	calling("the same id", saidMessage{role: "assistant"}, "same"),
	answering("result", saidText("tool", "R"), first),
	answering("last result", saidText("tool", "R"), last),
	answering("result of nothing", saidText("tool", "R"), none),
}

// rare are the others.
var rare = []kindOfMessage{
	fixed("system, blank", saidText("system", " \n")),
	fixed("system, parts", saidList("system", textPart("S"), textPart(""), textPart(" "), textPart("T"))),
	fixed("developer", saidText("developer", "D")),
	fixed("user, empty", saidText("user", "")),
	fixed("user, null", withContent("user", "null")),
	fixed("user, no parts", saidList("user")),
	fixed("user, parts", saidList("user", textPart("U"), textPart(""), somePNG)),
	fixed("user, PDF", saidList("user", somePDF)),
	fixed("user, blank and image", saidList("user", textPart("\t"), somePNG)),
	fixed("assistant, no content", saidMessage{role: "assistant"}),
	fixed("assistant, refusal", saidList("assistant", refusal)),
	fixed("assistant, blank", saidText("assistant", "\n ")),
	fixed("assistant, parts", saidList("assistant", textPart("A"), refusal, textPart(""))),
	fixed("assistant, white space behind in parts", saidList("assistant", textPart("A\u00a0"), textPart(" "))),
	calling("no calls", withContent("assistant", `""`)),
	calling("foreign ids", saidText("assistant", ""), "functions.f:", "functions.f_3A"),
	calling("three calls", withContent("assistant", "null"), "toolu_", "call-", "日本"),
	answering("result, empty", saidText("tool", ""), first),
	answering("result, null", withContent("tool", "null"), last),
	answering("result, blank", saidText("tool", " "), first),
	answering("result, parts", saidList("tool", somePNG, textPart("R"), textPart(""), somePDF), first),
	fixed("function", withContent("function", `"x"`)),
}

// build makes a conversation of these kinds.
func build(kinds []kindOfMessage) []saidMessage {
	n := 0
	id := func() string { n++; return strconv.Itoa(n) }
	var open []string
	var messages []saidMessage
	for _, kind := range kinds {
		m := kind.make(id, open)
		for _, c := range m.calls {
			open = append(open, c.id)
		}
		if k := slices.Index(open, m.answers); m.answers != "" && k >= 0 {
			open = slices.Delete(slices.Clone(open), k, k+1)
		}
		messages = append(messages, m)
	}
	return messages
}

// sequences calls yield with every sequence of n of the kinds.
func sequences(kinds []kindOfMessage, n int, yield func([]kindOfMessage)) {
	sequence := make([]kindOfMessage, n)
	var fill func(int)
	fill = func(i int) {
		if i == n {
			yield(sequence)
			return
		}
		for _, kind := range kinds {
			sequence[i] = kind
			fill(i + 1)
		}
	}
	fill(0)
}

// TestKindsOfConversations sends every sequence of up to three messages of all kinds
// and of four of the common ones, and long random ones.
func TestKindsOfConversations(t *testing.T) {
	c := newConversations("assistant first", "prefill", "blank text")
	try := func(kinds []kindOfMessage) { c.try(t, build(kinds)) }
	every := append(slices.Clone(common), rare...)
	for n := range 4 {
		sequences(every, n, try)
	}
	sequences(common, 4, try)
	for seed := range uint64(2500) {
		try(randomKinds(rand.New(rand.NewPCG(7, seed)), every))
	}
	if len(c.ids) < 20 {
		t.Errorf("only %d foreign ids came", len(c.ids))
	}
	c.check(t, 3000)
}

// randomKinds is a long sequence that is mostly as an agent's conversation is: calls are
// followed by as many results, now and then with something between them.
func randomKinds(rnd *rand.Rand, every []kindOfMessage) []kindOfMessage {
	calls := map[string]int{"call": 1, "text and two calls": 2, "the same id": 1, "foreign ids": 2, "three calls": 3}
	odd := []string{"result of nothing", "function", "user, empty", "user, null", "user, no parts", "user, blank", "user, blank and image", "assistant, blank"}
	var results, good []kindOfMessage
	for _, kind := range every {
		switch {
		case slices.Contains(odd, kind.name):
		case strings.HasPrefix(kind.name, "result"), kind.name == "last result":
			results = append(results, kind)
		default:
			good = append(good, kind)
		}
	}
	sequence := []kindOfMessage{every[1]}
	for range 4 + rnd.IntN(12) {
		kind := pick(rnd, good)
		if rnd.IntN(60) == 0 {
			kind = pick(rnd, every)
		}
		sequence = append(sequence, kind)
		for range calls[kind.name] {
			if rnd.IntN(12) == 0 {
				sequence = append(sequence, pick(rnd, good[:2]))
			}
			sequence = append(sequence, pick(rnd, results))
		}
	}
	return sequence
}

// TestKindsOfParts sends every list of up to two parts of all kinds in every role, and
// longer random ones.
func TestKindsOfParts(t *testing.T) {
	c := newConversations("blank text", "unknown bytes", "stray bits", "no PDF", "prefill")
	for _, role := range strings.Fields(everyRole) {
		try := func(list ...saidPart) { c.try(t, around(saidList(role, list...))) }
		try()
		for _, a := range parts {
			try(a)
			for _, b := range parts {
				try(a, b)
			}
		}
		for seed := range uint64(1500) {
			rnd := rand.New(rand.NewPCG(3, seed))
			list := make([]saidPart, 3+rnd.IntN(6))
			for i := range list {
				for list[i] = pick(rnd, parts); list[i].bad+list[i].reason != "" && rnd.IntN(40) > 0; {
					list[i] = pick(rnd, parts)
				}
			}
			try(list...)
		}
	}
	c.check(t, 900)
}

// around puts a message where it may stand.
func around(m saidMessage) []saidMessage {
	opening := saidText("user", "go")
	switch m.role {
	case "tool":
		m.answers = "call_1"
		return []saidMessage{opening, {role: "assistant", calls: []saidCall{{"call_1", "", "{}"}}}, m}
	case "user":
		return []saidMessage{m}
	}
	return []saidMessage{opening, m}
}
