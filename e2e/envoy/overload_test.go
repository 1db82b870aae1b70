package envoy_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

// surge opens connections that each announce a large body; once all of them
// are accepted, they send it at the same time, all but the last byte.
type surge struct {
	conns []net.Conn
	rest  string // of the body, the last byte excepted
}

func newSurge(t *testing.T, e *envoy.Envoy, n, size int) *surge {
	t.Helper()
	body, err := io.ReadAll(long(size))
	if err != nil {
		t.Fatal(err)
	}
	s := &surge{rest: string(body[1 : size-1])}
	for range n {
		s.conns = append(s.conns, dial(t, e, fmt.Sprintf(
			"POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%c", size, body[0])))
	}
	return s
}

// send sends the bodies and then their last bytes, and returns how the
// answers begin, "" for a connection that was closed without one.
func (s *surge) send(hold func()) []string {
	var sending, reading sync.WaitGroup
	for _, conn := range s.conns {
		sending.Go(func() { io.WriteString(conn, s.rest) }) // those that are refused break off
	}
	sending.Wait()
	hold()
	answers := make([]string, len(s.conns))
	for i, conn := range s.conns {
		reading.Go(func() {
			io.WriteString(conn, "}")
			text, _ := io.ReadAll(conn)
			answers[i] = string(text[:min(len(text), len("HTTP/1.1 200"))])
		})
	}
	reading.Wait()
	return answers
}

// TestMemoryIsBounded: 40 uploads of 20 MB come at once into a heap of 400 MB.
// All of them were accepted when memory was free, so refusing new ones would
// not be enough. Afterwards the same Envoy serves as before.
func TestMemoryIsBounded(t *testing.T) {
	const heap, uploads, size = 400 << 20, 40, 20 << 20
	e, up := start(t, envoy.Options{Edits: []envoy.Edit{envoy.MaxHeap(heap)}})
	c := client(t, false)
	wantAnswer(t, chat(t, c, e, hello))
	s := newSurge(t, e, uploads, size)
	answers := s.send(func() { time.Sleep(500 * time.Millisecond) }) // some readings of the memory
	served, refused := 0, 0
	for _, a := range answers {
		if a == "HTTP/1.1 200" {
			served++
		} else {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("%d uploads of %d bytes were all served with a heap of %d bytes", served, size, heap)
	}
	t.Logf("%d served, %d ended", served, refused)
	up.Reset()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		r := chat(t, c, e, hello)
		if r.Status == 200 {
			break
		}
		wantError(t, r, 503, "server_error") // "overloaded", until the memory is free again
		if time.Now().After(end) {
			t.Fatal("Envoy stays overloaded")
		}
	}
	memory, err := e.Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if memory.Allocated > heap/2 {
		t.Errorf("%d bytes are still allocated", memory.Allocated)
	}
}
