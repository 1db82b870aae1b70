// Built on the second opinions, and left out with them: see opinions_test.go.
//go:build !fuzzing

package translate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ezat.io/chat-completions/e2e/standin"
	"ezat.io/chat-completions/translate"
	"ezat.io/chat-completions/translate/cases"
)

// Whole kinds: what clients may send is put together from pieces, all combinations
// where they are few and seeded random ones where they are many. For each the test
// knows by itself, from the contract and the decisions, what must go up or why the
// request is refused; and what goes up is held against the strict stand-in, which
// accepts all of it but for the reasons listed here.

// reason is why a request that the filter accepts may be refused upstream.
type reason struct {
	decision string         // what lets it pass
	message  *regexp.Regexp // what the stand-in says then
}

func because(decision, message string) reason { return reason{decision, regexp.MustCompile(message)} }

// reasons are all of them, by name.
var reasons = map[string]reason{
	"assistant first":       because("43", `^messages: first message must use the "user" role`),
	"prefill":               because("43: prefill on models without it", `does not support assistant message prefill`),
	"prefill with a format": because("43", `structured outputs are incompatible with assistant message prefill`),
	"blank text":            because("11: only empty text is left out; 43", `must contain non-whitespace text`),
	"unknown bytes":         because("25: only bytes of the four types correct the declared one; 43", `Could not process image`),
	"stray bits":            because("24: only what is no base64 is broken; 43", `Invalid base64 data`),
	"no PDF":                because("43: the bytes of a document are not looked at", `The PDF specified was not valid`),

	"unknown model":     because("43; the contract's 404", `^model: gpt-9$`),
	"lacking level":     because("22", `output_config.effort: '(xhigh|max)' is not supported`),
	"forced choice":     because("43: forced choices on models that refuse them", `type "tool" and "any" are not supported`),
	"equal tool names":  because("43", `Tool names must be unique`),
	"tool name":         because("18: names go up unchanged", `custom.name: String should (match pattern|have at most)`),
	"schema type":       because("18: nothing else in a schema is touched", `input_schema.type: Input should be 'object'`),
	"schema combinator": because("18: nothing else in a schema is touched", `does not support oneOf, allOf, or anyOf`),
	"schema keyword":    because("18: nothing else in a schema is touched", `JSON schema is invalid`),
	"strict schema":     because("18: nothing else in a schema is touched", `input_schema: For 'object' type, 'additionalProperties'`),
	"many strict tools": because("43", `Too many strict tools`),
	"output schema":     because("21: the schema goes up; the contract's row on additionalProperties", `format.schema: For 'object' type, 'additionalProperties'`),
	"too many tokens":   because("43: a limit above the model's", `which is the maximum allowed number of output tokens`),
	"negative sampling": because("43: the contract caps only from above", `^(temperature|top_p): range: 0..1$`),
	"five marks":        because("29: more than four marks go up", `A maximum of 4 blocks with cache_control`),
	"short mark first":  because("29: a client's ttl is kept", `a ttl='1h' cache_control block must not come after`),
	"unknown mark":      because("29: any type and ttl go up", `cache_control: Input tag 'forever'|cache_control.*ttl: Input should be '5m' or '1h'`),
}

// ledger holds what goes up against the stand-in and notes which reasons occur.
type ledger struct {
	seen     map[string]int
	accepted int
	checked  int
	fields   exceptions // of the second opinion
}

// newLedger takes the reasons that must occur.
func newLedger(names ...string) *ledger {
	l := &ledger{seen: map[string]int{}, fields: except(map[string]string{
		"stream": "no field of the client's type", "temperature": "the same", "top_p": "the same",
	})}
	for _, name := range names {
		if reasons[name].message == nil {
			panic("no such reason: " + name)
		}
		l.seen[name] = 0
	}
	return l
}

var upstreamHeader = http.Header{
	"Content-Type":      {"application/json"},
	"Anthropic-Version": {"2023-06-01"},
	"X-Api-Key":         {cases.Key},
}

// hold sends a body to the stand-in. It must accept it, unless expected names why it
// does not; then it must refuse it, for one of these reasons. Some of the accepted ones
// are shown to the official client too.
func (l *ledger) hold(t *testing.T, body []byte, expected []string) bool {
	t.Helper()
	l.checked++
	refusal := standin.Check(upstreamHeader, body)
	if refusal == nil {
		if len(expected) > 0 {
			t.Errorf("the stand-in accepts, in spite of %q:\n%s", expected, body)
			return false
		}
		l.accepted++
		if l.accepted%97 == 0 {
			if diff := anthropicDiff(body, l.fields); diff != "" {
				t.Errorf("the official client: %s", diff)
				return false
			}
		}
		return true
	}
	for _, name := range expected {
		if _, ok := l.seen[name]; ok && reasons[name].message.MatchString(refusal.Message) {
			l.seen[name]++
			return true
		}
	}
	t.Errorf("the stand-in refuses what goes up: %v; expected are the reasons %q\n%s", refusal, expected, body)
	return false
}

// check demands that every reason has occurred, and that enough was accepted.
func (l *ledger) check(t *testing.T, acceptedMin int) {
	t.Helper()
	for name, n := range l.seen {
		if n == 0 {
			t.Errorf("the reason %q does not occur (decision %s)", name, reasons[name].decision)
		}
	}
	if l.accepted < acceptedMin {
		t.Errorf("the stand-in accepted %d of %d requests, want at least %d", l.accepted, l.checked, acceptedMin)
	}
	t.Logf("%d requests went up, %d were accepted; reasons: %v", l.checked, l.accepted, l.seen)
}

// filter is the core as the filter uses it, with one parser for all requests.
type filter struct {
	parser    translate.Parser
	models    *translate.Models
	autoCache bool
}

func newFilter() *filter {
	return &filter{models: translate.NewModels("anthropic/", nil), autoCache: true}
}

// up is what goes up for a body, or the refusal.
func (f *filter) up(body string) ([]byte, *translate.Error) {
	request, refusal := f.parser.Parse([]byte(body))
	if refusal != nil {
		return nil, refusal
	}
	plan, refusal := translate.Decide(request, &translate.Env{Models: f.models, AutoCache: f.autoCache})
	if refusal != nil {
		return nil, refusal
	}
	var out []byte
	plan.Write(func(piece []byte) { out = append(out, piece...) })
	return out, nil
}

// refusedFor checks that a refusal is the contract's 400 and begins as it must.
func refusedFor(t *testing.T, body string, refusal *translate.Error, want string) bool {
	t.Helper()
	if refusal == nil {
		t.Errorf("accepted, want a refusal that begins with %q:\n%s", want, body)
		return false
	}
	if refusal.Status != 400 || refusal.Type != "invalid_request_error" || refusal.Code != "" || refusal.Param != "" ||
		!strings.HasPrefix(refusal.Message, want) {
		t.Errorf("refused with %d %s %q %q %q, want a message that begins with %q:\n%s",
			refusal.Status, refusal.Type, refusal.Code, refusal.Param, refusal.Message, want, body)
		return false
	}
	return true
}

// upBody is an upstream's request, as far as the tests look into it.
type upBody struct {
	System   []upBlock         `json:"system"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string    `json:"role"`
		Content []upBlock `json:"content"`
	} `json:"messages"`
}

type upBlock struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   []upBlock       `json:"content"`
	Mark      json.RawMessage `json:"cache_control"`
}

func readUp(t *testing.T, body []byte) upBody {
	t.Helper()
	var up upBody
	if err := json.Unmarshal(body, &up); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return up
}

// String describes a block without its mark.
func (b *upBlock) String() string {
	switch b.Type {
	case "text":
		return fmt.Sprintf("text %q", b.Text)
	case "image", "document":
		return fmt.Sprintf("%s %s %s", b.Type, b.Source.MediaType, b.Source.Data)
	case "tool_use":
		return fmt.Sprintf("call %s %s %s", b.ID, b.Name, b.Input)
	case "tool_result":
		return fmt.Sprintf("result %s %s", b.ToolUseID, strings.Join(described(b.Content), ", "))
	}
	return "unknown " + b.Type
}

func described(blocks []upBlock) []string {
	var all []string
	for i := range blocks {
		all = append(all, blocks[i].String())
	}
	return all
}

// conversation describes the messages, one line a turn, the system prompt first.
func (u *upBody) conversation() []string {
	lines := []string{"system: " + strings.Join(described(u.System), ", ")}
	for _, m := range u.Messages {
		lines = append(lines, m.Role+": "+strings.Join(described(m.Content), ", "))
	}
	return lines
}

// marks lists the places that carry a cache breakpoint, in the order of the prompt,
// with the breakpoint as spelled.
func (u *upBody) marks(t *testing.T) []string {
	t.Helper()
	var found []string
	for i, raw := range u.Tools {
		var tool upBlock
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		found = append(found, markAt(fmt.Sprintf("tools.%d", i), tool.Mark)...)
	}
	for i, b := range u.System {
		found = append(found, markAt(fmt.Sprintf("system.%d", i), b.Mark)...)
	}
	for i, m := range u.Messages {
		for k, b := range m.Content {
			at := fmt.Sprintf("messages.%d.%d", i, k)
			for l, inner := range b.Content {
				found = append(found, markAt(fmt.Sprintf("%s.%d", at, l), inner.Mark)...)
			}
			found = append(found, markAt(at, b.Mark)...)
		}
	}
	return found
}

func markAt(place string, mark json.RawMessage) []string {
	if mark == nil {
		return nil
	}
	return []string{place + " " + string(mark)}
}

const automaticMark = ` {"type":"ephemeral"}`

// same compares what goes up with what must, line by line.
func same(t *testing.T, what string, got, want []string, bodies ...any) bool {
	t.Helper()
	if slices.Equal(got, want) {
		return true
	}
	t.Errorf("%s:\n  got  %s\n  want %s\n%s", what, strings.Join(got, "\n       "), strings.Join(want, "\n       "), fmt.Sprintln(bodies...))
	return false
}

// faultsMax is how many faults a test of many combinations reports before it stops.
const faultsMax = 10

// stopper counts the combinations that fail.
type stopper struct{ faults int }

func (s *stopper) note(t *testing.T, ok bool) {
	t.Helper()
	if ok {
		return
	}
	if s.faults++; s.faults >= faultsMax {
		t.Fatalf("%d combinations have failed, which is enough", s.faults)
	}
}
