package translate

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

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
