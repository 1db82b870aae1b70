// Package play holds small plays of a proxy-wasm guest between a client and an
// upstream, each with the transcript of what a real Envoy made of it. The
// harness must give the same transcript: where the two differ, it is the
// harness that is wrong.
//
// A play is a txtar file:
//
//	what it shows
//	-- options --
//	stop_iteration: false
//	-- script --
//	request_headers: pause
//	-- play --
//	a request POST /x "content-length: 5"
//	a send hello
//	-- transcript --
//	> a request POST /x "content-length: 5"
//	  guest request_headers 0
//
// The script is the configuration of the script guest (testguest/script). The
// steps are listed at [Step]. Program record writes the transcripts.
package play

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"
)

// Case is one play.
type Case struct {
	Name       string
	Comment    string
	Options    Options
	Script     string
	Steps      []Step
	Transcript string
}

// Options is how the host is set up. The zero value of each field stands for
// the default named.
type Options struct {
	NoStopIteration  bool   // allow_on_headers_stop_iteration: false; default true
	BufferLimitBytes uint32 // per_connection_buffer_limit_bytes; default 1 MiB
	RouteTimeoutMs   uint32 // default 0: none
	IdleTimeoutMs    uint32 // stream_idle_timeout; default 0: none
	FailClosed       bool   // failure_policy FAIL_CLOSED; default FAIL_RELOAD
	ABI021           bool   // abi: 0.2.1; the guest's ABI, default 0.2.0
}

// Step is one line of a play. The first word is the stream's name, or
// "callout" or "wait"; the second what happens:
//
//	a request METHOD PATH [HEADER…] [chunked]   the client opens a connection and sends the head
//	a send WORD…                                a piece of the client's body
//	a end                                       the end of a chunked body
//	a trailers HEADER…                          the same with trailers
//	a leave                                     the client closes its connection
//	a up STATUS [HEADER…] [chunked]             the upstream sends a head
//	a upsend WORD…  a upend  a uptrailers HEADER…
//	a upreset                                   the upstream closes its connection
//	callout STATUS BODY [HEADER…]               the oldest waiting callout is answered
//	callout reset                               … or its connection closed
//	callout cut                                 … in the middle of the answer
//	wait MS                                     time passes
type Step struct {
	Line  string
	Who   string
	What  string
	Words []string
}

// Load reads a play from a file.
func Load(path string) (*Case, error) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return nil, err
	}
	c := &Case{
		Name:    strings.TrimSuffix(filepath.Base(path), ".txtar"),
		Comment: string(archive.Comment),
	}
	for _, f := range archive.Files {
		data := string(f.Data)
		switch f.Name {
		case "options":
			err = c.Options.parse(data)
		case "script":
			c.Script = data
		case "play":
			c.Steps, err = parseSteps(data)
		case "transcript":
			c.Transcript = data
		default:
			err = fmt.Errorf("unknown section %q", f.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return c, nil
}

// WithTranscript returns the file's bytes with another transcript.
func WithTranscript(file []byte, transcript string) []byte {
	archive := txtar.Parse(file)
	for i := range archive.Files {
		if archive.Files[i].Name == "transcript" {
			archive.Files[i].Data = []byte(transcript)
			return txtar.Format(archive)
		}
	}
	archive.Files = append(archive.Files, txtar.File{Name: "transcript", Data: []byte(transcript)})
	return txtar.Format(archive)
}

func (o *Options) parse(text string) error {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		var err error
		switch key {
		case "":
		case "stop_iteration":
			o.NoStopIteration = value == "false"
		case "abi":
			o.ABI021 = value == "0.2.1"
		case "fail_closed":
			o.FailClosed = value == "true"
		case "buffer_limit_bytes":
			o.BufferLimitBytes, err = number(value)
		case "idle_timeout_ms":
			o.IdleTimeoutMs, err = number(value)
		case "route_timeout_ms":
			o.RouteTimeoutMs, err = number(value)
		default:
			err = fmt.Errorf("unknown option %q", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}

func parseSteps(text string) ([]Step, error) {
	var steps []Step
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words, err := split(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("%s: two words at least", line)
		}
		steps = append(steps, Step{Line: line, Who: words[0], What: words[1], Words: words[2:]})
	}
	return steps, nil
}

// split cuts a line into words: bare, or Go string literals, each with an
// optional "*n".
func split(line string) ([]string, error) {
	var words []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word := line
		if quoted, err := strconv.QuotedPrefix(line); err == nil {
			line = line[len(quoted):]
			if word, err = strconv.Unquote(quoted); err != nil {
				return nil, err
			}
		} else {
			end := strings.IndexByte(line+" ", ' ')
			word, line = line[:end], line[end:]
		}
		if rest, ok := strings.CutPrefix(line, "*"); ok {
			end := strings.IndexByte(rest+" ", ' ')
			n, err := strconv.Atoi(rest[:end])
			if err != nil {
				return nil, err
			}
			word, line = strings.Repeat(word, n), rest[end:]
		}
		words = append(words, word)
	}
	return words, nil
}

// Head cuts the words of a request or answer into its headers and whether its
// body is chunked.
func Head(words []string) (headers [][2]string, chunked bool) {
	for _, w := range words {
		if w == "chunked" {
			chunked = true
			continue
		}
		name, value, _ := strings.Cut(w, ":")
		headers = append(headers, [2]string{name, strings.TrimSpace(value)})
	}
	return headers, chunked
}
