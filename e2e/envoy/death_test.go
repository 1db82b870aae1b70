package envoy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// trapHeader lets a module that was built for it die (filter/abi_trap.go).
const trapHeader = "x-ezat-trap"

// buildTrap builds the product's module with what lets it die on demand, by the
// steps of the one that ships, which must not have it.
func buildTrap(t *testing.T) string {
	t.Helper()
	root, err := envoy.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trap.wasm")
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "build", "wasm.sh"))
	cmd.Env = append(os.Environ(), "TAGS=trap", "OUT="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for file, want := range map[string]bool{path: true, filepath.Join(root, "build", "out", "chat-completions.wasm"): false} {
		module, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(module, []byte(trapHeader)) != want {
			t.Fatalf("%s knows %s: want %v", file, trapHeader, want)
		}
	}
	return path
}

// secret stands for what must never be logged.
const secret = "words of a message"

// waiter is a client whose stream is in the VM when it dies.
type waiter struct {
	what string
	conn net.Conn    // nil over HTTP/2
	text chan string // all that came until its connection was closed
}

// wait sends a part of a request over HTTP/1.1, and reads to the end of the connection.
func wait(t *testing.T, e *envoy.Envoy, what, body string, part int) waiter {
	t.Helper()
	conn := dial(t, e, fmt.Sprintf("POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\nconnection: close\r\n"+
		"content-length: %d\r\n\r\n%s", len(body), body[:part]))
	w := waiter{what, conn, make(chan string, 1)}
	go func() {
		text, err := io.ReadAll(conn)
		if err != nil {
			text = fmt.Append(text, err)
		}
		w.text <- string(text)
	}()
	return w
}

// silentServer accepts connections and says nothing.
func silentServer(t *testing.T) (addr string, accepted *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted = new(atomic.Int32)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return l.Addr().String(), accepted
}

// openLab lets images come from loopback.
var openLab = envoy.ImageDNS(func(c *envoy.Config, place []any) error {
	return c.Remove(envoy.At(place, "resolved_address_filter")...)
})

// mortal starts an Envoy whose module dies on demand. Its upstream answers only
// "answer me", begins streams and is silent otherwise.
func mortal(t *testing.T, module string, o envoy.Options) (*envoy.Envoy, upstream) {
	t.Helper()
	o.Module, o.FaultsExpected = module, true
	e, up := start(t, o)
	up.Script(func(r *standin.Recorded) *standin.Response {
		switch body := string(r.Body); {
		case strings.Contains(body, "answer me"):
			return standin.JSON(200, []byte(message))
		case strings.Contains(body, `"stream":true`):
			r := standin.SSE([]byte(streamBegin), []byte(streamEnd))
			r.Pieces[1].Wait = make(chan struct{})
			return r
		}
		return &standin.Response{Silent: true}
	})
	return e, up
}

var answerMe = strings.Replace(hello, "Say hello.", "answer me", 1)

// kill lets the VM of a worker die in a way, and returns when the client has the 503.
func kill(t *testing.T, e *envoy.Envoy, how string) {
	t.Helper()
	r := chat(t, client(t, false), e, hello, trapHeader, how)
	wantError(t, r, 503, "server_error")
	if r.Header.Get("retry-after") == "" || r.Header.Get("request-id") == "" || r.Header.Get("request-id") != r.Header.Get("x-request-id") {
		t.Errorf("headers of the 503: %v", r.Header)
	}
}

// revive waits until Envoy answers again, and returns how long it took.
func revive(t *testing.T, e *envoy.Envoy) time.Duration {
	t.Helper()
	begin := time.Now()
	for c := client(t, false); ; time.Sleep(20 * time.Millisecond) {
		if r := chat(t, c, e, answerMe); r.Status == 200 {
			return time.Since(begin)
		}
		if time.Since(begin) > patience {
			t.Fatal("the module is not replaced")
		}
	}
}

// TestDeath: what becomes of a VM's streams when it dies all the same.
func TestDeath(t *testing.T) {
	module := buildTrap(t)
	e, up := mortal(t, module, envoy.Options{Plugin: `{"images":{"allow_private":true}}`, Edits: []envoy.Edit{openLab}})
	t.Run("all who wait are answered", func(t *testing.T) { testDeathIsAnswered(t, e, up) })
	t.Run("nothing piles up", func(t *testing.T) { testDeathsLeaveNothing(t, e) })
	t.Run("an older Envoy", func(t *testing.T) { testDeathOlder(t, module) })
	t.Run("a death that nobody sees", func(t *testing.T) { testSilentDeath(t, module) })
	t.Run("under load", func(t *testing.T) { testDeathUnderLoad(t, module) })
}

// testDeathIsAnswered: whoever waits for something that was in the VM is answered at
// once: for a whole answer, with an upload, for a picture; a stream is cut. The
// log has one line of the module's for it, with no text of a request.
func testDeathIsAnswered(t *testing.T, e *envoy.Envoy, up upstream) {
	server, accepted := silentServer(t)
	image := strings.Replace(hello, `"Say hello."`, `[{"type":"image_url","image_url":{"url":"http://`+server+`/a.png"}}]`, 1)
	for i, how := range []struct{ trap, line string }{
		{"index", "panic: runtime error: index out of range [5] with length 0"},
		{"text " + secret, "panic: its text is not shown"},
		{"memory", "fatal error: out of memory"},
		{"stack", "fatal error: stack overflow"},
	} {
		seen := len(up.Requests())
		all := []waiter{
			wait(t, e, "an upload", hello, 20), wait(t, e, "a picture", image, len(image)),
			wait(t, e, "a whole answer", hello, len(hello)), wait(t, e, "a stream", helloStream, len(helloStream)), waitHTTP2(t, e),
		}
		until(t, "the streams are not all there", func() bool { return len(up.Requests()) == seen+3 && int(accepted.Load()) == i+1 })
		kill(t, e, how.trap)
		died := time.Now()
		for _, w := range all {
			wantDeath(t, w)
		}
		t.Logf("%s: all answered in %v, good answers again in %v", how.trap, time.Since(died), revive(t, e))
		wantLine(t, e, how.line, i+1)
	}
	if log := e.Log(); strings.Contains(log, secret) {
		t.Error("the log has text of a request")
	}
}

// waitHTTP2 waits for a whole answer over HTTP/2.
func waitHTTP2(t *testing.T, e *envoy.Envoy) waiter {
	w := waiter{"a whole answer over HTTP/2", nil, make(chan string, 1)}
	c, ctx := client(t, true), t.Context()
	go func() {
		r, err := try(ctx, c, http.MethodPost, e.URL+"/openai/v1/chat/completions", strings.NewReader(hello))
		w.text <- fmt.Sprint("HTTP/2 ", r.Status, " ", r.Header, r.Body, err)
	}()
	return w
}

// wantDeath: a 503 of OpenAI's shape, or the end of a stream that has begun.
func wantDeath(t *testing.T, w waiter) {
	t.Helper()
	select {
	case text := <-w.text:
		if w.what == "a stream" {
			if !strings.HasPrefix(text, "HTTP/1.1 200 ") || strings.Contains(text, "[DONE]") {
				t.Errorf("%s got %q", w.what, text)
			}
			return
		}
		lower := strings.ToLower(text)
		if !strings.HasPrefix(text[strings.Index(text, " "):], " 503 ") || !strings.Contains(text, `"code":"overloaded"`) ||
			!strings.Contains(lower, "retry-after") || !strings.Contains(lower, "x-request-id") {
			t.Errorf("%s got %q", w.what, text)
		}
	case <-time.After(5 * time.Second): // it takes milliseconds, and Envoy one second more to close a connection with half a request
		t.Errorf("%s still waits", w.what)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

var moduleLine = regexp.MustCompile(`(?m)^.*\]\[(critical|error|warning)\]\[wasm\].* wasm log .*$`)

// wantLine: the module has said why it died, in one line for each death.
func wantLine(t *testing.T, e *envoy.Envoy, why string, deaths int) {
	t.Helper()
	lines := moduleLine.FindAllString(e.Log(), -1)
	if len(lines) != deaths {
		t.Errorf("%d lines for %d deaths:\n%s", len(lines), deaths, strings.Join(lines, "\n"))
		return
	}
	if last := lines[deaths-1]; !strings.Contains(last, "[critical]") || !strings.HasSuffix(last, why) {
		t.Errorf("%q does not say %q", last, why)
	}
}

// testDeathOlder: the same on an Envoy whose proxy-wasm host is older.
func testDeathOlder(t *testing.T, module string) {
	e, up := mortal(t, module, envoy.Options{Version: envoy.Older, File: envoy.FileWithoutImages})
	all := []waiter{wait(t, e, "an upload", hello, 20), wait(t, e, "a whole answer", hello, len(hello)), wait(t, e, "a stream", helloStream, len(helloStream))}
	until(t, "the streams are not all there", func() bool { return len(up.Requests()) == 2 })
	kill(t, e, "index")
	for _, w := range all {
		wantDeath(t, w)
	}
	revive(t, e)
	wantLine(t, e, "index out of range [5] with length 0", 1)
}

const liveVMs = "wasm.envoy.wasm.runtime.v8.active"

func stat(t *testing.T, e *envoy.Envoy, name string) int64 {
	t.Helper()
	s, err := e.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	value, ok := s[name]
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return value
}

func resident(t *testing.T, e *envoy.Envoy) int64 {
	t.Helper()
	m, err := e.Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m.Resident
}

// testDeathsLeaveNothing: ten deaths, three of them with all memory in use, each
// with an upload that stands still: no VM is left of them, and no memory.
func testDeathsLeaveNothing(t *testing.T, e *envoy.Envoy) {
	chat(t, client(t, false), e, answerMe)
	vms, before := stat(t, e, liveVMs), resident(t, e)
	var most int64
	for i := range 10 {
		w := wait(t, e, "an upload", hello, 20)
		until(t, "the upload is not there", func() bool { return stat(t, e, "http.openai.downstream_rq_active") == 1 })
		kill(t, e, map[bool]string{true: "memory", false: "index"}[i%4 == 0])
		wantDeath(t, w)
		revive(t, e)
		most = max(most, resident(t, e))
	}
	until(t, "VMs are left", func() bool { return stat(t, e, liveVMs) == vms })
	after := resident(t, e)
	t.Logf("resident before %d MB, after each death at most %d MB, after all %d MB", before>>20, most>>20, after>>20)
	// Nine VMs more would be some 300 MB, three full ones 3 GB.
	if after > before+150<<20 {
		t.Errorf("%d MB are left of ten deaths", (after-before)>>20)
	}
}

// testSilentDeath: what Go does not see, such as a fault of the host's, leaves nobody
// to answer. What has not gone up yet ends by the time that the
// first route has for it, and the VM with it.
func testSilentDeath(t *testing.T, module string) {
	e, _ := mortal(t, module, envoy.Options{Edits: []envoy.Edit{envoy.Set("1s", envoy.At(firstRoute, "idle_timeout")...)}})
	chat(t, client(t, false), e, answerMe)
	vms := stat(t, e, liveVMs)
	w := wait(t, e, "an upload", hello, 20)
	until(t, "the upload is not there", func() bool { return stat(t, e, "http.openai.downstream_rq_active") == 1 })
	kill(t, e, "silent")
	begin := time.Now()
	text := <-w.text
	t.Logf("the upload is answered after %v", time.Since(begin))
	if !strings.HasPrefix(text, "HTTP/1.1 503 ") || !strings.Contains(text, `"code":"overloaded"`) {
		t.Errorf("the upload got %q", text)
	}
	revive(t, e)
	until(t, "VMs are left", func() bool { return stat(t, e, liveVMs) == vms })
}

// testDeathUnderLoad: with two workers busy, a death ends what is on its own
// worker, and soon all answers are good again.
func testDeathUnderLoad(t *testing.T, module string) {
	e, _ := mortal(t, module, envoy.Options{Concurrency: 2})
	ctx, stop := context.WithCancel(t.Context())
	var (
		load    sync.WaitGroup
		lock    sync.Mutex
		lastBad time.Time
		count   = map[int]int{}
	)
	for range 8 {
		c := client(t, false)
		load.Go(func() {
			for ctx.Err() == nil {
				r, err := try(ctx, c, http.MethodPost, e.URL+"/openai/v1/chat/completions", strings.NewReader(answerMe))
				if ctx.Err() != nil {
					return
				}
				lock.Lock()
				count[r.Status]++
				if err != nil || r.Status != 200 {
					lastBad = time.Now()
				}
				lock.Unlock()
				if err != nil || r.Status != 200 {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	time.Sleep(time.Second)
	kill(t, e, "memory")
	died := time.Now()
	time.Sleep(4 * time.Second)
	stop()
	load.Wait()
	t.Logf("answers by status %v; the last bad one %v after the death", count, lastBad.Sub(died))
	if count[0] != 0 {
		t.Errorf("%d requests ended without an answer", count[0])
	}
	if count[503] == 0 || len(count) > 2 {
		t.Errorf("answers by status: %v", count)
	}
	if lastBad.Sub(died) > 3*time.Second { // within 2 s on a machine that has nothing else to do
		t.Errorf("bad answers until %v after the death", lastBad.Sub(died))
	}
}
