package translate

import (
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"weak"
)

// TestReleaseLetsGo: behind Release nothing of a request can be reached from its
// parser, and the parser keeps no memory that only a huge request has needed.
func TestReleaseLetsGo(t *testing.T) {
	call := `{"role":"assistant","content":"a","tool_calls":[{"id":"c!","function":{"name":"f","arguments":"{\"a\":[1,2]}"}}]},{"role":"tool","tool_call_id":"c!","content":[{"type":"text","text":"r"}]},`
	var parser Parser
	for name, text := range map[string]string{
		"small":     body(`,"stop":["a"],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}},"prompt_cache_key":"k"`),
		"calls":     said(strings.Repeat(call, 20_000) + `{"role":"user","content":"x"}`),
		"parts":     said(`{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"e"}},`, 50_000) + `{"type":"text","text":"b"}]}`),
		"messages":  said(strings.Repeat(`{"role":"user","content":"x"},{"role":"assistant","content":"y"},`, 50_000) + `{"role":"user","content":"x"}`),
		"system":    said(strings.Repeat(`{"role":"system","content":"x"},`, 50_000) + `{"role":"user","content":"x"}`),
		"tools":     body(`,"tools":[` + strings.Repeat(`{"type":"function","function":{"name":"f"}},`, 50_000) + `{"type":"function","function":{"name":"f"}}]`),
		"arguments": said(`{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":[` + strings.Repeat("1,", 200_000) + `1]}"}}]},{"role":"tool","tool_call_id":"c"}`),
		"keys":      body(manyKeys(9000, "k") + manyKeys(900, `\u006a`)),
		"refused":   said(strings.Repeat(call, 100) + `{"role":"user","content":""}`),
		"prefill":   said(`{"role":"user","content":"x"},{"role":"assistant","content":" "}`),
	} {
		for range 2 {
			body := append(make([]byte, 0, len(text)+64), text...)
			gone := weak.Make(&body[0])
			r, refused := parser.Parse(body)
			if refused == nil {
				p, refused := Decide(r, plainEnv())
				if refused != nil {
					t.Fatal(refused)
				}
				p.Write(func([]byte) {})
			} else if name != "refused" {
				t.Fatal(name, refused)
			}
			parser.Release()
			body, r = nil, nil
			runtime.GC()
			if gone.Value() != nil {
				t.Errorf("%s: the parser holds the body", name)
			}
		}
		for i, what := range []any{parser.kept.blocks.first, parser.kept.tools.first, parser.kept.text.first,
			parser.kept.turns[:turnsKept], parser.kept.calls[:callsKept], parser.kept.ids.ids[:cap(parser.kept.ids.ids)], parser.kept.ids.slots} {
			for list, k := reflect.ValueOf(what), 0; k < list.Len(); k++ {
				if !list.Index(k).IsZero() {
					t.Errorf("%s: number %d of kept list %d still has %v", name, k, i, list.Index(k))
					break
				}
			}
		}
		if held := heldBy(&parser); held > parserKeptBytesMax {
			t.Errorf("%s: the parser keeps %d bytes", name, held)
		}
	}
}

// parserKeptBytesMax is above what a parser may keep: two indexes of 1 MiB, and
// lists of some KiB.
const parserKeptBytesMax = 2<<20 + 256<<10

// manyKeys are fields that nobody reads.
func manyKeys(n int, begin string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"` + begin + strconv.Itoa(i) + `":1`)
	}
	return b.String()
}

// heldBy is how much heap there is only because of the parser, which is new
// afterwards.
func heldBy(parser *Parser) int {
	var with, without runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&with)
	*parser = Parser{}
	runtime.GC()
	runtime.ReadMemStats(&without)
	return int(with.HeapAlloc) - int(without.HeapAlloc)
}
