package translate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

// FuzzRequest feeds bodies made of the corpus: nothing may panic, a refusal is
// always the contract's, and what goes upstream is always whole JSON in UTF-8,
// the same on a second run in the same memory.
func FuzzRequest(f *testing.F) {
	files, err := filepath.Glob("cases/*/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, section := range txtar.Parse(text).Files {
			if section.Name == "request.json" || section.Name == "request.raw" {
				f.Add(section.Data)
			}
		}
	}
	for _, seed := range []string{
		body(`,"tools":[{"type":"function","function":{"name":"f","parameters":{"a":1}},"cache_control":{"type":"x"}}],"tool_choice":"none","stop":"a"`),
		said(`{"role":"system","content":[{"type":"text","text":"\ud800"}]},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"assistant","tool_calls":[{"id":"a.","function":{"name":"f","arguments":"{\"a\":[1]}"}}]},{"role":"tool","tool_call_id":"a.","content":"r"}`),
	} {
		f.Add([]byte(seed))
	}
	env := plainEnv()
	env.AutoCache = true
	var parser Parser
	f.Fuzz(func(t *testing.T, body []byte) {
		var texts [2]string
		for run := range texts {
			r, refused := parser.Parse(body)
			if refused == nil {
				var p *Plan
				if p, refused = Decide(r, env); refused == nil {
					p.Write(func(piece []byte) { texts[run] += string(piece) })
					if !json.Valid([]byte(texts[run])) || !utf8.ValidString(texts[run]) {
						t.Fatalf("%q went up as %q", body, texts[run])
					}
				}
			}
			if refused != nil && (refused.Status != 400 && refused.Code != "model_not_found" || refused.Message == "" || !utf8.ValidString(refused.Message)) {
				t.Fatalf("%q was refused with %+v", body, refused)
			}
		}
		if texts[0] != texts[1] {
			t.Fatalf("two runs differ:\n%s\n%s", texts[0], texts[1])
		}
	})
}
