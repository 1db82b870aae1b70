package envoy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

// surge opens connections that each announce a large body; once all of them
// are accepted, they send it at the same time, all but the last byte.
type surge struct {
	conns []net.Conn
	rest  string // of the body, the first and the last byte excepted
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

// send sends the bodies and then their last bytes, and returns how many
// requests were served. Connections that are cut meanwhile break off.
func (s *surge) send() (served int) {
	var sending, reading sync.WaitGroup
	for _, conn := range s.conns {
		sending.Go(func() {
			const piece = 256 << 10 // with pauses, so that Envoy reads its memory meanwhile
			for rest := s.rest; rest != ""; rest = rest[min(piece, len(rest)):] {
				if _, err := io.WriteString(conn, rest[:min(piece, len(rest))]); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	sending.Wait()
	var count atomic.Int64
	for _, conn := range s.conns {
		reading.Go(func() {
			if _, err := io.WriteString(conn, "}"); err != nil {
				return
			}
			if text, err := io.ReadAll(conn); err == nil && strings.HasPrefix(string(text), "HTTP/1.1 200 ") {
				count.Add(1)
			}
		})
	}
	reading.Wait()
	return int(count.Load())
}

// TestMemoryIsBounded: 40 uploads of 20 MB come at once into a heap of 400 MB.
// All of them were accepted when memory was free, so refusing new ones would
// not be enough. Afterwards the same Envoy serves as before.
func TestMemoryIsBounded(t *testing.T) {
	const heap, uploads, size = 400 << 20, 40, 20 << 20
	e, up := start(t, envoy.Options{Edits: []envoy.Edit{envoy.MaxHeap(heap)}})
	c := client(t, false)
	wantAnswer(t, chat(t, c, e, hello))
	served := newSurge(t, e, uploads, size).send()
	t.Logf("%d of %d uploads were served", served, uploads)
	if served == uploads {
		t.Errorf("%d uploads of %d bytes were all served with a heap of %d bytes", uploads, size, heap)
	}
	up.Reset()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		r := chat(t, c, e, hello)
		if r.Status == 200 {
			break
		}
		wantError(t, r, 503, "server_error") // until the memory is free again
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

// TestOverloadedAnswers: who is refused by an Envoy without memory is told so
// in OpenAI's shape, and when to come again.
func TestOverloadedAnswers(t *testing.T) {
	e, _ := start(t, envoy.Options{Edits: []envoy.Edit{envoy.MaxHeap(1 << 20)}})
	protocols(t, func(t *testing.T, c *http.Client) {
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			r := chat(t, c, e, hello)
			if r.Status == 200 && time.Now().Before(end) {
				continue // the memory has not been read yet
			}
			wantError(t, r, 503, "server_error")
			if !strings.Contains(r.Body, `"code":"overloaded"`) || r.Header.Get("retry-after") == "" {
				t.Errorf("%s %v", r.Body, r.Header)
			}
			break
		}
	})
}
