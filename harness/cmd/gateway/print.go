package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"ezat.io/chat-completions/harness"
)

// usageState is the filter state that the module writes its record to
// (operator.md, "What is recorded").
const usageState = "wasm.ezat.usage"

// accessLine is one request in the log, with the module's record.
func accessLine(a harness.Access) string {
	path, _, _ := strings.Cut(a.Path, "?")
	return fmt.Sprintf("%s %s %d %s %dms usage %s", a.Method, path, a.Status,
		cmp.Or(a.Details, "-"), a.Duration.Milliseconds(), cmp.Or(a.FilterState[usageState], "-"))
}

// greeting says where the gateway is, with two commands that work as pasted.
func greeting(address, prefix string, up *upstream) string {
	var b strings.Builder
	key, where := "sk-any-key-will-do", "the built-in stand-in for the Anthropic API"
	if !up.builtIn {
		key, where = "$ANTHROPIC_API_KEY", up.url.String()
	}
	base := "http://" + address + prefix
	fmt.Fprintf(&b, "\nServing %s, answered by %s. Ctrl-C ends it.\n", base, where)
	if !up.builtIn {
		b.WriteString("The commands take your key from the environment variable ANTHROPIC_API_KEY.\n")
	}
	for _, c := range []struct{ title, flags, more string }{
		{"A whole answer", "-sS", ""},
		{"A stream", "-sSN", `"stream": true, "stream_options": {"include_usage": true}, `},
	} {
		fmt.Fprintf(&b, "\n%s:\n\ncurl %s %s/chat/completions -H \"authorization: Bearer %s\" -H \"content-type: application/json\""+
			" -d '{\"model\": \"anthropic/claude-sonnet-5-5\", %s\"messages\": [{\"role\": \"user\", \"content\": \"Say hello.\"}]}'\n",
			c.title, c.flags, base, key, c.more)
	}
	b.WriteString("\n")
	return b.String()
}

// shower prints requests as they went upstream, one at a time.
type shower struct {
	mu  sync.Mutex
	out io.Writer
}

func newShower(out io.Writer) *shower { return &shower{out: out} }

// show prints a request without its keys. JSON is indented; everything else is
// as it went.
func (s *shower) show(r harness.Recorded) {
	r = r.Redacted()
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n> %s %s\n", r.Method, r.URL)
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range r.Header[name] {
			fmt.Fprintf(&b, "> %s: %s\n", strings.ToLower(name), v)
		}
	}
	if len(r.Body) > 0 {
		b.WriteString(">\n")
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, r.Body, "", "  "); err != nil {
			pretty.Write(r.Body)
		}
		b.Write(pretty.Bytes())
		b.WriteString("\n")
	}
	if r.Truncated {
		b.WriteString("… (cut off here; the rest went up)\n")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.out.Write(b.Bytes()); err != nil {
		// Standard output is gone; the next request is served all the same.
		return
	}
}
