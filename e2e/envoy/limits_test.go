package envoy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// bodyMax is the contract's 32 MB.
const bodyMax = 33_554_432

const message = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"Hi."}],` +
	`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":2}}`

// testBodies: 32 MB exactly go through, over HTTP/2 as well, where another
// setting than the listener's holds; one byte more does not, announced or not.
func testBodies(t *testing.T, e *envoy.Envoy, up upstream) {
	up.Script(func(*standin.Recorded) *standin.Response { return standin.JSON(200, []byte(message)) })
	protocols(t, func(t *testing.T, c *http.Client) {
		for _, announced := range []bool{true, false} {
			wantAnswer(t, post(t, c, e, bodyMax, announced))
			wantError(t, post(t, c, e, bodyMax+1, announced), 413, "invalid_request_error")
			wantAnswer(t, chat(t, c, e, hello))
		}
	})
}

// post sends a request of exactly so many bytes, with or without a content-length.
func post(t *testing.T, c *http.Client, e *envoy.Envoy, size int, announced bool) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL+"/openai/v1/chat/completions", long(size))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("authorization", "Bearer sk-ant-of-the-client")
	req.ContentLength = -1
	if announced {
		req.ContentLength = int64(size)
	}
	r, err := send(c, req)
	if err != nil {
		t.Fatalf("%d bytes, announced %v: %v", size, announced, err)
	}
	return r
}

// Pieces of a stream.
const (
	streamBegin = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-5-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"first words\"}}\n\n"
	streamEnd = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":2}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// testStreamPasses: the client has the first words while the upstream waits
// for a sign from it to go on.
func testStreamPasses(t *testing.T, e *envoy.Envoy, up upstream) {
	protocols(t, func(t *testing.T, c *http.Client) {
		seen := make(chan struct{})
		up.Script(func(*standin.Recorded) *standin.Response {
			r := standin.SSE([]byte(streamBegin), []byte(streamEnd))
			r.Pieces[1].Wait = seen
			return r
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL+"/openai/v1/chat/completions", strings.NewReader(helloStream))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("authorization", "Bearer sk-ant-of-the-client")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("the first words have not come while the upstream waits: %v", err)
			}
			if strings.Contains(line, "first words") {
				break
			}
		}
		close(seen)
		rest, err := io.ReadAll(lines)
		if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
			t.Errorf("the stream ends with %q, %v", rest, err)
		}
	})
}

// TestLimits tries each limit of the file with smaller numbers.
func TestLimits(t *testing.T) {
	e, up := start(t, envoy.Options{Edits: []envoy.Edit{
		envoy.MaxConnections(4), envoy.BufferLimit(1 << 20), envoy.RequestTimeouts(time.Second, 5*time.Second),
		envoy.IdleTimeouts(20*time.Second, 2*time.Second), envoy.WholeAnswer(6 * time.Second),
		envoy.Set("2s", envoy.At(firstRoute, "idle_timeout")...),
	}})
	for name, test := range map[string]func(*testing.T, *envoy.Envoy, upstream){
		"slow headers": testSlowHeaders, "slow bodies": testSlowBodies, "whole answers": testWholeAnswers,
		"broken answers": testBrokenAnswers, "stalled uploads": testStalledUploads,
		"buffer": testBufferLimit, "bad requests": testBadRequests, "connections": testConnectionLimit,
	} {
		t.Run(name, func(t *testing.T) {
			up.Reset()
			test(t, e, up)
		})
	}
}

// firstRoute is the one that a request has until its translation goes up.
var firstRoute = envoy.At(envoy.HCM, "route_config", "virtual_hosts", "openai", "routes", 0, "route")

// dial connects to the listener and sends the beginning of something.
func dial(t *testing.T, e *envoy.Envoy, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", e.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// wantClosed reads until Envoy closes the connection.
func wantClosed(t *testing.T, conn net.Conn) string {
	t.Helper()
	text, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection stays open after %q", text)
	}
	return string(text)
}

// testStalledUploads: an upload that stands still ends sooner than a whole answer
// may be silent: testWholeAnswers waits for one longer.
func testStalledUploads(t *testing.T, e *envoy.Envoy, up upstream) {
	begin := time.Now()
	text := wantClosed(t, dial(t, e, fmt.Sprintf("POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\n"+
		"content-length: %d\r\n\r\n%s", len(hello), hello[:20])))
	wantRawError(t, text, 400)
	line, err := e.WaitAccess(within(t), func(a envoy.Access) bool { return a.Fields["details"] == "stream_idle_timeout" })
	if err != nil {
		t.Error(err)
	}
	t.Logf("after %v: %s", time.Since(begin), line.Line)
	up.Script(func(*standin.Recorded) *standin.Response {
		r := standin.JSON(200, []byte(message))
		r.Body, r.Pieces = nil, []standin.Piece{{Pause: 5 * time.Second, Data: []byte(message)}}
		return r
	})
	protocols(t, func(t *testing.T, c *http.Client) { wantAnswer(t, chat(t, c, e, hello)) })
}

// testSlowHeaders: connections that say nothing, or never finish, are closed.
func testSlowHeaders(t *testing.T, e *envoy.Envoy, up upstream) {
	if text := wantClosed(t, dial(t, e, "")); text != "" {
		t.Errorf("a silent connection got %q", text)
	}
	text := wantClosed(t, dial(t, e, "POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthoriz"))
	wantRawError(t, text, 408)
}

// wantRawError reads an error of OpenAI's shape from the wire.
func wantRawError(t *testing.T, text string, status int) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	if err != nil {
		t.Errorf("%v: %q", err, text)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%v: %q", err, text)
	}
	wantError(t, reply{resp.StatusCode, resp.Header, string(body)}, status, "invalid_request_error")
}

// testBadRequests: what never reaches the filter is refused in OpenAI's shape, too.
func testBadRequests(t *testing.T, e *envoy.Envoy, up upstream) {
	const begin = "GET /openai/v1/models HTTP/1.1\r\nhost: x\r\n"
	wantRawError(t, wantClosed(t, dial(t, e, "NO HTTP AT ALL\r\n\r\n")), 400)
	wantRawError(t, wantClosed(t, dial(t, e, begin+"a b: c\r\n\r\n")), 400)
	wantRawError(t, wantClosed(t, dial(t, e, begin+"x: "+strings.Repeat("y", 33<<10)+"\r\n\r\n")), 431)
	wantRawError(t, wantClosed(t, dial(t, e, begin+strings.Repeat("x: y\r\n", 101)+"\r\n")), 431)
	wantRawError(t, wantClosed(t, dial(t, e, "GET /openai/v1/models HTTP/1.1\r\nconnection: close\r\n\r\n")), 400)
	wantRawError(t, wantClosed(t, dial(t, e, "GET /openai/v1/models#a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")), 400)
	wantRawError(t, wantClosed(t, dial(t, e, "GET /openai/v1/models HTTP/1.0\r\n\r\n")), 426)
	wantRawError(t, wantClosed(t, dial(t, e, begin+"connection: close, upgrade\r\nupgrade: websocket\r\n\r\n")), 403)
	if sent := up.Requests(); len(sent) != 0 {
		t.Errorf("the upstream was asked for %s", sent[0].Path)
	}
}

// testSlowBodies: a body may take longer than headers may, but not for ever;
// testWholeAnswers shows that the upstream's time does not count.
func testSlowBodies(t *testing.T, e *envoy.Envoy, up upstream) {
	head := fmt.Sprintf("POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\nconnection: close\r\ncontent-length: %d\r\n\r\n", len(hello))
	conn := dial(t, e, head)
	const pieces = 4
	for i := range pieces {
		time.Sleep(500 * time.Millisecond)
		if _, err := io.WriteString(conn, hello[i*len(hello)/pieces:(i+1)*len(hello)/pieces]); err != nil {
			t.Fatal(err)
		}
	}
	if text := wantClosed(t, conn); !strings.HasPrefix(text, "HTTP/1.1 200 ") {
		t.Errorf("a body in four pieces got %q", text)
	}
	up.Reset()
	text := wantClosed(t, dial(t, e, head+hello[:10]))
	if !strings.HasPrefix(text, "HTTP/1.1 4") || !strings.Contains(text, `{"error":{`) {
		t.Errorf("half a body got %q", text)
	}
	if sent := up.Requests(); len(sent) != 0 {
		t.Errorf("half a body went up")
	}
}

// testWholeAnswers: a whole answer has a limit of its own, which is longer here
// than requests may take to come in; a stream has none.
func testWholeAnswers(t *testing.T, e *envoy.Envoy, up upstream) {
	c := client(t, false)
	up.Script(func(*standin.Recorded) *standin.Response { return &standin.Response{Silent: true} })
	wantError(t, chat(t, c, e, hello), 504, "server_error")
	up.Script(func(*standin.Recorded) *standin.Response {
		r := standin.SSE([]byte(streamBegin), []byte("event: ping\ndata: {\"type\":\"ping\"}\n\n"), []byte(streamEnd))
		r.Pieces[1].Pause, r.Pieces[2].Pause = 4*time.Second, 4*time.Second
		return r
	})
	if r := chat(t, c, e, helloStream); r.Status != 200 || !strings.HasSuffix(r.Body, "data: [DONE]\n\n") {
		t.Errorf("the stream was cut: %d %q", r.Status, r.Body)
	}
	if r := up.Requests(); len(r) != 2 {
		t.Errorf("the upstream was asked %d times", len(r))
	}
}

// testBrokenAnswers: an answer that breaks off, or takes too long, while it is
// held has OpenAI's shape too, though Envoy replies past the filter.
func testBrokenAnswers(t *testing.T, e *envoy.Envoy, up upstream) {
	part := standin.Piece{Data: []byte(message[:40])}
	header := http.Header{"Content-Type": {"application/json"}}
	protocols(t, func(t *testing.T, c *http.Client) {
		up.Script(func(*standin.Recorded) *standin.Response {
			return &standin.Response{Status: 200, Header: header, Pieces: []standin.Piece{part}, Cut: true}
		})
		wantError(t, chat(t, c, e, hello), 500, "server_error")
		up.Script(func(*standin.Recorded) *standin.Response {
			return &standin.Response{Status: 200, Header: header, Pieces: []standin.Piece{part, {Pause: 10 * time.Second}}}
		})
		wantError(t, chat(t, c, e, hello), 504, "server_error")
		up.Script(nil)
		wantAnswer(t, chat(t, c, e, hello))
	})
}

// testBufferLimit: what Envoy itself refuses has OpenAI's shape, too.
func testBufferLimit(t *testing.T, e *envoy.Envoy, up upstream) {
	protocols(t, func(t *testing.T, c *http.Client) {
		wantError(t, post(t, c, e, 2<<20, true), 413, "invalid_request_error")
		wantAnswer(t, chat(t, c, e, hello))
	})
	if sent := up.Requests(); len(sent) != 2 {
		t.Errorf("the upstream got %d requests", len(sent))
	}
}

// testConnectionLimit: the fifth of four connections is closed as it comes.
func testConnectionLimit(t *testing.T, e *envoy.Envoy, up upstream) {
	stats := func() map[string]int64 {
		s, err := e.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	wait := func(what string, ok func(map[string]int64) bool) {
		t.Helper()
		for end := time.Now().Add(patience); !ok(stats()); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	const active, over = "http.openai.downstream_cx_active", "downstream_global_cx_overflow"
	overflow := func(s map[string]int64) (sum int64) {
		for name, value := range s {
			if strings.HasPrefix(name, "listener.") && strings.HasSuffix(name, over) {
				sum += value
			}
		}
		return sum
	}
	wait("old connections are not closed", func(s map[string]int64) bool { return s[active] == 0 })
	before := overflow(stats())
	held := make([]net.Conn, 4)
	for i := range held {
		held[i] = dial(t, e, "GET /openai/v1/models HTTP/1.1\r\nhost: x\r\n")
	}
	wait("four connections are not open", func(s map[string]int64) bool { return s[active] == 4 })
	conn, err := net.Dial("tcp", e.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if text := wantClosed(t, conn); text != "" {
		t.Errorf("the fifth connection got %q", text)
	}
	if after := overflow(stats()); after != before+1 {
		t.Errorf("%d connections were counted as too many, want 1", after-before)
	}
	for _, conn := range held {
		conn.Close()
	}
	wait("closed connections still count", func(s map[string]int64) bool { return s[active] == 0 })
	wantAnswer(t, chat(t, client(t, false), e, hello))
}
