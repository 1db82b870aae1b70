package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/build/bench/work"
)

// What OpenAI's clients are told.
const (
	openAIAnswer = `{"object":"chat.completion","choices":[{"message":{"content":"A prompt cache keeps the front of a prompt, so that the next request with the same front costs less."}}]}`
	openAICall   = `{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"arguments":"{\"a\":1}"}}]}}]}`
)

func TestSaid(t *testing.T) {
	const role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
	const text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi \"}}]}\n\n"
	const call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{}\"}}]}}]}\n\n"
	for _, c := range []struct {
		name, body string
		want       words
	}{
		{"an answer", `{"choices":[{"message":{"content":"Hi \"there\"."}}]}`, words{text: `Hi "there".`}},
		{"an answer with a call", openAICall, words{arguments: `{"a":1}`}},
		{"a stream", role + text + call + "data: [DONE]\n\n", words{"Hi ", "{}"}},
		{"a stream that breaks off", role + text + call, words{}},
		{"an error", `{"error":{"message":"no"}}`, words{}},
		{"nothing", "", words{}},
	} {
		if got := said([]byte(c.body)); got != c.want {
			t.Errorf("%s says %q, want %q", c.name, got, c.want)
		}
	}
}

// TestMeant reads what the stand-in really sends.
func TestMeant(t *testing.T) {
	if got := meant(work.Answer()); !strings.HasPrefix(got.text, "A prompt cache") || got.arguments != "" {
		t.Errorf("%q", got)
	}
	for kind, want := range map[work.Kind]words{
		work.TextKind:      {text: " a word or two 0, a word or two 1,"},
		work.ArgumentsKind: {arguments: `"line_0": "on"line_1": "on`},
	} {
		stream := append(append(work.Start(kind), work.Deltas(kind, 2)...), work.End()...)
		if got := meant(stream); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// fakeContest puts stand-ins where the proxies would be.
func fakeContest(t *testing.T, mine, theirs *reply) *contest {
	t.Helper()
	c := &contest{}
	for i, r := range []*reply{nil, mine, theirs} {
		s, err := newStandIn()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
		if i == direct {
			c.upstream = s
		}
		s.reply.Store(r)
		c.ways[i] = way{name: [3]string{"direct", "ours", "LiteLLM"}[i], address: s.address(), prefix: "/v1/", key: "k"}
	}
	return c
}

// contestFigures runs both kinds of work and gives the figures by name.
func contestFigures(t *testing.T, c *contest) (added, loaded map[string]figure, err error) {
	t.Helper()
	s := scene{name: "a chat", request: post(work.SmallChat()), reply: whole(work.Answer()), pairs: 4}
	r := &report{progress: &bytes.Buffer{}}
	if err := c.run(r, []scene{s}, []scene{s}, options{windows: 1, window: time.Millisecond}); err != nil {
		return nil, nil, err
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	byName := func(section string) map[string]figure {
		m := map[string]figure{}
		for _, line := range r.Comparisons {
			if line.Section == section {
				for _, f := range line.Figures {
					m[f.Name] = f
				}
			}
		}
		return m
	}
	return byName(addedSection), byName(loadSection), nil
}

func TestContest(t *testing.T) {
	good := whole([]byte(openAIAnswer))
	slow := &reply{pieces: [][]byte{good.pieces[0][:20], good.pieces[0][20:]}, pause: 20 * time.Millisecond}
	added, loaded, err := contestFigures(t, fakeContest(t, good, slow))
	if err != nil {
		t.Fatal(err)
	}
	// The pause is a lower bound of what LiteLLM's place adds; a fast direct call
	// takes a part of it on any machine that this ends on.
	if f := added["LiteLLM"]; f.None != "" || f.Value+added["a direct call"].Value < 20 {
		t.Errorf("the slow one adds %+v to %+v", f, added["a direct call"])
	}
	if f := loaded["LiteLLM"]; f.None != "" || f.Value <= 0 || f.Value > 1000*connectionsForLoad/20 {
		t.Errorf("the slow one gets %+v through", f)
	}
}

// TestContestShowsHowLiteLLMFails: it is a row of the table, and ours stands
// beside it.
func TestContestShowsHowLiteLLMFails(t *testing.T) {
	good := whole([]byte(openAIAnswer))
	for name, c := range map[string]struct {
		theirs *reply
		why    string
	}{
		"refuses":   {&reply{pieces: [][]byte{[]byte("HTTP/1.1 413 Too\r\ncontent-length: 6\r\n\r\na|b\nc\n")}}, "413 Too\" a/b c"},
		"says less": {whole([]byte(`{"choices":[{"message":{"content":"A prompt"}}]}`)), "where the upstream has said"},
	} {
		t.Run(name, func(t *testing.T) {
			added, loaded, err := contestFigures(t, fakeContest(t, good, c.theirs))
			if err != nil {
				t.Fatal(err)
			}
			for _, figures := range []map[string]figure{added, loaded} {
				if f := figures["LiteLLM"]; !strings.HasPrefix(f.None, "fails: ") || !strings.Contains(f.None, c.why) {
					t.Errorf("LiteLLM's figure is %+v", f)
				}
				if f := figures["ours"]; f.None != "" {
					t.Errorf("ours is %+v", f)
				}
			}
			if loaded["ours"].Value <= 0 {
				t.Errorf("ours gets %+v through", loaded["ours"])
			}
		})
	}
}

// TestContestNeedsOursRight: a fault of ours is not a figure.
func TestContestNeedsOursRight(t *testing.T) {
	wrong := whole([]byte(`{"choices":[{"message":{"content":"Something else."}}]}`))
	if _, _, err := contestFigures(t, fakeContest(t, wrong, whole([]byte(openAIAnswer)))); err == nil || !strings.Contains(err.Error(), "ours") {
		t.Errorf("%v", err)
	}
}

// TestAskRefusesShortAnswers: a 200 that breaks off must not count as a fast one.
func TestAskRefusesShortAnswers(t *testing.T) {
	s, err := newStandIn()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.reply.Store(whole([]byte("12345")))
	c, err := dial(s.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for least, ok := range map[int]bool{0: true, 5: true, 6: false} {
		c.least = least
		if _, err := c.ask(post(nil)); (err == nil) != ok {
			t.Errorf("at least %d bytes: %v", least, err)
		}
	}
}

func TestWaysSpellTheirRequests(t *testing.T) {
	w := way{prefix: "/v1/", key: "sk-other"}
	body := []byte(`{"a":"/openai/v1/ Bearer sk-bench"}`)
	got := string(w.spell(post(body)))
	if !strings.HasPrefix(got, "POST /v1/chat/completions HTTP/1.1\r\n") || !strings.Contains(got, "\r\nauthorization: Bearer sk-other\r\n") || !strings.HasSuffix(got, string(body)) {
		t.Error(got)
	}
}

func TestQuotient(t *testing.T) {
	if got := quotient(6, 3); got != 2 {
		t.Error(got)
	}
	for _, c := range [][2]float64{{1, 0}, {1, -1}, {-1, 1}, {math.NaN(), 1}, {1, math.NaN()}} {
		if got := quotient(c[0], c[1]); !math.IsNaN(got) {
			t.Errorf("%v: %v", c, got)
		}
	}
}

func TestComparisonsInTheTable(t *testing.T) {
	r := &report{progress: &bytes.Buffer{}}
	r.compare(comparison{"s", "w", []figure{{Name: "ours", Unit: "ms", Value: 0.5}, {Name: "LiteLLM", Unit: "ms", Value: 10}, figure{Name: "×"}.or(20)}})
	r.compare(comparison{"s", "v", []figure{{Name: "ours", Unit: "ms", Value: 1}, figure{Name: "LiteLLM", Unit: "ms"}.orWhy(math.NaN(), "fails: why"), figure{Name: "×"}.or(math.NaN())}})
	const want = "\n## s\n\n| work | ours, ms | LiteLLM, ms | × |\n|---|---:|---:|---:|\n| w | 0.500 | 10 | 20 |\n| v | 1 | fails: why | – |\n"
	if got := r.markdown(); !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestRanFor(t *testing.T) {
	const line = "16765 (a (b) c) S 1 16765 16765 0 -1 4194304 9 0 0 0 120 34 7 8 20 0 5 0 100\n"
	if got := ranFor(line); got != 1540*time.Millisecond {
		t.Error(got)
	}
	for _, line := range []string{"", "no line", "1 (a) S 1 2"} {
		if got := ranFor(line); got != 0 {
			t.Errorf("%q: %v", line, got)
		}
	}
}
