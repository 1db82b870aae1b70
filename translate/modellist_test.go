package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func modelPage(more string, ids ...string) []byte {
	var models []string
	for _, id := range ids {
		models = append(models, `{"type":"model","id":"`+id+`","display_name":"X","created_at":"2026-02-19T00:00:00Z"}`)
	}
	return []byte(`{"data":[` + strings.Join(models, ",") + `],"first_id":"x",` + more + `}`)
}

func TestModelList(t *testing.T) {
	upstream := "claude-a"
	models := NewModels("anthropic/", []ModelEntry{{Name: "alias", Upstream: &upstream}, {Name: "anthropic/claude-b"}, {Name: "zeta"}, {Name: "alias"}})
	var l ModelList
	after, err := l.Add(modelPage(`"has_more":true,"last_id":"claude-b&x=é"`, "claude-b", "claude-a"))
	if err != nil || after != "claude-b%26x%3D%C3%A9" {
		t.Fatalf("after %q, %v", after, err)
	}
	if after, err = l.Add([]byte(`{"data":[{"id":"claude-a"},{"id":"claude-\"c","created_at":null},{"id":"d","created_at":"soon"}],"has_more":false,"last_id":"d"}`)); err != nil || after != "" {
		t.Fatalf("after %q, %v", after, err)
	}
	const want = `x{"object":"list","data":[{"id":"anthropic/claude-b","object":"model","created":1771459200,"owned_by":"anthropic"},` +
		`{"id":"anthropic/claude-a","object":"model","created":1771459200,"owned_by":"anthropic"},` +
		`{"id":"anthropic/claude-\"c","object":"model","created":0,"owned_by":"anthropic"},` +
		`{"id":"anthropic/d","object":"model","created":0,"owned_by":"anthropic"},` +
		`{"id":"alias","object":"model","created":%d,"owned_by":"anthropic"},` +
		`{"id":"zeta","object":"model","created":0,"owned_by":"anthropic"}]}`
	got := string(l.Append([]byte("x"), models))
	aliasOf := 0 // the last entry named alias has no upstream of its own
	if want := fmt.Sprintf(want, aliasOf); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	models = NewModels("", []ModelEntry{{Name: "alias", Upstream: &upstream}, {Name: "claude-a"}})
	got = string(l.Append(nil, models))
	if !json.Valid([]byte(got)) || !strings.Contains(got, `{"id":"claude-a","object":"model","created":1771459200,`) ||
		!strings.Contains(got, `{"id":"alias","object":"model","created":1771459200,`) || strings.Count(got, `"claude-a"`) != 1 {
		t.Errorf("without a prefix: %s", got)
	}
	if got := string(new(ModelList).Append(nil, NewModels("", nil))); got != `{"object":"list","data":[]}` {
		t.Errorf("empty list %s", got)
	}
}

func TestModelListFaults(t *testing.T) {
	for _, page := range []string{
		``, `null`, `[]`, `{}`, `{"data":{}}`, `{"data":null}`, `{"data":["x"]}`, `{"data":[{}]}`, `{"data":[{"id":7}]}`, `{"data":[{"id":""}]}`,
		`{"data":[{"id":"` + strings.Repeat("x", modelIDBytesMax+1) + `"}]}`, `{"data":[{"type":"error","id":"x"}]}`,
		`{"type":"error","error":{"type":"api_error","message":"x"}}`,
		`{"data":[],"has_more":1}`, `{"data":[],"has_more":"true"}`, `{"data":[],"has_more":true}`, `{"data":[],"has_more":true,"last_id":null}`,
		`{"data":[],"has_more":true,"last_id":""}`, `{"data":[],"has_more":true,"last_id":7}`,
		`{"data":[],"has_more":true,"last_id":"` + strings.Repeat("x", modelIDBytesMax+1) + `"}`,
		`{"data":[{"id":"x"}]`, "{\"data\":[{\"id\":\"\xff\"}]}",
	} {
		var l ModelList
		if after, err := l.Add([]byte(page)); err == nil || err.Status != 500 || after != "" {
			t.Errorf("%.100s: %q, %v", page, after, err)
		}
	}
}

// TestModelListEnds: an upstream whose list never ends is given up.
func TestModelListEnds(t *testing.T) {
	var l ModelList
	pages := 0
	for ; ; pages++ {
		if _, err := l.Add(modelPage(fmt.Sprintf(`"has_more":true,"last_id":"%d"`, pages), fmt.Sprint(pages))); err != nil {
			break
		}
	}
	if pages != modelPagesMax-1 {
		t.Errorf("%d pages", pages)
	}
	var again ModelList
	if _, err := again.Add(modelPage(`"has_more":true,"last_id":"x"`, "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Add(modelPage(`"has_more":true,"last_id":"x"`, "y")); err == nil {
		t.Error("the same cursor twice passed")
	}
	var many ModelList
	var ids []string
	for i := range modelsMax + 1 {
		ids = append(ids, fmt.Sprint(i))
	}
	if _, err := many.Add(modelPage(`"has_more":false`, ids...)); err == nil {
		t.Error("models without end passed")
	}
}

func TestAppendModel(t *testing.T) {
	got, err := AppendModel([]byte("x"), []byte(`{"type":"model","id":"claude-a-20260219","created_at":"2026-02-19T00:00:00Z","capabilities":{}}`), "anthropic/claude-a")
	if err != nil || string(got) != `x{"id":"anthropic/claude-a","object":"model","created":1771459200,"owned_by":"anthropic"}` {
		t.Errorf("got %s, %v", got, err)
	}
	for _, body := range []string{``, `[]`, `{}`, `{"type":"error","error":{}}`, `{"data":[]}`, `{"id":7}`} {
		if got, err := AppendModel([]byte("x"), []byte(body), "m"); err == nil || err.Status != 500 || string(got) != "x" {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}

func FuzzModelList(f *testing.F) {
	f.Add(modelPage(`"has_more":true,"last_id":"claude-b"`, "claude-b", "claude-a"), modelPage(`"has_more":false`, "x"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var l ModelList
		for _, page := range [][]byte{first, second} {
			after, err := l.Add(page)
			if strings.ContainsAny(after, "&#? \r\n\"") || err != nil && after != "" {
				t.Fatalf("cursor %q", after)
			}
		}
		if got := l.Append(nil, NewModels("p/", nil)); !json.Valid(got) {
			t.Fatalf("%q", got)
		}
		if got, err := AppendModel(nil, first, "m"); err == nil && !json.Valid(got) {
			t.Fatalf("%q", got)
		}
	})
}
