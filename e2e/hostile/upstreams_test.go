package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	eventHead  = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_hostile\r\nconnection: close\r\n\r\n"
	wholeHead  = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nrequest-id: req_hostile\r\nconnection: close\r\n"
	start      = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}`
	blockStart = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textDelta  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`
	blockStop  = `{"type":"content_block_stop","index":0}`
	endDelta   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`
	stop       = `{"type":"message_stop"}`
)

var (
	events  = eventsOf(start, blockStart, textDelta, blockStop, endDelta, stop)
	message = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`
)

func eventsOf(list ...string) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString("event: x\ndata: " + e + "\n\n")
	}
	return b.String()
}

// ending is what a client may see of a hostile upstream.
type ending int

const (
	fails  ending = iota // an error: as a status, or as an event and [DONE]
	works                // the answer "hello"
	either               // one of both
	breaks               // the same, or a connection that is cut
)

// script is one hostile upstream.
type script struct {
	name   string
	stream bool // what the client asks for
	want   ending
	play   func(conn net.Conn)
}

// says answers with these bytes, and closes.
func says(text string) func(net.Conn) {
	return func(conn net.Conn) { io.WriteString(conn, text) }
}

// resets is the same with a reset at the end.
func resets(text string) func(net.Conn) {
	return func(conn net.Conn) {
		io.WriteString(conn, text)
		time.Sleep(50 * time.Millisecond) // or what was said is lost
		conn.(*net.TCPConn).SetLinger(0)
	}
}

// lasts writes a text over and over until the other side has had enough.
func lasts(head, text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, err := io.WriteString(conn, head)
		for piece := []byte(strings.Repeat(text, 1+32<<10/len(text))); err == nil; {
			_, err = conn.Write(piece)
		}
	}
}

// testUpstreams: whatever an upstream says, its client gets an answer or an error in
// OpenAI's shape, and nobody else gets anything of it.
func (w *world) testUpstreams(t *testing.T) {
	scripts := append(cuts(), nonsense()...)
	scripts = append(scripts, large()...)
	var all sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i, s := range scripts {
		w.up.play(fmt.Sprint("script ", i), s.play)
		turns <- struct{}{}
		all.Go(func() {
			w.hear(t, s, fmt.Sprint("script ", i))
			<-turns
		})
	}
	all.Wait()
	w.endless(t)
}

func (w *world) hear(t *testing.T, s script, play string) {
	c := newClient(t, false)
	r, err := w.patient(t.Context(), c, question("play:"+play+";", s.stream))
	if err == nil {
		err = r.wantEnding(s.want, s.stream)
	} else if s.want == breaks && isReset(err) {
		err = nil
	}
	if err != nil {
		t.Errorf("%s, stream: %v: %v", s.name, s.stream, err)
	}
	if strings.HasSuffix(s.name, "without an end") {
		c.CloseIdleConnections() // an upstream that never stops talking occupies this one
	}
	if err := w.ask(t.Context(), c, s.stream); err != nil {
		t.Errorf("behind %s: %v", s.name, err)
	}
}

// wantEnding says whether a reply is the answer "hello", or an error, as it may be.
func (r reply) wantEnding(want ending, stream bool) error {
	_, wrong := r.text(stream)
	if wrong == nil {
		if want == fails {
			return fmt.Errorf("an answer: %.300q", r.Body)
		}
		return nil
	}
	if want == works {
		return wrong
	}
	if r.Status != 200 {
		return r.wantError()
	}
	body, done := strings.CutSuffix(r.Body, "\n\ndata: [DONE]\n\n")
	if !stream || !done {
		return fmt.Errorf("neither an answer nor an error: %.300q … %.300q", r.Body, r.Body[max(0, len(r.Body)-300):])
	}
	last := body[strings.LastIndex(body, "\n")+1:]
	return reply{Body: strings.TrimPrefix(last, "data: ")}.wantError()
}

// cuts break off in each phase of an answer, with a reset and without.
func cuts() (list []script) {
	length := fmt.Sprintf("content-length: %d\r\n\r\n", len(message))
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
	chunked := strings.Replace(eventHead, "\r\n\r\n", "\r\ntransfer-encoding: chunked\r\n\r\n", 1)
	for name, end := range map[string]func(string) func(net.Conn){"": says, " with a reset": resets} {
		for i, text := range []string{"", "HTT", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\ncontent-type: te"} {
			list = append(list, script{fmt.Sprint("a cut in the head, ", i, name), i%2 == 0, fails, end(text)})
		}
		for i, text := range []string{"", events[:20], eventsOf(start), events[:len(events)/2], eventsOf(start, blockStart, textDelta), events[:len(events)-4]} {
			// An upstream that ends is heard of; one that resets is not, once the client has the headers.
			list = append(list,
				script{fmt.Sprint("a cut in a stream, ", i, name), true, map[string]ending{"": fails, " with a reset": breaks}[name], end(eventHead + text)},
				script{fmt.Sprint("a cut in chunks, ", i, name), true, breaks, end(chunked + chunk(text + " ")[:len(text)+3])})
		}
		for i, n := range []int{0, 1, len(message) / 2, len(message) - 1} {
			list = append(list, script{fmt.Sprint("a cut in an answer, ", i, name), false, fails, end(wholeHead + length + message[:n])})
		}
	}
	return list
}

// nonsense is what no upstream says.
func nonsense() []script {
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 64<<10)
	random.Read(noise)
	withHead := func(fields, body string) string { return "HTTP/1.1 200 OK\r\n" + fields + "\r\n" + body }
	n := fmt.Sprintf("content-length: %d\r\n", len(message))
	ev := func(name string, want ending, text string) script {
		return script{name, true, want, says(eventHead + text)}
	}
	return []script{
		{"noise", false, fails, says(string(noise))},
		{"noise behind a head", false, fails, says(wholeHead + "\r\n" + string(noise))},
		{"noise in a stream", true, fails, says(eventHead + string(noise))},
		{"HTTP/0.9", false, fails, says(message)},
		{"HTTP/3.7", false, either, says("HTTP/3.7 200 OK\r\n\r\n" + message)},
		{"status 999", false, fails, says("HTTP/1.1 999 What\r\n" + n + "\r\n" + message)},
		{"status 99", false, fails, says("HTTP/1.1 99 What\r\n" + n + "\r\n" + message)},
		{"status 101", false, fails, says("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n" + message)},
		{"status 204", false, fails, says("HTTP/1.1 204 No Content\r\n\r\n")},
		{"status 304", false, fails, says("HTTP/1.1 304 Not Modified\r\n\r\n")},
		{"500 early hints", false, either, says(strings.Repeat("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", 500) + wholeHead + n + "\r\n" + message)},
		{"two lengths", false, fails, says(withHead(n+"content-length: 5\r\n", message))},
		{"a length and chunks", false, either, says(withHead(n+"transfer-encoding: chunked\r\n", message))},
		{"a length below zero", false, fails, says(withHead("content-length: -5\r\n", message))},
		{"a length that is too large", false, fails, says(withHead("connection: close\r\ncontent-type: application/json\r\ncontent-length: 99999\r\n", message))},
		{"a length that is too small", false, fails, says(withHead("content-type: application/json\r\ncontent-length: 20\r\n", message))},
		{"chunks without a size", false, fails, says(withHead("transfer-encoding: chunked\r\n", "zz\r\n"+message))},
		{"a chunk of 2^63", false, fails, says(withHead("transfer-encoding: chunked\r\n", "8000000000000000\r\n"+message))},
		{"a header without a colon", false, fails, says(withHead("x\r\n"+n, message))},
		{"a header with NUL", false, fails, says(withHead("x: a\x00b\r\n"+n, message))},
		{"1,000 headers", false, fails, says(withHead(strings.Repeat("x: y\r\n", 1000)+n, message))},
		{"a header of 1 MB", false, fails, says(withHead("x: "+strings.Repeat("y", 1<<20)+"\r\n"+n, message))},
		{"headers without an end", false, fails, lasts("HTTP/1.1 200 OK\r\n", "x: y\r\n")},
		{"an encoded body", false, fails, says(withHead("content-encoding: gzip\r\n"+n, message))},
		{"extra bytes behind", false, works, says(wholeHead + n + "\r\n" + message + "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother")},
		{"extra bytes behind, kept", false, works, says(withHead("content-type: application/json\r\n"+n, message+"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother"))},
		{"trailers", false, works, says(withHead("content-type: application/json\r\ntransfer-encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\nx: y\r\ncontent-length: 1\r\n\r\n", len(message), message)))},
		{"a request id with a line", false, either, says(withHead("request-id: a\rb\r\n"+n, message))},
		{"a page", false, fails, says(withHead("content-type: text/html\r\ncontent-length: 6\r\n", "<html>"))},
		{"a page instead of a stream", true, fails, says(withHead("content-type: text/html\r\ncontent-length: 6\r\n", "<html>"))},
		{"a stream instead of an answer", false, fails, says(eventHead + events)},
		{"an answer instead of a stream", true, fails, says(wholeHead + n + "\r\n" + message)},
		{"nested JSON", false, fails, says(wholeHead + "\r\n" + strings.Repeat(`{"a":`, 1<<20))},
		{"a key twice", false, either, says(wholeHead + "\r\n" + `{"id":"x",` + message[1:])},
		{"half a surrogate pair", false, either, says(wholeHead + "\r\n" + strings.Replace(message, "hello", `\ud83d`, 1))},
		{"an error of 4 MB", false, fails, says("HTTP/1.1 400 Bad\r\nconnection: close\r\n\r\n" + `{"type":"error","error":{"type":"invalid_request_error","message":"` + strings.Repeat("a", 4<<20) + `"}}`)},
		{"an error with lines and quotes", false, fails, says("HTTP/1.1 400 Bad\r\nconnection: close\r\n\r\n" + `{"type":"error","error":{"type":"invalid_request_error","message":"a\r\n\r\ndata: [DONE]\n\n\"}"}}`)},
		ev("a stream", works, events),
		ev("pings and comments", works, strings.Repeat(": x\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n", 1000)+events),
		ev("nested events", fails, "data: "+strings.Repeat("[", 1<<20)+"\n\n"+events),
		ev("events behind the end", works, events+strings.Repeat(events, 100)),
		ev("a delta before its block", fails, eventsOf(start, textDelta, stop)),
		ev("a block twice", fails, eventsOf(start, blockStart, blockStart, stop)),
		ev("two messages", fails, eventsOf(start, start, stop)),
		ev("no message", fails, eventsOf(stop)),
		ev("an index of 2^64", either, eventsOf(start, strings.Replace(blockStart, "0", "18446744073709551616", 1), stop)),
		ev("an index below zero", fails, eventsOf(start, strings.Replace(blockStart, "0", "-1", 1), stop)),
		ev("50,000 open blocks", fails, eventsOf(start)+openBlocks(50_000)+eventsOf(stop)),
		ev("tokens of 400 digits", either, eventsOf(start, blockStart, textDelta, blockStop, strings.Replace(endDelta, `"output_tokens":2`, `"output_tokens":`+strings.Repeat("9", 400), 1), stop)),
		ev("a line feed in a text", works, strings.Replace(events, "hello", `\n\ndata: [DONE]\n\n`, 1)),
		ev("lines without an end", fails, strings.Repeat("x", 17<<20)),
	}
}

func openBlocks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(eventsOf(strings.Replace(blockStart, `"index":0`, fmt.Sprint(`"index":`, i), 1)))
	}
	return b.String()
}

// large is what is too much, at its limit and past it.
func large() []script {
	text := func(n int) string { return strings.Repeat("a", n) }
	event := func(n int) string { return strings.Replace(events, "hello", text(n), 1) }
	answer := func(n int) string { return wholeHead + "\r\n" + strings.Replace(message, "hello", text(n), 1) }
	return []script{
		{"an event of 15 MB", true, works, says(eventHead + event(15<<20))},
		{"an event of 17 MB", true, fails, says(eventHead + event(17<<20))},
		{"an answer of 20 MB", false, works, says(answer(20 << 20))},
		{"an answer without an end", false, fails, lasts(wholeHead+"\r\n{\"a\":\"", "aaaaaaaa")},
		{"an error without an end", false, fails, lasts("HTTP/1.1 500 No\r\n\r\n", "aaaaaaaa")},
		{"20 MB of tiny events", true, works, says(eventHead + eventsOf(start, blockStart) + strings.Repeat(eventsOf(`{"type":"ping"}`), 20<<20/36) + eventsOf(blockStop, endDelta, stop))},
		{"10 MB of empty lines", true, works, says(eventHead + strings.Repeat("\n", 10<<20) + events)},
		{"100,000 blocks", false, works, says(wholeHead + "\r\n" + strings.Replace(message, `{"type":"text","text":"hello"}`, strings.Repeat(`{"type":"text","text":"a"},`, 100_000)+`{"type":"text","text":"a"}`, 1))},
	}
}

// endless: streams of tiny events that do not end are the client's to leave, and so are
// hints before an answer that does not come.
func (w *world) endless(t *testing.T) {
	w.up.play("endless", lasts(eventHead+eventsOf(start, blockStart), eventsOf(textDelta)))
	w.up.play("hints", lasts("", "HTTP/1.1 102 Processing\r\n\r\n"))
	var all sync.WaitGroup
	for range 4 {
		conn := w.dial(t)
		all.Go(func() {
			defer conn.Close()
			_, err := io.WriteString(conn, raw(question("play:endless;", true)))
			var got strings.Builder
			if err == nil {
				_, err = io.CopyN(&got, conn, 1<<20)
			}
			if err != nil || strings.Count(got.String(), `"content":"hello"`) < 100 {
				t.Errorf("an endless stream: %v, %.300q", err, got.String())
			}
		})
	}
	all.Wait()
	ctx, leave := context.WithTimeout(t.Context(), 2*time.Second)
	defer leave()
	if r, err := w.post(ctx, newClient(t, false), question("play:hints;", false)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hints without an end: %v %d %.300q", err, r.Status, r.Body)
	}
}
