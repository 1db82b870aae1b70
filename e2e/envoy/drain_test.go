package envoy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// TestGoingDown follows the steps that envoy.yaml gives for going down softly: no
// stream is cut, and who comes meanwhile is told to go elsewhere.
func TestGoingDown(t *testing.T) {
	e, up := start(t, envoy.Options{})
	goOn := make(chan struct{})
	up.Script(func(r *standin.Recorded) *standin.Response {
		if !strings.Contains(string(r.Body), `"stream":true`) {
			return standin.JSON(200, []byte(message))
		}
		s := standin.SSE([]byte(streamBegin), []byte(streamEnd))
		s.Pieces[1].Wait = goOn
		return s
	})
	var streams []waiter
	for range 2 {
		streams = append(streams, wait(t, e, "a stream", helloStream, len(helloStream)), streamHTTP2(t, e))
	}
	upload := wait(t, e, "an upload", helloStream, 20)
	kept := dial(t, e, "")
	until(t, "the streams are not there", func() bool { return len(up.Requests()) == 4 })

	ask(t, e, http.MethodPost, "/healthcheck/fail")
	if _, err := e.Ask(t.Context(), http.MethodGet, "/ready"); err == nil || !strings.Contains(err.Error(), "DRAINING") {
		t.Errorf("a load balancer is told %v", err)
	}
	whole := fmt.Sprintf("POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\ncontent-length: %d\r\n\r\n%s", len(hello), hello)
	for _, conn := range []net.Conn{kept, dial(t, e, "")} {
		if status, closes := exchange(t, conn, bufio.NewReader(conn), whole); status != 200 || !closes {
			t.Errorf("%d, closes: %v; want an answer, and the end of the connection", status, closes)
		}
	}

	ask(t, e, http.MethodPost, "/drain_listeners")
	until(t, "new connections are accepted", func() bool {
		conn, err := net.Dial("tcp", e.Addr)
		if err == nil {
			conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if n := stat(t, e, "http.openai.downstream_rq_active"); n != 5 {
		t.Errorf("%d requests are under way, want 5", n)
	}
	if _, err := io.WriteString(upload.conn, helloStream[20:]); err != nil {
		t.Error(err)
	}
	close(goOn)
	for _, w := range append(streams, upload) {
		wantWhole(t, w)
	}
	until(t, "requests are under way", func() bool { return stat(t, e, "http.openai.downstream_rq_active") == 0 })
}

func ask(t *testing.T, e *envoy.Envoy, method, path string) {
	t.Helper()
	if _, err := e.Ask(t.Context(), method, path); err != nil {
		t.Fatal(err)
	}
}

// streamHTTP2 reads a stream over HTTP/2.
func streamHTTP2(t *testing.T, e *envoy.Envoy) waiter {
	w := waiter{"a stream over HTTP/2", nil, make(chan string, 1)}
	c, ctx := client(t, true), t.Context()
	go func() {
		r, err := try(ctx, c, http.MethodPost, e.URL+"/openai/v1/chat/completions", strings.NewReader(helloStream))
		w.text <- r.Body + fmt.Sprint(err)
	}()
	return w
}

// wantWhole: the stream has come to its end.
func wantWhole(t *testing.T, w waiter) {
	t.Helper()
	select {
	case text := <-w.text:
		if !strings.Contains(text, "data: [DONE]\n\n") {
			t.Errorf("%s was cut: %q", w.what, text)
		}
	case <-time.After(patience):
		t.Errorf("%s does not end", w.what)
	}
}
