package translate

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
)

// TestStreamHolds: what waits for more counts, and nothing else.
func TestStreamHolds(t *testing.T) {
	s := NewStream(testReply, testAnswer, true)
	step := func(what, piece string, least, most int) {
		t.Helper()
		s.Feed(nil, []byte(piece), false)
		if n := s.Held(); n < least || n > most {
			t.Errorf("%s: holds %d bytes, want %d to %d", what, n, least, most)
		}
	}
	const small = 32 << 10
	large := strings.Repeat("x", 1<<20)
	at := strings.Index(evHi, "Hi")
	input := `{"type":"content_block_start","index":7,"content_block":{"type":"tool_use","id":"a","name":"b","input":{"k":"` + large + `"}}}`
	step("a beginning", sseOf(evStart, evText, evHi), 0, small)
	step("half an event", "data: "+evHi[:at]+large, 1<<20, 2<<20+small)
	step("the whole event", evHi[at:]+"\n\n", 0, small)
	step("a call's input", sseOf(input), 1<<20, 1<<20+small)
	step("another one", sseOf(strings.Replace(input, "7", "8", 1)), 2<<20, 2<<20+small)
	step("the first one's stop", sseOf(`{"type":"content_block_stop","index":7}`), 1<<20, 1<<20+small)
	step("half an event beside it", "data: "+large, 2<<20, 3<<20+small)
	out := string(s.Fail([]byte("before"), BadUpstream()))
	if !strings.HasPrefix(out, "before"+`data: {"error":{"message":"The upstream's answer could not be read."`) || !strings.HasSuffix(out, "data: [DONE]\n\n") {
		t.Errorf("%s", out)
	}
	if s.Held() != 0 || !s.Done() || s.Early() != nil || s.Record().Outcome != OutcomeFailed {
		t.Errorf("holds %d, done %v, record %+v", s.Held(), s.Done(), s.Record())
	}
	if out := s.Fail(nil, Internal()); len(out) > 0 {
		t.Errorf("failed twice: %s", out)
	}
	if out := s.Feed(nil, []byte(sseOf(evHi)), true); len(out) > 0 {
		t.Errorf("behind the end: %s", out)
	}
}

func TestStreamFailsBeforeItsFirstEvent(t *testing.T) {
	for _, holding := range []bool{true, false} {
		s := NewStream(testReply, testAnswer, holding)
		s.Feed(nil, []byte("data: {"), false)
		out := s.Fail(nil, BadUpstream())
		if early := s.Early() != nil; early != holding || early != (len(out) == 0) || s.Held() != 0 {
			t.Errorf("holding %v: early %v, %s", holding, s.Early(), out)
		}
		if r := s.Record(); r.Outcome != OutcomeUpstreamError {
			t.Errorf("%+v", r)
		}
	}
}

// TestListHolds: ids and their places count.
func TestListHolds(t *testing.T) {
	var l ModelList
	if l.Held() != 0 {
		t.Error("an empty list holds something")
	}
	for i := range 3 {
		id := strconv.Itoa(i) + strings.Repeat("m", 400)
		if _, err := l.Add([]byte(`{"data":[{"type":"model","id":"` + id + `"}]}`)); err != nil {
			t.Fatal(err)
		}
		if n := l.Held(); n < (i+1)*401 || n > (i+1)*700 {
			t.Errorf("%d models hold %d bytes", i+1, n)
		}
	}
}

// TestOutputKeepsToItsInput: no stream and no answer of the upstream's becomes more
// than so many times as long, whatever stands in it.
func TestOutputKeepsToItsInput(t *testing.T) {
	const streamTimes, streamBase = 8, 4 << 10
	calls := ""
	for i := range 200 {
		index := strconv.Itoa(i)
		calls += "data:{\"type\":\"content_block_start\",\"index\":" + index + ",\"content_block\":{\"type\":\"tool_use\",\"id\":\"\",\"name\":\"\"}}\n\n"
	}
	call := "data:{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"\",\"name\":\"\",\"input\":{\"a\":\"" +
		strings.Repeat(`\"`, 500_000) + "\"\t}}}\n\ndata:{\"type\":\"content_block_stop\",\"index\":0}\n\n"
	start := "data:" + evStart + "\n\n"
	for name, stream := range map[string]string{
		"pings":        strings.Repeat("data:{\"type\":\"ping\"}\n\n", 10_000),
		"words":        "data:" + evText + "\n\n" + strings.Repeat("data:{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n", 10_000),
		"halves":       "data:" + evText + "\n\n" + strings.Repeat("data:{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\ud83d\"}}\n\n", 10_000),
		"empty words":  "data:" + evText + "\n\n" + strings.Repeat("data:{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\"}}\n\n", 10_000),
		"calls":        strings.Repeat("data:{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"\",\"name\":\"\"}}\n\ndata:{\"type\":\"content_block_stop\",\"index\":0}\n\n", 10_000),
		"open calls":   calls,
		"large inputs": strings.Repeat(call, 5),
		"blank lines":  strings.Repeat("\n", 100_000),
	} {
		reply := Reply{Model: strings.Repeat("m", 32), Stream: true, IncludeUsage: true}
		out, _ := playStream(reply, start+stream+"data:"+evLast+"\n\n", false, func(left int) int { return min(left, 64<<10) })
		times := float64(len(out)) / float64(len(start)+len(stream))
		if len(out) > streamTimes*len(stream)+streamBase {
			t.Errorf("%s: %d bytes of %d", name, len(out), len(stream))
		}
		t.Logf("%s: %.1f times", name, times)
	}
	const answerTimes, answerBase = 3, 4 << 10
	for name, content := range map[string]string{
		"calls":    strings.Repeat(`{"type":"tool_use","id":"","name":""},`, 30_000),
		"texts":    strings.Repeat(`{"type":"text","text":""},`, 30_000),
		"halves":   strings.Repeat(`{"type":"text","text":"\ud83d"},`, 30_000),
		"newlines": `{"type":"tool_use","id":"","name":"","input":{` + strings.Repeat("\n", 1_000_000) + `}},`,
		"quotes":   `{"type":"tool_use","id":"","name":"","input":{"a":"` + strings.Repeat(`\"`, 500_000) + `"}},`,
	} {
		body := []byte(answerBody(strings.TrimSuffix(content, ",")))
		out, _, err := testReply.Answer(nil, body, testAnswer)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(out) > answerTimes*len(body)+answerBase {
			t.Errorf("%s: %d bytes of %d", name, len(out), len(body))
		}
		if cap(out) > 2*len(body)+len(out)+largeAnswerBytes {
			t.Errorf("%s: memory for %d bytes, of which %d are used", name, cap(out), len(out))
		}
		t.Logf("%s: %.1f times", name, float64(len(out))/float64(len(body)))
	}
}

// TestLargeAnswerIsMadeAtOnce: memory that grows with an answer leaves several times
// as much behind.
func TestLargeAnswerIsMadeAtOnce(t *testing.T) {
	for name, content := range map[string]string{
		"text":     `{"type":"text","text":"` + strings.Repeat("x", 1_000_000) + `"}`,
		"newlines": `{"type":"tool_use","id":"","name":"","input":{` + strings.Repeat("\n", 1_000_000) + `}}`,
		"calls":    strings.TrimSuffix(strings.Repeat(`{"type":"tool_use","id":"i","name":"n","input":{}},`, 20_000), ","),
	} {
		body := []byte(answerBody(content))
		body = append(body, bytes.Repeat([]byte{0}, 64)...)[:len(body)]
		want, _, err := testReply.Answer(make([]byte, 0, 4*len(body)), body, testAnswer)
		if err != nil {
			t.Fatal(err)
		}
		made := testing.AllocsPerRun(3, func() {
			got, _, _ := testReply.Answer(nil, body, testAnswer)
			if len(got) != len(want) {
				t.Errorf("%s: %d bytes, want %d", name, len(got), len(want))
			}
		})
		kept := testing.AllocsPerRun(3, func() { testReply.Answer(want[:0], body, testAnswer) })
		if made > kept+1 {
			t.Errorf("%s: %v allocations, %v with memory at hand", name, made, kept)
		}
	}
}
