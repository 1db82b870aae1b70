package envoy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// Log returns what Envoy has written about itself and what the module has
// logged.
func (e *Envoy) Log() string { return e.read("server.log") }

// told returns the end of the log without the warning that Envoy gives for each
// range of the egress's address filter.
func (e *Envoy) told(n int) string {
	var lines []string
	for line := range strings.Lines(e.Log()) {
		if !strings.Contains(line, "'xds.core.v3.CidrRange' is contained in proto file") {
			lines = append(lines, line)
		}
	}
	return tail(strings.Join(lines, ""), n)
}

// read returns a log; one that cannot be read says so itself, because logs
// are read when something else has gone wrong.
func (e *Envoy) read(name string) string {
	text, err := os.ReadFile(e.path(name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// fault matches lines of Envoy's log that no good run has: crashes of the VM,
// calls outside the list of capabilities, broken assertions of Envoy.
var fault = regexp.MustCompile(`\]\[critical\]|Wasm VM failed|Plugin .*(VM|failed)|Function: |restricted|envoy bug failure|assert failure`)

// Faults returns the lines of the log that speak of a crash or of a
// restricted call.
func (e *Envoy) Faults() []string {
	var lines []string
	for line := range strings.Lines(e.Log()) {
		// Envoy 1.40 calls the place of the list deprecated, and that place has the word in its name.
		if fault.MatchString(line) && !strings.Contains(line, "Deprecated field") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Access is one line of the access log.
type Access struct {
	Line   string
	Method string
	Path   string // that the client asked for, without the query
	Status string
	Fields map[string]string // the key=value parts; "-" is an absent value
	Usage  json.RawMessage   // the filter's line; nil without one
}

var accessLine = regexp.MustCompile(`^\S+ "(\S+) (\S+) (\S+)" (\d+) (.*?) usage=(.*)$`)

// ParseAccess reads one line of the access log.
func ParseAccess(line string) (Access, error) {
	m := accessLine.FindStringSubmatch(line)
	if m == nil {
		return Access{}, fmt.Errorf("not a line of the access log: %q", line)
	}
	fields, err := parseFields(m[5])
	if err != nil {
		return Access{}, fmt.Errorf("%w in %q", err, line)
	}
	a := Access{Line: line, Method: m[1], Path: m[2], Status: m[4], Fields: fields}
	if m[6] != "-" {
		a.Usage = json.RawMessage(m[6])
		if !json.Valid(a.Usage) {
			return Access{}, fmt.Errorf("the usage is not JSON: %q", line)
		}
	}
	return a, nil
}

// parseFields reads key=value parts.
func parseFields(text string) (map[string]string, error) {
	fields := map[string]string{}
	for _, field := range strings.Fields(text) {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			return nil, fmt.Errorf("not a field: %q", field)
		}
		fields[key] = value
	}
	return fields, nil
}

// wholeLines returns the lines of a log, without the last one when half of it is
// not written yet.
func wholeLines(text string) []string {
	lines := strings.Split(text, "\n")
	return lines[:len(lines)-1]
}

// AccessLog returns the lines of the access log so far, without those of the
// image egress (see ImageLog). A line comes about 50 ms after the request has
// ended.
func (e *Envoy) AccessLog() ([]Access, error) {
	var all []Access
	for _, line := range wholeLines(e.read("access.log")) {
		if isImageAccess(line) {
			continue
		}
		a, err := ParseAccess(line)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// WaitAccess waits for the first line of the access log that matches, until
// ctx ends.
func (e *Envoy) WaitAccess(ctx context.Context, match func(Access) bool) (Access, error) {
	for {
		all, err := e.AccessLog()
		if err != nil {
			return Access{}, err
		}
		for _, a := range all {
			if match(a) {
				return a, nil
			}
		}
		select {
		case <-ctx.Done():
			return Access{}, fmt.Errorf("no such line in the access log: %w\n%s", ctx.Err(), tail(e.read("access.log"), 20))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// tail returns the last lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
