package hostile_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// finish reads the one answer that is left on a connection, and its end.
func finish(conn net.Conn) (status int, body string, err error) {
	r := bufio.NewReader(conn)
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// testConnections: clients that are slow, that break off, and that send too much.
func (w *world) testConnections(t *testing.T) {
	var slow sync.WaitGroup
	slow.Go(func() { w.slowHeaders(t) })
	slow.Go(func() { w.slowBodies(t) })
	w.resets(t)
	w.pipelined(t)
	w.halfClosed(t)
	w.headerBombs(t)
	w.overTheLimit(t)
	w.tinyChunks(t)
	w.openedAndClosed(t)
	slow.Wait()
}

// slowHeaders: headers that do not end are a 408, after 10 s.
func (w *world) slowHeaders(t *testing.T) {
	var all sync.WaitGroup
	for i := range 50 {
		conn := w.dial(t)
		all.Go(func() {
			stop := make(chan struct{})
			defer close(stop)
			go func() { // a byte now and then does not help
				for _, c := range head("x: " + strings.Repeat("y", 1000)) {
					if _, err := io.WriteString(conn, string(c)); err != nil {
						return
					}
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Millisecond):
					}
				}
			}()
			if status, body, err := finish(conn); err != nil || status != http.StatusRequestTimeout || (reply{Body: body}).wantError() != nil {
				t.Errorf("slow headers %d: %d %q %v", i, status, body, err)
			}
		})
	}
	all.Wait()
}

// slowBodies: bodies in drips come through.
func (w *world) slowBodies(t *testing.T) {
	var all sync.WaitGroup
	for range 50 {
		mark := w.mark()
		body := question("Repeat after me: "+mark, false)
		conn := w.dial(t)
		all.Go(func() {
			request := raw(body, "connection: close")
			for _, piece := range []string{request[:len(request)-len(body)], body} {
				for len(piece) > 0 {
					n := min(7, len(piece))
					if _, err := io.WriteString(conn, piece[:n]); err != nil {
						t.Errorf("a slow body: %v", err)
						return
					}
					piece = piece[n:]
					time.Sleep(50 * time.Millisecond)
				}
			}
			status, text, err := finish(conn)
			if err == nil {
				err = reply{Status: status, Body: text}.wantText(mark, false)
			}
			if err != nil {
				t.Errorf("a slow body: %v", err)
			}
		})
	}
	all.Wait()
}

// resets: clients that reset, or just go, in every stage of an exchange.
func (w *world) resets(t *testing.T) {
	begun := make(chan struct{}, 1000)
	w.up.play("silent", func(conn net.Conn) {
		begun <- struct{}{}
		io.Copy(io.Discard, conn) // until Envoy gives it up
	})
	// Envoy reads nothing more behind a request that waits for its answer, so it sees that a
	// client with a second one is gone when the first is answered.
	later := make(chan struct{})
	defer close(later)
	w.up.play("later", func(conn net.Conn) {
		begun <- struct{}{}
		<-later
	})
	w.up.play("half a stream", func(conn net.Conn) {
		io.WriteString(conn, eventHead+events[:len(events)/2])
		begun <- struct{}{}
		io.Copy(io.Discard, conn)
	})
	w.up.play("half an answer", func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"id\"")
		begun <- struct{}{}
		io.Copy(io.Discard, conn)
	})
	whole := raw(question("play:silent;", false))
	for _, stage := range []struct {
		name, sent string
		goesUp     bool
	}{
		{"nothing is sent", "", false},
		{"in the request line", "POST /openai", false},
		{"in the headers", head(), false},
		{"behind the headers", head("content-length: 1000") + "\r\n", false},
		{"in a body", whole[:len(whole)-10], false},
		{"in a chunk", head("transfer-encoding: chunked") + "\r\n40\r\n{", false},
		{"in a large body", raw(question(strings.Repeat("a", 1<<20), false))[:1<<20], false},
		{"while the upstream thinks", whole, true},
		{"while a picture comes", raw(imageQuestion("look", w.images.url+"/endless")), false},
		{"in a stream", raw(question("play:half a stream;", true)), true},
		{"in an answer", raw(question("play:half an answer;", false)), true},
		{"with a second request behind it", raw(question("play:later;", false)) + whole, true},
	} {
		for i := range 12 {
			conn := w.dial(t)
			if _, err := io.WriteString(conn, stage.sent); err != nil {
				t.Errorf("%s: %v", stage.name, err)
			}
			if stage.goesUp {
				select {
				case <-begun:
				case <-time.After(patience):
					t.Fatalf("%s: nothing goes up", stage.name)
				}
			}
			if i%2 == 0 {
				if err := conn.SetLinger(0); err != nil { // a reset
					t.Fatal(err)
				}
			}
			conn.Close()
		}
	}
}

// pipelined: requests that come together are answered in their order.
func (w *world) pipelined(t *testing.T) {
	for range 5 {
		conn := w.dial(t)
		var marks []string
		var all strings.Builder
		for i := range 10 {
			marks = append(marks, w.mark())
			all.WriteString(raw(question("Repeat after me: "+marks[i], i%2 == 1)))
		}
		if _, err := io.WriteString(conn, all.String()); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		for i, mark := range marks {
			response, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("pipelined answer %d: %v", i, err)
			}
			text, err := io.ReadAll(response.Body)
			if err == nil {
				err = reply{Status: response.StatusCode, Body: string(text)}.wantText(mark, i%2 == 1)
			}
			if err != nil {
				t.Errorf("pipelined answer %d: %v", i, err)
			}
		}
	}
}

// halfClosed: who says that he sends no more gets his answer, or a closed connection.
func (w *world) halfClosed(t *testing.T) {
	for _, sent := range []string{raw(question("hello", false)), raw(question("hello", true)), head("content-length: 1000") + "\r\n{", "", "POST /"} {
		conn := w.dial(t)
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil && !isReset(err) {
			t.Errorf("a half-closed connection behind %.20q: %v", sent, err)
		}
	}
}

func isReset(err error) bool {
	var timeout net.Error
	return !(errors.As(err, &timeout) && timeout.Timeout())
}

// headerBombs: too many headers, too long ones, and headers without end.
func (w *world) headerBombs(t *testing.T) {
	for name, fields := range map[string]string{
		"200 headers":            strings.Repeat("x: y\r\n", 200),
		"a header of 33 KB":      "x: " + strings.Repeat("y", 33<<10) + "\r\n",
		"a name of 33 KB":        strings.Repeat("x", 33<<10) + ": y\r\n",
		"40 KB of cookies":       strings.Repeat("cookie: a="+strings.Repeat("b", 400)+"\r\n", 100),
		"headers without an end": strings.Repeat("x: "+strings.Repeat("y", 1000)+"\r\n", 2000),
	} {
		conn := w.dial(t)
		var sending sync.WaitGroup
		sending.Go(func() { io.WriteString(conn, head()+fields+"\r\n") }) // Envoy stops reading somewhere
		status, body, err := finish(conn)
		if err == nil && status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: %d %q", name, status, body)
		} else if err == nil {
			err = reply{Body: body}.wantError()
		}
		if err != nil && !isReset(err) {
			t.Errorf("%s: %v", name, err)
		}
		conn.Close()
		sending.Wait()
	}
}

// overTheLimit: more than 32 MB, said before or not.
func (w *world) overTheLimit(t *testing.T) {
	conn := w.dial(t)
	if _, err := io.WriteString(conn, head(fmt.Sprint("content-length: ", bodyMax+1))+"\r\n"); err != nil {
		t.Fatal(err)
	}
	if status, body, err := finish(conn); err != nil || status != http.StatusRequestEntityTooLarge || (reply{Body: body}).wantError() != nil {
		t.Errorf("a length of 32 MB and a byte: %d %q %v", status, body, err)
	}
	for name, chunk := range map[string]int{"large chunks": 1 << 20, "one chunk": bodyMax + 1<<20} {
		conn := w.dial(t)
		var sending sync.WaitGroup
		sending.Go(func() {
			text := strings.Repeat("a", chunk)
			io.WriteString(conn, head("transfer-encoding: chunked")+"\r\n")
			for n := 0; n <= bodyMax; n += chunk {
				if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", chunk, text); err != nil {
					return // the answer is there
				}
			}
		})
		if status, body, err := finish(conn); err == nil && (status != http.StatusRequestEntityTooLarge || (reply{Body: body}).wantError() != nil) || err != nil && !isReset(err) {
			t.Errorf("more than 32 MB in %s: %d %q %v", name, status, body, err)
		}
		conn.Close()
		sending.Wait()
	}
}

// tinyChunks: a megabyte in chunks of a few bytes is an ordinary body.
func (w *world) tinyChunks(t *testing.T) {
	for _, size := range []int{1, 7} {
		mark := w.mark()
		body := strings.Replace(question("Repeat after me: "+mark, false),
			`"messages":[`, `"messages":[{"role":"system","content":"`+strings.Repeat("a", size<<17)+`"},`, 1)
		var sent strings.Builder
		sent.WriteString(head("transfer-encoding: chunked", "connection: close") + "\r\n")
		for rest := body; rest != ""; {
			n := min(size, len(rest))
			fmt.Fprintf(&sent, "%x\r\n%s\r\n", n, rest[:n])
			rest = rest[n:]
		}
		conn := w.dial(t)
		if _, err := io.WriteString(conn, sent.String()+"0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		status, text, err := finish(conn)
		if err == nil {
			err = reply{Status: status, Body: text}.wantText(mark, false)
		}
		if err != nil {
			t.Errorf("chunks of %d bytes: %v", size, err)
		}
	}
}

// openedAndClosed: connections that come and go.
func (w *world) openedAndClosed(t *testing.T) {
	for range 1000 {
		w.dial(t).Close()
	}
}
