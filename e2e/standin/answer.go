package standin

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Words that, anywhere in the newest user text, make an answer end in ways
// that cannot be asked for otherwise.
const (
	WordRefuse       = "STANDIN_REFUSE"        // a refusal before any output
	WordRefuseMidway = "STANDIN_MIDWAY_REFUSE" // a refusal after some text
	WordContextFull  = "STANDIN_CONTEXT_FULL"  // the context window is full after some text
)

// message is one answer, before it is written as JSON or as a stream.
type message struct {
	id           string
	model        string
	content      []content
	stopReason   string
	stopSequence string // "" for null
	refused      bool
	usage        usage
}

// content is one block of an answer.
type content struct {
	kind      string // text, thinking, tool_use
	text      string // of text and thinking
	signature string // of thinking
	id, name  string // of tool_use
	input     string // JSON of tool_use, incomplete when cut
	cut       bool   // max_tokens ended the answer inside this block
}

// answer makes up the reply to r; u holds the input side of its usage.
// Everything follows from the request alone.
func answer(r *request, u usage) *message {
	limit, _ := r.body.at("max_tokens").integer()
	a := &author{r: r, ask: newestAsk(r), left: int(limit), seed: r.seed()}
	a.m = &message{
		id: "msg_01" + a.id("message", 22), model: r.model.id, stopReason: "end_turn", usage: u,
	}
	if limit == 0 {
		a.m.stopReason = "max_tokens"
		return a.m
	}
	a.write()
	a.m.usage.output = int(limit) - a.left
	return a.m
}

// seed follows from the request, but not from whether it is streamed: both
// forms of an answer are the same.
func (r *request) seed() (seed [sha256.Size]byte) {
	sum := sha256.New()
	for i := 0; i < len(r.body.kids); i += 2 {
		if key := r.body.kids[i]; key.str() != "stream" {
			feed(sum, key.raw, r.body.kids[i+1].raw)
		}
	}
	sum.Sum(seed[:0])
	return seed
}

// author writes one message within its token limit.
type author struct {
	r    *request
	ask  ask
	m    *message
	left int // tokens until max_tokens
	seed [sha256.Size]byte
}

func (a *author) write() {
	if strings.Contains(a.ask.text, WordRefuse) {
		a.m.content = []content{{kind: "text"}}
		a.refuse()
		return
	}
	calls := a.calls()
	if a.r.thinks() && !a.r.forced() && !a.think(0) {
		return
	}
	switch {
	case len(calls) > 0:
		a.call(calls)
	case a.r.body.at("output_config").has("format"):
		a.say(fill(a.r.body.at("output_config").at("format").at("schema"), a.ask.city()))
	default:
		a.say(a.prose())
	}
	switch {
	case a.m.stopReason != "end_turn":
	case strings.Contains(a.ask.text, WordRefuseMidway):
		a.refuse()
	case strings.Contains(a.ask.text, WordContextFull):
		a.m.stopReason = "model_context_window_exceeded"
	}
}

func (a *author) refuse() {
	a.m.stopReason, a.m.refused = "refusal", true
}

// id derives n characters from the request and a purpose.
func (a *author) id(purpose string, n int) string {
	return deriveID(string(a.seed[:])+purpose, n)
}

const idAlphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// deriveID returns n characters, at most 32, that follow from seed.
func deriveID(seed string, n int) string {
	sum := sha256.Sum256([]byte(seed))
	out := make([]byte, n)
	for i := range out {
		out[i] = idAlphabet[int(sum[i])%len(idAlphabet)]
	}
	return string(out)
}

// thinkingTokens is what thinking costs at each effort.
var thinkingTokens = map[string]int{"low": 8, "medium": 16, "high": 24, "xhigh": 48, "max": 96}

// think adds a thinking block and tells whether tokens are left after it.
// Adaptive thinking is left out where it would take more than half of the
// limit; thinking with a budget takes what it needs.
func (a *author) think(turn int) bool {
	thinking := a.r.body.at("thinking")
	cost := thinkingTokens[a.effort()]
	if thinking.text("type") != "enabled" && cost*2 > a.left {
		return true
	}
	cost = min(cost, a.left)
	block := content{kind: "thinking"}
	if display := thinking.text("display"); display == "summarized" || display == "" && a.r.model.summarized {
		block.text = "The request is plain. A short and steady answer will do."
	}
	raw := []byte("stand-in signature " + a.id("signature"+strconv.Itoa(turn), 32))
	block.signature = "EqwC" + base64.StdEncoding.EncodeToString(raw)
	a.left -= cost
	a.m.usage.thinking += cost
	a.m.content = append(a.m.content, block)
	if a.left == 0 {
		a.m.content[len(a.m.content)-1].cut = true
		a.m.stopReason = "max_tokens"
	}
	return a.left > 0
}

func (a *author) effort() string {
	if effort := a.r.body.at("output_config").text("effort"); effort != "" {
		return effort
	}
	if a.r.model.id == "claude-opus-5-5" || a.r.model.id == "claude-haiku-5-5" {
		return "medium"
	}
	return "high"
}

// say adds a text block, cut at the first stop sequence or at the limit.
func (a *author) say(text string) {
	first := len(text)
	for _, stop := range a.r.body.at("stop_sequences").kids {
		if i := strings.Index(text, stop.str()); i >= 0 && i < first {
			first = i
			a.m.stopReason, a.m.stopSequence = "stop_sequence", stop.str()
		}
	}
	block := content{kind: "text", text: text[:first]}
	if block.text, block.cut = a.spend(block.text); block.cut {
		a.m.stopReason, a.m.stopSequence = "max_tokens", ""
	}
	a.m.content = append(a.m.content, block)
}

// spend takes the tokens of text from the limit and cuts what is too much,
// between two characters.
func (a *author) spend(text string) (kept string, cut bool) {
	if cost := textTokens(len(text)); cost <= a.left {
		a.left -= cost
		return text, false
	}
	end := a.left * bytesPerToken
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	a.left = 0
	return text[:end], true
}

// callsMax bounds the calls of one answer.
const callsMax = 16

// call is one tool call that the answer will make.
type call struct {
	name  string
	input string
}

// call adds the calls, after a sentence where the model does not think.
// At the highest efforts there is thinking between calls.
func (a *author) call(calls []call) {
	a.m.stopReason = "tool_use"
	if !a.r.thinks() && !a.r.forced() {
		a.say("I'll look that up.")
	}
	eager := slices.Contains([]string{"xhigh", "max"}, a.effort())
	for i, c := range calls {
		if i > 0 && eager && a.r.thinks() && !a.r.forced() && !a.think(i) {
			return
		}
		if a.m.stopReason == "max_tokens" || a.left == 0 {
			a.m.stopReason = "max_tokens"
			return
		}
		block := content{kind: "tool_use", id: "toolu_01" + a.id("call"+strconv.Itoa(i), 22), name: c.name}
		if block.input, block.cut = a.spend(c.input); block.cut {
			a.m.stopReason = "max_tokens"
		}
		a.m.content = append(a.m.content, block)
	}
}

var (
	wantsTool  = regexp.MustCompile(`(?i)\b(use|call|using) (the|a|your|both|all|these) tools?\b`)
	wantsTimes = regexp.MustCompile(`\b([0-9]{1,2}) times\b`)
)

// calls decides which tools to call: the forced ones, or those that the
// newest user text names or asks for.
func (a *author) calls() []call {
	tools := a.r.body.at("tools").kids
	choice := a.r.body.at("tool_choice")
	if len(tools) == 0 || choice.text("type") == "none" {
		return nil
	}
	if !a.r.forced() && !a.wantsCalls() {
		return nil
	}
	targets := a.ask.named(tools)
	if a.ask.answered && a.r.forced() {
		// A loop that is forced to call ends with a tool that has not been called, such as one that takes the result.
		if fresh := a.ask.uncalled(tools); len(fresh) > 0 {
			targets = fresh[:1]
		}
	}
	if name, named := choice.get("name"); named {
		targets = slices.DeleteFunc(slices.Clone(tools), func(tool node) bool { return tool.text("name") != name.str() })
	}
	if len(targets) == 0 && (a.r.forced() || wantsTool.MatchString(a.ask.text)) {
		targets = tools[:1]
	}
	var calls []call
	for _, tool := range targets {
		for _, city := range a.ask.citiesFor(tool) {
			calls = append(calls, call{tool.text("name"), fill(tool.at("input_schema"), city)})
		}
	}
	calls = calls[:min(len(calls), callsMax)]
	if len(calls) > 1 && choice.at("disable_parallel_tool_use").isTrue() {
		calls = calls[:1]
	}
	return calls
}

// wantsCalls is false once results are there, unless the user asked for the
// tool several times.
func (a *author) wantsCalls() bool {
	if !a.ask.answered {
		return true
	}
	times := wantsTimes.FindStringSubmatch(a.ask.text)
	if times == nil {
		return false
	}
	n, err := strconv.Atoi(times[1])
	return err == nil && a.ask.rounds < n
}

// prose is the text of an answer that calls no tool.
func (a *author) prose() string {
	if a.ask.answered {
		return "The tool says: " + strings.Join(a.ask.results, "; ") + "."
	}
	return reply(a.ask)
}

var (
	countFromTo = regexp.MustCompile(`(?i)\bcount from ([0-9]{1,4}) to ([0-9]{1,4})\b`)
	repeatAfter = regexp.MustCompile(`(?is)^repeat after me: (.+)$`)
	writeWords  = regexp.MustCompile(`(?i)\bwrite ([0-9]{1,5}) words\b`)
)

// reply obeys the few orders that tests give, and echoes everything else.
func reply(ask ask) string {
	if m := repeatAfter.FindStringSubmatch(ask.text); m != nil {
		return m[1]
	}
	if m := countFromTo.FindStringSubmatch(ask.text); m != nil {
		from, to := atoi(m[1]), atoi(m[2])
		var lines []string
		for n := from; n <= to; n++ {
			lines = append(lines, strconv.Itoa(n))
		}
		return strings.Join(lines, "\n")
	}
	if m := writeWords.FindStringSubmatch(ask.text); m != nil {
		vocabulary := strings.Fields("a quiet river carries small boats past the old mill and on to the wide sea")
		words := make([]string, atoi(m[1]))
		for i := range words {
			words[i] = vocabulary[i%len(vocabulary)]
		}
		return strings.Join(words, " ")
	}
	text := fmt.Sprintf("You wrote: %q.", shorten(ask.text, 200))
	if ask.media > 0 {
		text += fmt.Sprintf(" You sent %d images or documents.", ask.media)
	}
	return text
}

// atoi reads digits that a pattern has matched.
func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err)
	}
	return n
}

func shorten(text string, runesMax int) string {
	runes := []rune(text)
	if len(runes) <= runesMax {
		return text
	}
	return string(runes[:runesMax]) + "…"
}
