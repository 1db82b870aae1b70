package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/standin"
)

// patience bounds the waits of these tests.
const patience = 90 * time.Second

// output is what the command has printed so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// wait waits for a text in the output.
func (o *output) wait(t *testing.T, text string) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s := o.String(); strings.Contains(s, text) {
			return s
		}
	}
	t.Fatalf("%q is not printed:\n%s", text, o.String())
	return ""
}

// begin runs the command until the test ends.
func begin(t *testing.T, args ...string) *output {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, ended := &output{}, make(chan error, 1)
	go func() { ended <- run(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), out) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%v", err)
		}
	})
	return out
}

// curlLine is the shape of the printed command lines.
var curlLine = regexp.MustCompile(`(?m)^  curl (?:-N )?(http://\S+) -H "(\S+): ([^"]+)" -H "(\S+): ([^"]+)" -d '([^']+)'$`)

// paste does what the printed command lines say.
func paste(t *testing.T, printed string) []string {
	t.Helper()
	var answers []string
	for _, m := range curlLine.FindAllStringSubmatch(printed, -1) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m[1], strings.NewReader(m[6]))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(m[2], m[3])
		req.Header.Set(m[4], m[5])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %s %q, %v", m[0], resp.Status, text, err)
		}
		answers = append(answers, string(text))
	}
	return answers
}

func TestPrintedLinesWork(t *testing.T) {
	out := begin(t, "-show")
	answers := paste(t, out.wait(t, `"stream": true}'`))
	if len(answers) != 2 {
		t.Fatalf("%d command lines are printed:\n%s", len(answers), out)
	}
	if !strings.Contains(answers[0], `"object":"chat.completion"`) || !strings.HasSuffix(answers[1], "data: [DONE]\n\n") {
		t.Errorf("the answers are\n%s\n%s", answers[0], answers[1])
	}
	printed := out.wait(t, `"outcome":"ok"`) // the access log
	for _, text := range []string{"→ POST /v1/messages\n", "  x-api-key: …\n", `"stream":true`, `Count from 1 to 5.`} {
		if !strings.Contains(printed, text) {
			t.Errorf("%q is not shown:\n%s", text, printed)
		}
	}
	if strings.Count(printed, "any-key") != 2 {
		t.Errorf("the key is shown outside the command lines:\n%s", printed)
	}
}

func TestAnotherUpstream(t *testing.T) {
	server := standin.New(standin.Options{})
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	t.Cleanup(server.Close)
	for name, args := range map[string][]string{"alone": nil, "shown": {"-show"}} {
		t.Run(name, func(t *testing.T) {
			server.Reset()
			out := begin(t, append(args, "-upstream", upstream.URL)...)
			printed := out.wait(t, `"stream": true}'`)
			if answers := paste(t, printed); len(answers) != 2 {
				t.Errorf("%d command lines are printed:\n%s", len(answers), printed)
			}
			if sent := server.Requests(); len(sent) != 2 {
				t.Errorf("the upstream got %d requests", len(sent))
			}
			if shows := strings.Contains(out.String(), "→ POST"); shows != (args != nil) {
				t.Errorf("requests are shown: %v", shows)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, args := range map[string][]string{
		"an argument":          {"upstream"},
		"an unknown flag":      {"-upstraem", "x"},
		"a busy port":          {"-listen", busy.Addr().String()},
		"an upstream's path":   {"-listen", "127.0.0.1:0", "-upstream", "https://example.test/v1"},
		"the same, to be seen": {"-listen", "127.0.0.1:0", "-show", "-upstream", "https://example.test/v1"},
		"no scheme":            {"-listen", "127.0.0.1:0", "-upstream", "example.test"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := run(t.Context(), []string{"-help"}, io.Discard); err != nil {
		t.Errorf("-help: %v", err)
	}
}
