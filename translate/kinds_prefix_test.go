// Built on the second opinions, and left out with them: see opinions_test.go.
//go:build !fuzzing

package translate_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ezat.io/chat-completions/translate"
)

// agentTurns is how long the agent's conversation gets.
const agentTurns = 40

// agentMarks says which breakpoints the client sets.
type agentMarks int

const (
	marksAutomatic agentMarks = iota // none: the filter sets them
	marksFixed                       // on the system prompt and on the task, for good
	marksMoving                      // on the system prompt and on its newest message
)

// agentMessages are the messages of an agent at work after some turns: each has
// thoughts said aloud, two or three parallel calls with ids of several vendors, and
// their results, late or early, pictures among them; now and then the user says a word.
func agentMessages(turns int) []saidMessage {
	picture := func(i int) saidPart {
		return []saidPart{somePNG, imagePart("data:image/jpg;base64,"+gifData, ""), somePDF}[i%3]
	}
	messages := []saidMessage{
		saidText("system", "You are an agent. 1 < 2 && \"é\""),
		saidList("user", textPart("Fix it."), somePNG),
	}
	for i := range turns {
		ids := []string{fmt.Sprintf("functions.read:%d", i), fmt.Sprintf("call_%d", i), fmt.Sprintf("日-%d", i)}[:2+i%2]
		step := saidText("assistant", fmt.Sprintf("Step %d… \n", i))
		if i%4 == 3 {
			step = withContent("assistant", "null")
		}
		for k, id := range ids {
			step.calls = append(step.calls, saidCall{id, []string{fmt.Sprintf(`{"z": %d.50, "a":"\u00e9"}`, i), "", "{}"}[k], ""})
		}
		messages = append(messages, step)
		for k := range ids {
			result := saidText("tool", fmt.Sprintf("line %d\n", i))
			if (i+k)%3 == 0 {
				result = saidList("tool", textPart("seen:"), picture(i))
			}
			result.answers = ids[(k+i)%len(ids)]
			messages = append(messages, result)
		}
		if i%3 == 2 {
			messages = append(messages, saidText("user", "Go on."))
		}
	}
	return messages
}

// agent is the body that the agent sends after some turns.
func agent(turns int, marks agentMarks) string {
	const mark = `,"cache_control":{"type":"ephemeral"}}`
	messages := agentMessages(turns)
	mend := func(i int) { // gives a message's last part, or its text, a breakpoint
		m := &messages[i]
		if m.content[0] != '[' {
			m.content = `[{"type":"text","text":` + m.content + `}]`
		}
		m.content = strings.TrimSuffix(m.content, "}]") + mark + "]"
	}
	if marks != marksAutomatic {
		mend(0)
		mend(1)
	}
	if newest := len(messages) - 1; marks == marksMoving && newest > 1 {
		mend(newest)
	}
	var list []string
	for _, m := range messages {
		list = append(list, m.json())
	}
	return `{"messages":[` + strings.Join(list, ",") + `],"reasoning_effort":"high","model":"anthropic/claude-sonnet-5-5","stream":true,"tools":[` +
		`{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"z":{"type":"number"},"a":{"type":"string"}}}}},` +
		`{"type":"function","function":{"name":"shot"}}]}`
}

// TestPrefixOfAnAgent: what an agent sends up in one turn, it sends up again, byte for
// byte, at the beginning of the next, up to the end of the newest message before the
// breakpoint that moves on. Everything that could change on the way, such as effort and
// tool_choice, stands before the messages, and the stand-in takes every turn.
func TestPrefixOfAnAgent(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	for _, c := range []struct {
		name  string
		marks agentMarks
		fixed int // breakpoints that stay where they are
	}{{"automatic", marksAutomatic, 1}, {"own", marksFixed, 2}, {"own, moving", marksMoving, 2}} {
		t.Run(c.name, func(t *testing.T) {
			f, l := newFilter(), newLedger()
			var before []byte // of the turn before: all up to its last breakpoint that moves
			for turn := range agentTurns + 1 {
				out, refusal := f.up(agent(turn, c.marks))
				if refusal != nil {
					t.Fatal(refusal)
				}
				if !bytes.HasPrefix(out, before) {
					t.Fatalf("turn %d does not begin as turn %d:\n%s\n%s", turn, turn-1, out, before)
				}
				moving := c.marks != marksFixed && !(c.marks == marksMoving && turn == 0)
				end := len(out) - len("]}]}")
				if moving {
					end = bytes.LastIndex(out, []byte(mark))
				}
				if rest := string(out[end:]); moving && rest != mark+"}]}]}" && rest != mark+"}]}]}]}" {
					t.Fatalf("turn %d: behind the newest breakpoint stands %s", turn, rest)
				}
				if n := bytes.Count(out[:end], []byte(mark)); n != c.fixed {
					t.Fatalf("turn %d: %d breakpoints stay, want %d:\n%s", turn, n, c.fixed, out)
				}
				if !bytes.Contains(out, []byte(`"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`)) {
					t.Fatalf("turn %d: no thinking in %s", turn, out)
				}
				if len(out[:end]) <= len(before) {
					t.Fatalf("turn %d is no longer than turn %d", turn, turn-1)
				}
				l.hold(t, out, nil)
				before = bytes.Clone(out[:end])
			}
			l.check(t, agentTurns)
		})
	}
}

// TestSameBytesOfAnAgent: a hundred translations give the same bytes, by a new parser
// and by one that has read others between.
func TestSameBytesOfAnAgent(t *testing.T) {
	f := newFilter()
	for _, marks := range []agentMarks{marksAutomatic, marksMoving} {
		body := agent(agentTurns, marks)
		want, refusal := f.up(body)
		if refusal != nil {
			t.Fatal(refusal)
		}
		for i := range 100 {
			switch i % 4 {
			case 0:
				f.parser = translate.Parser{}
			case 1:
				f.up(agent(i%agentTurns, marksFixed))
			case 2:
				f.up(`{"model":"m","messages":[{"role":"user","content":"x`)
			}
			if got, _ := f.up(body); !bytes.Equal(got, want) {
				t.Fatalf("translation %d differs:\n%s\n%s", i, got, want)
			}
		}
	}
}
