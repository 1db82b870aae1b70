package cases

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestRows(t *testing.T) {
	rows, all, toCome := corpus(t)
	for _, fault := range CheckRows(rows, all, toCome, testExists) {
		t.Error(fault)
	}
}

func TestCoverage(t *testing.T) {
	rows, all, toCome := corpus(t)
	want := Coverage(rows, all, toCome)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("COVERAGE.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("COVERAGE.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("COVERAGE.md is stale: run UPDATE=1 go test ./translate/cases\n%s", firstDifference([]byte(want), got))
	}
}

func corpus(t *testing.T) ([]Row, []*Case, map[string]string) {
	t.Helper()
	rows, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	toCome, err := RowsToCome()
	if err != nil {
		t.Fatal(err)
	}
	return rows, all, toCome
}

// testExists looks for the test's function in the sources of its directory.
func testExists(ref TestRef) bool {
	sources, _ := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(ref.Dir), "*_test.go"))
	function := regexp.MustCompile(`(?m)^func ` + ref.Name + `\(`)
	for _, name := range sources {
		if text, err := os.ReadFile(name); err == nil && function.Match(text) {
			return true
		}
	}
	return false
}

// TestManners holds the cases to one way of writing: kebab-case names, a sentence on
// top, no levels left out without need.
func TestManners(t *testing.T) {
	_, all, _ := corpus(t)
	name := regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9-]+$`)
	seen := map[string]string{}
	for _, c := range all {
		if !name.MatchString(c.Name) {
			t.Errorf("%s: names are kebab-case", c.Name)
		}
		if !strings.HasSuffix(c.Comment, ".") {
			t.Errorf("%s: the comment is no sentence: %q", c.Name, c.Comment)
		}
		key := fmt.Sprintf("%s %s %v %s %s %v %v", c.Request.Method, c.Request.Path, c.Request.Header, c.Request.Body, c.Config, c.Downloads, c.Calls)
		if other, again := seen[key]; again {
			t.Errorf("%s and %s are the same exchange", other, c.Name)
		}
		seen[key] = c.Name
	}
}

const sample = `What it shows.
rule: a.b c
levels: core wasm (a header would be needed)
config: {"caching":false}
relax: prefill
cut: whole bytes
-- request --
POST /x
x-ezat-cache: on
!authorization
-- request.json --
{"model":"m"}
-- upstream.request --
POST /y
x-api-key: *
!cookie
-- upstream.request.json --
{"model":"m"}
-- upstream --
201
retry-after: 7
!request-id
-- upstream.quoted --
"a\x00"
"b"
-- upstream-2.request.json --
{}
-- upstream-2.raw --
x
-- client --
503
-- client.sse --
data: x

-- usage.json --
{"model":"m"}
`

func TestParse(t *testing.T) {
	c, err := Parse("area/name", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []struct {
		what      string
		got, want any
	}{
		{"comment", c.Comment, "What it shows."},
		{"rules", fmt.Sprint(c.Rules), "[a.b c]"},
		{"levels", fmt.Sprint(c.Levels), "[core wasm]"},
		{"config", string(c.Config), `{"caching":false}`},
		{"relax", fmt.Sprint(c.Relax), "[prefill]"},
		{"cuts", fmt.Sprint(c.Cuts), "[whole bytes]"},
		{"request line", c.Request.Method + c.Request.Path, "POST/x"},
		{"request header", fmt.Sprint(c.Request.Header), "[[content-type application/json] [x-ezat-cache on]]"},
		{"request body", string(c.Request.Body), `{"model":"m"}`},
		{"calls", len(c.Calls), 2},
		{"wanted line", c.Calls[0].Want.Method + c.Calls[0].Want.Path, "POST/y"},
		{"wanted header", fmt.Sprint(c.Calls[0].Want.Must, c.Calls[0].Want.MustNot), "[[x-api-key *]] [cookie]"},
		{"answer status", c.Calls[0].Answer.Status, 201},
		{"answer header", fmt.Sprint(c.Calls[0].Answer.Header), "[[retry-after 7]]"},
		{"answer body", string(c.Calls[0].Answer.Body), "a\x00b"},
		{"second answer", string(c.Calls[1].Answer.Body), "x"},
		{"client status", c.Client.Status, 503},
		{"client body", string(c.Client.Body), "data: x\n\n"},
		{"usage", string(c.Usage), `{"model":"m"}`},
	} {
		if check.got != check.want {
			t.Errorf("%s: %v, want %v", check.what, check.got, check.want)
		}
	}
}

func TestParseFaults(t *testing.T) {
	good := "What.\nrule: a\n-- request.json --\n{\"model\":\"m\"}\n-- upstream.request.json --\n{}\n"
	if _, err := Parse("x", []byte(good)); err != nil {
		t.Fatalf("the base of this test is not good: %v", err)
	}
	for _, test := range []struct{ text, want string }{
		{strings.Replace(good, "What.", "", 1), "no comment"},
		{strings.Replace(good, "rule: a", "", 1), "no rule"},
		{strings.Replace(good, "rule: a", "rule: a\nlevel: core", 1), "unknown header line"},
		{strings.Replace(good, "rule: a", "rule: a\nlevels: core", 1), "reason"},
		{strings.Replace(good, "rule: a", "rule: a\nlevels: core moon (x)", 1), "unknown level"},
		{strings.Replace(good, "rule: a", "rule: a\nconfig: {", 1), "not JSON"},
		{strings.Replace(good, "rule: a", "rule: a\ncut: thin", 1), "unknown cut"},
		{good + "-- stray.json --\n{}\n", "stray.json"},
		{good + "-- request.json --\n{}\n", "twice"},
		{good + "-- upstream.json --\n{}\n-- upstream.sse --\nx\n-- client.json --\n{}\n", "upstream.sse"},
		{good + "-- upstream --\n400\n", "no client section"},
		{good + "-- upstream --\nwhat\n", "neither request line"},
		{good + "-- client.json --\n{\n", "not JSON"},
		{good + "-- upstream.quoted --\nx\n", "not a Go string"},
		{"What.\nrule: a\n-- request.json --\n{}\n", "not called"},
		{"What.\nrule: a\n-- upstream.json --\n{}\n-- client.json --\n{}\n", "upstream.json"},
		{"What.\nrule: a\n-- upstream.request --\nGET /x\n", "plain answer"},
	} {
		_, err := Parse("x", []byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q, for\n%s", err, test.want, test.text)
		}
	}
}

func TestLoad(t *testing.T) {
	good := []byte("What.\nrule: a\n-- client.json --\n{}\n")
	all, err := load(fstest.MapFS{
		"b/two.txtar": {Data: good}, "a/one.txtar": {Data: good}, "doc.go": {Data: []byte("package x")},
	})
	if err != nil || len(all) != 2 || all[0].Name != "a/one" {
		t.Errorf("got %v, %v", all, err)
	}
	if _, err := load(fstest.MapFS{"a/bad.txtar": {Data: []byte("x")}}); err == nil || !strings.Contains(err.Error(), "a/bad") {
		t.Errorf("error %v, want one that names the file", err)
	}
	if _, err := load(fstest.MapFS{}); err == nil {
		t.Error("an empty corpus is no fault")
	}
}

// TestPlain shows what a case about a request alone expects of the answer.
func TestPlain(t *testing.T) {
	whole := parse(t, "What.\nrule: a\n-- request.json --\n{\"model\":\"a\\u0062\"}\n-- upstream.request.json --\n{}\n")
	if whole.Client.Kind != JSON || !bytes.Contains(whole.Client.Body, []byte(`"model":"a\u0062"`)) {
		t.Errorf("wants %s", whole.Client.Body)
	}
	stream := parse(t, "What.\nrule: a\n-- request.json --\n{\"model\":\"m\"}\n-- upstream.request.json --\n{\"stream\":true}\n")
	if stream.Client.Kind != SSE || !bytes.HasSuffix(stream.Client.Body, []byte("data: [DONE]\n\n")) {
		t.Errorf("wants %s", stream.Client.Body)
	}
	if contentType, _ := stream.Calls[0].Answer.Header.Get("content-type"); !strings.HasPrefix(contentType, "text/event-stream") {
		t.Errorf("content-type %q", contentType)
	}
}

func parse(t *testing.T, text string) *Case {
	t.Helper()
	c, err := Parse("area/name", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDeliveries(t *testing.T) {
	body := []byte("event: a\ndata: 1\n\nevent: b\ndata: 2\n\nrest")
	c := parse(t, "What.\nrule: a\n-- client.json --\n{}\n")
	names := map[string]bool{}
	for _, d := range c.Deliveries(body) {
		names[d.Name] = true
		if joined := bytes.Join(d.Pieces, nil); !bytes.Equal(joined, body) {
			t.Errorf("%s: joins to %q", d.Name, joined)
		}
	}
	for _, name := range []string{"whole", "whole, end alone", "event by event", "byte by byte", "random cuts 0", "random cuts 5"} {
		if !names[name] {
			t.Errorf("no delivery %s", name)
		}
	}
	if again := c.Deliveries(body); len(again[len(again)-1].Pieces) != len(c.Deliveries(body)[len(again)-1].Pieces) {
		t.Error("random cuts differ from run to run")
	}
	c.Cuts = []Cutting{Events}
	if all := c.Deliveries(body); len(all) != 1 || len(all[0].Pieces) != 3 {
		t.Errorf("cut by events: %v", all)
	}
}

// exchange is a case and an outcome that fits it at every level.
func exchange(t *testing.T) (*Case, Outcome) {
	c := parse(t, "What.\nrule: a\n-- request.json --\n{\"model\":\"m\"}\n-- upstream.request.json --\n{\"model\":\"m\"}\n"+
		"-- usage.json --\n{\"model\":\"m\"}\n")
	return c, Outcome{
		Status: 200,
		Header: Header{{"content-type", "application/json"}, {"request-id", "req_test01"}, {"x-request-id", "req_test01"}},
		Body:   c.Client.Body,
		Usage:  []byte(`{"model":"m"}`),
		Upstream: []Sent{{Method: "POST", Path: "/v1/messages", Body: []byte(`{"model":"m"}`), Header: Header{
			{"x-api-key", Key}, {"anthropic-version", "2023-06-01"}, {"content-type", "application/json"},
		}}},
	}
}

func TestCompareFits(t *testing.T) {
	c, o := exchange(t)
	for _, level := range []Level{Core, Wasm} {
		if diffs := c.Compare(level, o); len(diffs) > 0 {
			t.Errorf("%s: %v", level, diffs)
		}
	}
}

func TestCompareDiffers(t *testing.T) {
	for _, test := range []struct {
		name   string
		level  Level
		change func(*Outcome)
		want   string
	}{
		{"status", Core, func(o *Outcome) { o.Status = 500 }, "status 500"},
		{"body", Core, func(o *Outcome) { o.Body = bytes.Replace(o.Body, []byte("Hi."), []byte("Ho."), 1) }, "answer differs"},
		{"order of keys", Core, func(o *Outcome) { o.Upstream[0].Body = []byte(`{"x":1,"model":"m"}`) }, "upstream request differs"},
		{"not JSON", Core, func(o *Outcome) { o.Body = []byte("x") }, "not JSON"},
		{"not called", Core, func(o *Outcome) { o.Upstream = nil }, "called 0 times"},
		{"session", Core, func(o *Outcome) { o.Upstream[0].Header = Header{{"x-ezat-session", "s"}} }, "x-ezat-session"},
		{"usage", Core, func(o *Outcome) { o.Usage = []byte(`{}`) }, "recorded usage"},
		{"no usage", Core, func(o *Outcome) { o.Usage = nil }, "no usage"},
		{"path", Wasm, func(o *Outcome) { o.Upstream[0].Path = "/v1/messages?x" }, "/v1/messages?x"},
		{"key", Wasm, func(o *Outcome) { o.Upstream[0].Header = o.Upstream[0].Header.Del("x-api-key") }, "x-api-key is missing"},
		{"authorization", Wasm, func(o *Outcome) { o.Upstream[0].Header = o.Upstream[0].Header.Set("authorization", "x") }, "may not go up"},
		{"cookie", Wasm, func(o *Outcome) { o.Upstream[0].Header = o.Upstream[0].Header.Set("cookie", "x") }, "may not go up"},
		{"old length", Wasm, func(o *Outcome) { o.Upstream[0].Header = o.Upstream[0].Header.Set("content-length", "999") }, "may not go up"},
		{"request id", Wasm, func(o *Outcome) { o.Header = o.Header.Del("request-id") }, "no request-id"},
		{"two request ids", Wasm, func(o *Outcome) { o.Header = o.Header.Set("x-request-id", "y") }, "differs from request-id"},
		{"content type", Wasm, func(o *Outcome) { o.Header = o.Header.Set("content-type", "text/html") }, "text/html"},
		{"length", Wasm, func(o *Outcome) { o.Header = o.Header.Set("content-length", "3") }, "content-length 3"},
		{"organization", Wasm, func(o *Outcome) { o.Header = o.Header.Set("anthropic-organization-id", "x") }, "reaches the client"},
		{"time", Envoy, func(*Outcome) {}, "not a plausible time"},
	} {
		c, o := exchange(t)
		test.change(&o)
		diffs := strings.Join(c.Compare(test.level, o), "\n")
		if !strings.Contains(diffs, test.want) {
			t.Errorf("%s: %q, want a difference with %q", test.name, diffs, test.want)
		}
	}
}

func TestCompareHeaders(t *testing.T) {
	c, o := exchange(t)
	c.Client.Must = Header{{"retry-after", "7"}, {"x-request-id", "*"}}
	c.Client.MustNot = []string{"content-type"}
	diffs := strings.Join(c.Compare(Wasm, o), "\n")
	for _, want := range []string{"retry-after is missing", `content-type: "application/json", want none`} {
		if !strings.Contains(diffs, want) {
			t.Errorf("%q, want a difference with %q", diffs, want)
		}
	}
	if strings.Contains(diffs, "x-request-id") {
		t.Errorf("a header of any value differs: %q", diffs)
	}
}

// TestSettleCreated shows that at Envoy's level the time may be any plausible one, but
// the same in all chunks.
func TestSettleCreated(t *testing.T) {
	d := &differences{level: Envoy}
	text := fmt.Sprintf(`"object":"chat.completion.chunk","created":%d,`, time.Now().Unix())
	if got := string(d.settleCreated([]byte(text))); got != `"object":"chat.completion.chunk","created":1793318400,` || len(d.list) > 0 {
		t.Errorf("got %s, %v", got, d.list)
	}
	other := fmt.Sprintf(`"object":"chat.completion.chunk","created":%d,`, time.Now().Unix()-1)
	if d.settleCreated([]byte(text + other)); len(d.list) == 0 {
		t.Error("two times in one answer are no fault")
	}
}

func TestUpdate(t *testing.T) {
	text := "What.\nrule: a\n-- request.json --\n{\"model\":\"m\"}\n-- upstream.request.json --\n{\n  \"model\": \"old\"\n}\n" +
		"-- upstream --\n400\n-- upstream.json --\n{}\n-- client --\n400\n-- client.json --\n" +
		"{\"error\":{\"message\":\"n: $REST\",\"type\":\"x\"}}\n"
	c := parse(t, text)
	outcome := Outcome{
		Status:   400,
		Body:     []byte(`{"error":{"message":"n: is bad","type":"x"}}`),
		Upstream: []Sent{{Body: []byte(`{"model":"new"}`)}},
	}
	if diffs := strings.Join(c.Compare(Core, outcome), "\n"); !strings.Contains(diffs, "not filled in") {
		t.Errorf("an unfilled message: %q", diffs)
	}
	updated, err := c.Update(outcome)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("{\n  \"model\": \"old\"\n}", `{"model":"new"}`, "$REST", "is bad").Replace(text)
	if string(updated) != want {
		t.Errorf("got\n%s\nwant\n%s", updated, want)
	}
	kept, err := parse(t, want).Update(outcome)
	if err != nil || string(kept) != want {
		t.Errorf("an up-to-date case changes: %v\n%s", err, kept)
	}
	for _, bad := range []Outcome{
		{Status: 200, Body: outcome.Body, Upstream: outcome.Upstream},
		{Status: 400, Body: outcome.Body},
		{Status: 400, Body: []byte(`{"error":{"message":"m: is bad"}}`), Upstream: outcome.Upstream},
	} {
		if _, err := c.Update(bad); err == nil {
			t.Errorf("updated blindly from %+v", bad)
		}
	}
}

func TestCheckRows(t *testing.T) {
	rows, err := parseRows("# x\na.1 one\na.2 two\n\ttest: translate.TestA\na.3 three\na.4 four\na.5 five\n\ttest: e2e.TestB\n")
	if err != nil {
		t.Fatal(err)
	}
	all := []*Case{{Name: "x/y", Rules: []string{"a.1", "a.9"}}}
	toCome := map[string]string{"a.1": "soon", "a.4": "later", "b": "what"}
	exists := func(ref TestRef) bool { return ref.Name == "TestA" }
	got := CheckRows(rows, all, toCome, exists)
	want := []string{
		"a.5: there is no test e2e.TestB",
		"x/y: rule a.9 is not in rows.txt",
		"a.1: has evidence now, take it off rows_to_come.txt",
		"a.3: no case and no test shows this row",
		"a.5: no case and no test shows this row",
		"rows_to_come.txt: b is not in rows.txt",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, bad := range []string{"a one\na two\n", "Upper x\n", "\ttest: translate.TestA\n", "lonely\n"} {
		if _, err := parseRows(bad); err == nil {
			t.Errorf("%q is read without fault", bad)
		}
	}
}
