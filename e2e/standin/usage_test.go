package standin

import (
	"fmt"
	"strings"
	"testing"
)

// spent returns input, written, read of one request.
func spent(t *testing.T, cache *promptCache, body string) [3]int64 {
	t.Helper()
	u := replyTo(t, cache, body).Get("usage")
	written := u.Get("cache_creation_input_tokens").Int()
	if split := u.Get("cache_creation.ephemeral_5m_input_tokens").Int() + u.Get("cache_creation.ephemeral_1h_input_tokens").Int(); split != written {
		t.Errorf("cache writes %d are split into %d", written, split)
	}
	return [3]int64{u.Get("input_tokens").Int(), written, u.Get("cache_read_input_tokens").Int()}
}

func sum(counts [3]int64) int64 { return counts[0] + counts[1] + counts[2] }

func TestCacheReadsBackWhatWasWritten(t *testing.T) {
	cache := new(promptCache)
	long := strings.Repeat("word", 600)
	system := `"system":[{"type":"text","text":"` + long + `",` + mark5m + `}]`
	first := spent(t, cache, with(system))
	second := spent(t, cache, with(system))
	if first[1] < 600 || first[2] != 0 || first[0] == 0 {
		t.Errorf("first request: %v", first)
	}
	if second[1] != 0 || second[2] != first[1] || second[0] != first[0] {
		t.Errorf("the same again: %v after %v", second, first)
	}
	turns := system + `,"messages":[` + user(`"Hi"`) + `,` + assistant(`"`+long+`"`) + `,` + user(`[`+marked(mark5m)+`]`) + `]`
	third := spent(t, cache, with(turns))
	if third[2] != first[1] || third[1] < 600 || third[0] != 0 {
		t.Errorf("a longer conversation: %v", third)
	}
	other := spent(t, cache, with(strings.Replace(system, "word", "Word", 1)))
	if other[2] != 0 || sum(other) != sum(first) {
		t.Errorf("another prefix: %v", other)
	}
}

func TestCacheOfAnotherModelOrFormat(t *testing.T) {
	long := strings.Repeat("word", 2000)
	system := `"system":[{"type":"text","text":"` + long + `",` + mark5m + `}]`
	messages := `"system":"` + long + `","messages":[` + user(`[`+marked(mark5m)+`]`) + `]`
	for _, test := range []struct {
		name, first, second string
		hits                bool
	}{
		{"another model", on("claude-opus-5", system), on("claude-opus-4-8", system), false},
		{"another format", with(system), with(system + `,"output_config":{"format":{"type":"json_schema","schema":{"type":"string"}}}`), false},
		{"another effort, system", with(system), with(system + `,"output_config":{"effort":"low"}`), true},
		{"another effort, messages", with(messages), with(messages + `,"output_config":{"effort":"low"}`), false},
		{"another choice, messages", with(messages + `,` + tools(bareTool)), with(messages + `,` + tools(bareTool) + `,"tool_choice":{"type":"auto"}`), false},
		{"mark moved", with(messages), with(strings.Replace(messages, mark5m, mark1h, 1)), true},
		{"string or list", with(`"system":"` + long + `","cache_control":{"type":"ephemeral"},"messages":[` + user(`"a"`) + `]`), with(messages), true},
	} {
		cache := new(promptCache)
		spent(t, cache, test.first)
		if got := spent(t, cache, test.second); (got[2] > 0) != test.hits {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestCacheMinimumAndTTL(t *testing.T) {
	short := spent(t, new(promptCache), with(`"system":[`+marked(mark5m)+`]`))
	if short[1] != 0 || short[2] != 0 {
		t.Errorf("a prefix below the model's minimum is cached: %v", short)
	}
	long := strings.Repeat("word", 600)
	body := with(`"system":[{"type":"text","text":"` + long + `",` + mark1h + `}],"messages":[` + user(`[{"type":"text","text":"`+long+`",`+mark5m+`}]`) + `]`)
	u := replyTo(t, new(promptCache), body).Get("usage.cache_creation")
	if u.Get("ephemeral_1h_input_tokens").Int() < 600 || u.Get("ephemeral_5m_input_tokens").Int() < 600 {
		t.Errorf("both lifetimes: %s", u.Raw)
	}
}

func TestCacheLookback(t *testing.T) {
	turns := func(n int) string {
		messages := []string{user(`"` + strings.Repeat("word", 600) + `"`)}
		for i := range n {
			messages = append(messages, assistant(fmt.Sprintf(`"a%d"`, i)), user(fmt.Sprintf(`"b%d"`, i)))
		}
		return with(`"cache_control":{"type":"ephemeral"},"messages":[` + strings.Join(messages, ",") + `]`)
	}
	for n, hits := range map[int]bool{10: true, 11: false} {
		cache := new(promptCache)
		spent(t, cache, turns(0))
		if got := spent(t, cache, turns(n)); (got[2] > 0) != hits {
			t.Errorf("%d blocks after the mark: %v", 2*n, got)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	cache := new(promptCache)
	for i := range prefixesMax + 10 {
		cache.remember([32]byte{byte(i), byte(i >> 8), 1})
	}
	if len(cache.entries) != prefixesMax || cache.order.Len() != prefixesMax {
		t.Errorf("%d entries, %d in order", len(cache.entries), cache.order.Len())
	}
	if _, ok := cache.entries[[32]byte{0, 0, 1}]; ok {
		t.Error("the oldest entry is still there")
	}
}
