package play

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const file = `what it shows
-- options --
stop_iteration: false
buffer_limit_bytes: 10
route_timeout_ms: 20
idle_timeout_ms: 30
fail_closed: true
abi: 0.2.1
-- script --
request_headers: pause
-- play --
# a comment
a request POST /x "k: v w" chunked
a send "x"*3 "y z"
`

func load(t *testing.T, text string) (*Case, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "name.txtar")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

// TestLoad reads a play.
func TestLoad(t *testing.T) {
	got, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	want := &Case{
		Name: "name", Comment: "what it shows\n", Script: "request_headers: pause\n",
		Options: Options{NoStopIteration: true, BufferLimitBytes: 10, RouteTimeoutMs: 20, IdleTimeoutMs: 30, FailClosed: true, ABI021: true},
		Steps: []Step{
			{Line: `a request POST /x "k: v w" chunked`, Who: "a", What: "request", Words: []string{"POST", "/x", "k: v w", "chunked"}},
			{Line: `a send "x"*3 "y z"`, Who: "a", What: "send", Words: []string{"xxx", "y z"}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	headers, chunked := Head(got.Steps[0].Words[2:])
	if !chunked || len(headers) != 1 || headers[0] != [2]string{"k", "v w"} {
		t.Errorf("head %v %v", headers, chunked)
	}
}

// TestLoadRefuses shows what is no play.
func TestLoadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"section":    "-- scene --\n",
		"option":     "-- options --\ncolour: red\n",
		"number":     "-- options --\nbuffer_limit_bytes: many\n",
		"one word":   "-- play --\na\n",
		"open quote": "-- play --\na send \"x\"*many\n",
	} {
		if _, err := load(t, text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "nowhere.txtar")); err == nil {
		t.Error("no file: no error")
	}
}

// TestWithTranscript adds a transcript, and puts another in its place.
func TestWithTranscript(t *testing.T) {
	one := WithTranscript([]byte(file), "> one\n")
	two := WithTranscript(one, "> two\n")
	if string(one) != file+"-- transcript --\n> one\n" || string(two) != file+"-- transcript --\n> two\n" {
		t.Errorf("got\n%s\nand\n%s", one, two)
	}
}

// TestTranscript shows the order of what is seen, and what is left out of it.
func TestTranscript(t *testing.T) {
	tr := NewTranscript()
	tr.Guest("configure 1")
	tr.Guest("configure 1")
	tr.Start()
	tr.Line("log", "a 200")
	tr.Head("a client", "200", [][2]string{{"x-b", "2"}, {"Date", "now"}, {"x-a", "1"}, {"transfer-encoding", "chunked"}})
	tr.Body("a client", []byte("one"))
	tr.Body("a client", []byte("two"))
	tr.Line("a client", "end")
	tr.Head("a up", "GET /", nil)
	tr.Guest("property source.address 0 \"127.0.0.1:12345\"")
	tr.Guest("panic: ")
	tr.Guest("gone")
	tr.Step("step")
	tr.Body("a up", []byte(strings.Repeat("z", 100)))
	tr.Guest("alive again")
	tr.Step("next")
	want := `> start
  guest configure 1
> step
  guest property source.address 0 "127.0.0.1:PORT"
  guest panics
  a up GET /
  a client 200
  a client   x-a: 1
  a client   x-b: 2
  a client +"onetwo"
  a client end
  log a 200
> next
  guest alive again
  a up +"` + strings.Repeat("z", 30) + "…100…" + strings.Repeat("z", 30) + `"
`
	if got := tr.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
