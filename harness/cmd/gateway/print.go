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

// imageLine is one hop of an image download in the log: the host, but never the
// path or its query, because links to private images have their keys there.
func imageLine(d harness.Download) string {
	address := "-"
	if d.Address.IsValid() {
		address = d.Address.String()
	}
	return fmt.Sprintf("image %q %d %s from %s %d bytes %dms", d.Authority, d.Status,
		cmp.Or(d.Details, "-"), address, d.Bytes, d.Duration.Milliseconds())
}

// greeting says where the gateway is, with two commands that work as pasted.
func greeting(address string, plugin plugin, up *upstream) string {
	var b strings.Builder
	key, where := "sk-any-key-will-do", "the built-in stand-in for the Anthropic API"
	if !up.builtIn {
		key, where = "$ANTHROPIC_API_KEY", up.url.String()
	}
	base := "http://" + address + plugin.prefix
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
	if len(plugin.images) > 0 {
		b.WriteString("\nImages may be data URLs, or http(s) URLs of public addresses, which are downloaded.\n")
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

// show prints a request without its keys. JSON is indented, and of a file in it
// only the beginning is shown; everything else is as it went.
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
		for line := range bytes.Lines(pretty.Bytes()) {
			b.Write(shortenFile(line))
		}
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

// shownFileBytes is what is shown of a file's base64.
const shownFileBytes = 64

// shortenFile cuts the base64 of an image or a PDF, which in indented JSON has a
// line of its own.
func shortenFile(line []byte) []byte {
	const key = `"data": "`
	start := bytes.Index(line, []byte(key)) + len(key)
	if start < len(key) || len(bytes.TrimSpace(line[:start-len(key)])) > 0 {
		return line
	}
	length := bytes.IndexByte(line[start:], '"')
	if length <= 2*shownFileBytes {
		return line
	}
	shown := fmt.Appendf(nil, "%s… (%d characters)", line[:start+shownFileBytes], length)
	return append(shown, line[start+length:]...)
}
