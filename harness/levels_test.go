package harness_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ezat.io/chat-completions/harness"
	"ezat.io/chat-completions/translate"
	"ezat.io/chat-completions/translate/cases"
)

// FuzzLevels plays the same exchange at three levels: the core called directly, the
// module with both bodies in one piece, and the module with borders anywhere in both.
// What goes up, what the client gets and what is recorded must be the same to the byte,
// and nothing may be logged as a fault.
//
// Seeds are the corpus, and exchanges made by a grammar, which how decides: so the fuzzer
// varies bytes as well as shapes. See recipe.
func FuzzLevels(f *testing.F) {
	// A few: each of them runs before anything new does. TestLevelsAgree has them all.
	for i, e := range corpusExchanges(f) {
		if i%12 == 0 {
			f.Add(e.request, e.answer, e.how)
		}
	}
	for seed := range uint64(48) {
		f.Add([]byte(nil), []byte(nil), made(seed))
	}
	l := newLevels(f)
	f.Fuzz(func(t *testing.T, request, answer []byte, how uint64) {
		// A bound, so that one guest serves them all.
		if len(request)+len(answer) <= 256<<10 {
			l.agree(t, recipe(request, answer, how), how)
		}
	})
}

// TestLevelsAgree is the same with the whole corpus and a thousand made exchanges.
func TestLevelsAgree(t *testing.T) {
	l := newLevels(t)
	for _, e := range corpusExchanges(t) {
		l.agree(t, recipe(e.request, e.answer, e.how), e.how)
	}
	statuses := map[int]int{}
	for seed := range uint64(1000) {
		statuses[l.agree(t, recipe(nil, nil, made(seed)), seed)]++
	}
	if statuses[200] < 100 || statuses[400] < 100 || statuses[500] < 50 {
		t.Errorf("the grammar makes too much of one kind: %v", statuses)
	}
}

// made is the how of an exchange that the grammar makes, every other one spoiled.
func made(seed uint64) uint64 {
	return seed<<recipeBits | makeRequest | makeAnswer | []uint64{0, 0, spoilRequest, spoilAnswer}[seed&3] | seed>>2&1*eventStream
}

type exchange struct {
	request, answer []byte
	how             uint64
}

func corpusExchanges(t testing.TB) (list []exchange) {
	all, err := cases.All()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range all {
		if c.Request.Method != "POST" {
			continue
		}
		e := exchange{request: c.Request.Body, how: uint64(i) << recipeBits}
		if len(c.Calls) > 0 {
			answer := c.Calls[0].Answer
			e.answer = answer.Body
			if isEventStream(answer) {
				e.how |= eventStream
			}
			if answer.Status != 200 {
				e.how |= failedAnswer
			}
		}
		list = append(list, e)
	}
	return list
}

func newLevels(t testing.TB) *levels {
	module, err := os.ReadFile(corpusModule)
	if err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	return &levels{
		module: newWasmLevel(t, module, "", "image_http", "image_https"),
		env:    &translate.Env{Models: translate.NewModels("anthropic/", nil), AutoCache: true},
	}
}

// levels are the core and the module, each used again for every exchange: nothing of
// the one before may show.
type levels struct {
	parser translate.Parser
	env    *translate.Env
	module *wasmLevel
}

// agree fails the test unless the levels do; it returns the status.
func (l *levels) agree(t *testing.T, c *cases.Case, seed uint64) int {
	whole := l.play(t, c, wasmDelivery{end: harness.EndAlone})
	l.agreeWithCore(t, c, whole)
	cut := l.play(t, c, spoiledBorders(c, rand.New(rand.NewPCG(seed, 2))))
	if !reflect.DeepEqual(cut, whole) {
		t.Fatalf("%s\nin pieces\n%s\nwhole\n%s", show(c), showOutcome(cut), showOutcome(whole))
	}
	return whole.Status
}

// play is one run of the module. The lengths that Envoy would have passed on are no
// part of what is compared: a body in pieces has none.
func (l *levels) play(t *testing.T, c *cases.Case, d wasmDelivery) cases.Outcome {
	o, err := l.module.outcome(t.Context(), c, d)
	if err != nil {
		t.Fatalf("%s\n%v", show(c), err)
	}
	if faults := l.module.takeFaults(); len(faults) > 0 {
		t.Fatalf("%s\nthe log has faults:\n%s", show(c), strings.Join(faults, "\n"))
	}
	for i := range o.Upstream {
		o.Upstream[i].Header = o.Upstream[i].Header.Del("content-length")
	}
	// Downloads may begin in any order.
	slices.SortFunc(o.Downloads, func(a, b cases.Sent) int { return strings.Compare(a.Path, b.Path) })
	return o
}

// spoiledBorders cut both bodies at random places. Each piece of a body is a call into
// the guest, so a long one has no more than some fifty.
func spoiledBorders(c *cases.Case, random *rand.Rand) wasmDelivery {
	answer := c.Calls[0].Answer
	return wasmDelivery{
		request: cutAnywhere(c.Request.Body, random), response: cutAnywhere(answer.Body, random),
		end: []harness.End{harness.EndAlone, harness.EndWithData}[random.IntN(2)],
		// What is due at the end of a broken stream has no place behind trailers.
		trailers: random.IntN(4) == 0 && !isEventStream(answer),
	}
}

func cutAnywhere(body []byte, random *rand.Rand) [][]byte {
	longest := max(2+random.IntN(64), len(body)/25)
	var pieces [][]byte
	for len(body) > 0 {
		n := min(len(body), 1+random.IntN(longest))
		pieces = append(pieces, body[:n])
		body = body[n:]
	}
	return pieces
}

// agreeWithCore holds what the module did against the core, which knows neither headers
// nor what the filter says of failed downloads.
func (l *levels) agreeWithCore(t *testing.T, c *cases.Case, module cases.Outcome) {
	core, ok := l.core(c)
	if !ok {
		return
	}
	same := core.Status == module.Status && bytes.Equal(core.Body, module.Body) && len(core.Upstream) == len(module.Upstream) &&
		(core.Usage == nil || bytes.Equal(core.Usage, module.Usage))
	if same && len(core.Upstream) == 1 {
		same = bytes.Equal(core.Upstream[0].Body, module.Upstream[0].Body)
	}
	if !same {
		t.Fatalf("%s\nmodule\n%s\ncore\n%s", show(c), showOutcome(module), showOutcome(core))
	}
}

// core is the exchange in the core. It is not ok when a download fails.
func (l *levels) core(c *cases.Case) (o cases.Outcome, ok bool) {
	defer l.parser.Release()
	refused := func(e *translate.Error) (cases.Outcome, bool) {
		o.Status, o.Body = e.Status, translate.AppendEnvelope(nil, e)
		return o, true
	}
	l.parser.Images = translate.ImagePolicy{HTTP: true, HTTPS: true}
	request, fault := l.parser.Parse(c.Request.Body)
	if fault != nil {
		return refused(fault)
	}
	plan, fault := translate.Decide(request, l.env)
	if fault != nil {
		return refused(fault)
	}
	var images []translate.Image
	for _, fetch := range plan.Fetches {
		if !slices.Contains(pictures, fetch.URL) {
			return o, false
		}
		images = append(images, translate.Image{Type: "image/png", Data: onePixel})
	}
	plan.Resolve(images)
	var sent []byte
	plan.Write(func(piece []byte) { sent = append(sent, piece...) })
	o.Upstream = []cases.Sent{{Body: sent}}
	answer := c.Calls[0].Answer
	switch facts := (translate.Answer{RequestID: cases.RequestID, Created: cases.Created}); {
	case answer.Status != 200:
		return refused(plan.Reply.UpstreamError(answer.Status, answer.Body))
	case len(answer.Body) == 0, plan.Reply.Stream != isEventStream(answer) && plan.Reply.Stream:
		return refused(translate.BadUpstream())
	case plan.Reply.Stream:
		stream := translate.NewStream(plan.Reply, facts, true)
		o.Status, o.Body = 200, stream.Feed(nil, slices.Clone(answer.Body), true)
		if e := stream.Early(); e != nil {
			return refused(e)
		}
		record := stream.Record()
		o.Usage = record.Append(nil)
	default:
		body, record, e := plan.Reply.Answer(nil, answer.Body, facts)
		if e != nil {
			return refused(e)
		}
		record.Status = 200
		o.Status, o.Body, o.Usage = 200, body, record.Append(nil)
	}
	return o, true
}

func show(c *cases.Case) string {
	return fmt.Sprintf("request %q\nanswer %d %v %q", c.Request.Body, c.Calls[0].Answer.Status, c.Calls[0].Answer.Header, c.Calls[0].Answer.Body)
}

func showOutcome(o cases.Outcome) string {
	text := fmt.Sprintf("  %d %v %q\n  recorded %s\n", o.Status, o.Header, o.Body, o.Usage)
	for _, sent := range append(slices.Clone(o.Upstream), o.Downloads...) {
		text += fmt.Sprintf("  sent %s %v %q\n", sent.Path, sent.Header, sent.Body)
	}
	return text
}
