package translate

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestRecordIsOneLine: whoever reads it, and with nothing that a terminal obeys.
func TestRecordIsOneLine(t *testing.T) {
	const name = "a\u0085b\u2028c\u2029d\x7fe\u009bf\u0080\u009f\v\f\x1c\x1d\x1e\n\r\x1b[31m é\u00a0\u2027\u202a 日"
	r := Record{Model: name}
	line := r.Append(nil)
	var back struct{ Model string }
	if err := json.Unmarshal(line, &back); err != nil || back.Model != name {
		t.Errorf("%v, model %q", err, back.Model)
	}
	for _, c := range string(line) {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029 {
			t.Errorf("%U is in the line %q", c, line)
		}
	}
	if !strings.Contains(string(line), `a\u0085b\u2028c\u2029d\u007fe\u009bf`) || !strings.Contains(string(line), "é\u00a0\u2027\u202a 日") {
		t.Errorf("%s", line)
	}
}

func TestRecordLine(t *testing.T) {
	r := Record{Model: "anthropic/claude \"x\"\n", Stream: true, Status: 200, Outcome: OutcomeClientLeft,
		Usage: Usage{Prompt: 1, Cached: 2, CacheWrite: 3, Completion: 4, Reasoning: math.MaxInt64}, Estimated: true}
	const want = `x{"model":"anthropic/claude \"x\"\n","stream":true,"status":200,"outcome":"client_left","finish_reason":null,"prompt_tokens":1,"cached_tokens":2,"cache_write_tokens":3,"completion_tokens":4,"reasoning_tokens":9223372036854775807,"estimated":true}`
	if got := string(r.Append([]byte("x"))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.FinishReason, r.Estimated, r.Stream = "length", false, false
	r.Model = strings.Repeat("é", 100_000)
	got := r.Append(nil)
	if len(got) > 1<<10 || !json.Valid(got) || !strings.Contains(string(got), `"finish_reason":"length"`) || !strings.Contains(string(got), `"estimated":false`) {
		t.Errorf("got %d bytes: %.300s", len(got), got)
	}
}
