package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ezat.io/chat-completions/harness"
)

const (
	modulePath = "../../../build/out/chat-completions.wasm"
	patience   = 60 * time.Second
)

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// running is a gateway that serves until its test ends.
type running struct {
	out, log buffer
	stop     func() error // ends it and returns what run returned
}

// start runs the gateway with the product's module.
func start(t *testing.T, o options) *running {
	t.Helper()
	if _, err := os.Stat(modulePath); err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	o.wasm, o.listen, o.workers = modulePath, "127.0.0.1:0", 1
	r := &running{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o, &r.out, log.New(&r.log, "", 0)) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return errors.New("it does not end")
		}
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(patience); !strings.Contains(r.out.String(), "A stream:"); time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s", err, r.log.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not serve")
		}
	}
	return r
}

// until waits for text in the log.
func until(t *testing.T, b *buffer, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(b.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q is not in:\n%s", text, b.String())
		}
	}
}

// commands are the curl lines of the greeting.
func (r *running) commands(t *testing.T) []string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^curl .*$`).FindAllString(r.out.String(), -1)
	if len(found) != 2 {
		t.Fatalf("commands: %q", found)
	}
	return found
}

// TestPastedCommands pastes both commands of the greeting into a shell.
func TestPastedCommands(t *testing.T) {
	r := start(t, options{show: true})
	commands := r.commands(t)
	paste := func(command string) string {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	var answer struct {
		Object  string
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal([]byte(paste(commands[0])), &answer); err != nil || answer.Object != "chat.completion" || answer.Choices[0].Message.Content == "" {
		t.Errorf("the whole answer: %v %+v", err, answer)
	}
	if got := paste(commands[1]); !strings.HasPrefix(got, `data: {"id":"chatcmpl-`) || !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("the stream: %s", got)
	}
	until(t, &r.log, `"stream":true,"status":200,"outcome":"ok"`)
	if n := strings.Count(r.log.String(), " usage {"); n != 2 {
		t.Errorf("%d lines of usage:\n%s", n, r.log.String())
	}
	shown := r.out.String()
	for _, want := range []string{"> POST http://127.0.0.1:", "/v1/messages", "x-api-key: (not shown)", `"role": "user"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not shown:\n%s", want, shown)
		}
	}
	if after := shown[strings.LastIndex(shown, "curl "):]; strings.Contains(strings.Join(strings.Split(after, "\n")[1:], "\n"), "sk-any-key") {
		t.Error("a key is shown")
	}
	if err := r.stop(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// TestUpstream sends to an upstream that was given, with that one's authority and
// the client's key.
func TestUpstream(t *testing.T) {
	got := make(chan *http.Request, 1)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Clone(context.Background())
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	defer up.Close()
	r := start(t, options{upstream: up.URL})
	command := r.commands(t)[0]
	if !strings.Contains(command, "Bearer $ANTHROPIC_API_KEY") {
		t.Errorf("command %s", command)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "ANTHROPIC_API_KEY=sk-real")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"content":"Hi."`) {
		t.Fatalf("%v: %s", err, out)
	}
	req := <-got
	if req.Host != strings.TrimPrefix(up.URL, "http://") || req.Header.Get("x-api-key") != "sk-real" {
		t.Errorf("host %s, headers %v", req.Host, req.Header)
	}
	if strings.Contains(r.log.String()+r.out.String(), "sk-real") {
		t.Error("the key is in the log")
	}
}

// TestUntrustedUpstream shows that the certificate of an upstream is checked.
func TestUntrustedUpstream(t *testing.T) {
	up := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the request reached an upstream that nobody vouches for")
	}))
	defer up.Close()
	up.Config.ErrorLog = log.New(io.Discard, "", 0)
	r := start(t, options{upstream: up.URL})
	cmd := exec.CommandContext(t.Context(), "sh", "-c", r.commands(t)[0])
	cmd.Env = append(os.Environ(), "ANTHROPIC_API_KEY=sk-real")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"code":"overloaded"`) {
		t.Errorf("%v: %s", err, out)
	}
	until(t, &r.log, " 503 upstream_reset_before_response_started")
}

// TestStreamIsCutAtTheEnd shows that the gateway ends though a stream is open.
func TestStreamIsCutAtTheEnd(t *testing.T) {
	began := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	}))
	defer up.Close()
	r := start(t, options{upstream: up.URL})
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/openai/v1`).FindString(r.out.String())
	failed := make(chan error, 1)
	go func() {
		req, err := http.NewRequest("GET", address+"/models", nil)
		if err == nil {
			req.Header.Set("Authorization", "Bearer k")
			_, err = http.DefaultClient.Do(req)
		}
		failed <- err
	}()
	<-began
	if err := r.stop(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if err := <-failed; err == nil {
		t.Error("the open request was answered")
	}
}

// TestBadOptions shows what does not start, and what is said.
func TestBadOptions(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"unknown_key": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		o    options
		want string
	}{
		"no module":           {options{wasm: "nowhere.wasm"}, "make wasm"},
		"no URL":              {options{upstream: "://"}, "-upstream"},
		"another scheme":      {options{upstream: "ftp://host"}, "not an http or https URL"},
		"a path":              {options{upstream: "https://host/v1"}, "more than a scheme and a host"},
		"no configuration":    {options{config: "nowhere.json"}, "-config"},
		"a bad configuration": {options{config: bad}, "unknown_key"},
		"an address in use":   {options{listen: "127.0.0.1:-1"}, "listen"},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.o
			if o.wasm == "" {
				o.wasm = modulePath
			}
			if o.listen == "" {
				o.listen = "127.0.0.1:0"
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // if it serves after all, it ends at once
			err := run(ctx, o, io.Discard, log.New(io.Discard, "", 0))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestPrefix finds the module's prefix in its configuration.
func TestPrefix(t *testing.T) {
	for text, want := range map[string]string{
		``: "/openai/v1", `{}`: "/openai/v1", `{"route_prefix":"/x/"}`: "/x", `{"route_prefix":7}`: "/openai/v1", `[`: "/openai/v1",
	} {
		if got := prefixOf([]byte(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestAccessLine shows a line without usage, and that no query is written.
func TestAccessLine(t *testing.T) {
	got := accessLine(harness.Access{Method: "GET", Path: "/a?key=secret", Status: 404, Duration: 1500 * time.Microsecond})
	if want := "GET /a 404 - 1ms usage -"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestShowsWhatIsNoJSON shows a body as it went, cut off.
func TestShowsWhatIsNoJSON(t *testing.T) {
	var out bytes.Buffer
	newShower(&out).show(harness.Recorded{Method: "POST", URL: "http://up/", Body: []byte("{"), Truncated: true})
	if want := "\n> POST http://up/\n>\n{\n… (cut off here; the rest went up)\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}
