package hostile_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// What Envoy may take at most while it is attacked: the heap that the shipped file allows,
// and what its VMs may have beside it.
const peakBytesMax = 3 << 30

// testMemory: large uploads that stop, large events that stop, and answers that nobody
// takes, again and again. Memory is bounded meanwhile, and what the first round has left
// taken (VMs keep what they once had) is all that is taken after the others.
func (w *world) testMemory(t *testing.T) {
	const rounds = 3
	var levels [rounds]int64
	for i := range levels {
		w.unfinishedUploads(t)
		w.unfinishedEvents(t)
		w.heldAnswers(t)
		w.wantIdle(t)
		levels[i] = w.settled(t)
	}
	m, err := w.envoy.Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("resident after each round: %d MB, the most: %d MB", []int64{levels[0] >> 20, levels[1] >> 20, levels[2] >> 20}, m.Peak>>20)
	if m.Resident == 0 {
		return // not Linux
	}
	if m.Peak > peakBytesMax {
		t.Errorf("Envoy took %d MB at most", m.Peak>>20)
	}
	if last, first := levels[rounds-1], levels[0]; last > first+first/5+64<<20 {
		t.Errorf("%d MB are taken after the first round, %d MB after the last", first>>20, last>>20)
	}
}

// settled waits until memory falls no more, and returns what is resident.
func (w *world) settled(t *testing.T) int64 {
	t.Helper()
	last := int64(1 << 62)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		m, err := w.envoy.Memory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m.Resident > last-4<<20 {
			return m.Resident
		}
		last = m.Resident
	}
	return last
}

// unfinishedUploads: 24 bodies of 16 MB that lack their last byte, until their clients go.
func (w *world) unfinishedUploads(t *testing.T) {
	request := raw(strings.Replace(question("hello", false), "hello", strings.Repeat("a", 16<<20), 1))
	var all sync.WaitGroup
	var wrong tally
	for range 24 {
		conn := w.dial(t)
		all.Go(func() {
			_, err := io.WriteString(conn, request[:len(request)-1])
			wrong.add(err)
		})
	}
	all.Wait()
	wrong.report(t, "uploads break off", 24)
	if err := w.ask(t.Context(), w.client, false); err != nil {
		t.Errorf("beside unfinished uploads: %v", err)
	}
	w.hangUp()
}

// unfinishedEvents: 40 streams, each with 15 MB of one event, and then nothing. One bound
// holds for all of them together: the largest fail with an error, the others go on when
// their upstreams do.
func (w *world) unfinishedEvents(t *testing.T) {
	const streams = 40
	head, tail, _ := strings.Cut(events, "hello")
	text := strings.Repeat("a", 15<<20)
	var sent sync.WaitGroup
	sent.Add(streams)
	goOn := make(chan struct{})
	w.up.play("15 mb", func(conn net.Conn) {
		io.WriteString(conn, eventHead+head)
		io.WriteString(conn, text) // to one that has failed, in vain
		sent.Done()
		<-goOn
		io.WriteString(conn, tail)
	})
	var all sync.WaitGroup
	var wrong tally
	var whole atomic.Int64
	for range streams {
		all.Go(func() {
			r, err := w.post(t.Context(), newClient(t, false), question("play:15 mb;", true))
			if err == nil {
				err = r.wantEnding(either, true)
			}
			wrong.add(err)
			if got, err := r.text(true); err == nil && len(got) == len(text) {
				whole.Add(1)
			}
		})
	}
	sent.Wait()
	if err := w.ask(t.Context(), w.client, true); err != nil {
		t.Errorf("beside unfinished events: %v", err)
	}
	close(goOn)
	all.Wait()
	wrong.report(t, "streams with an event of 15 MB go wrong", streams)
	if whole.Load() == 0 {
		t.Error("no stream came through")
	}
}

// heldAnswers: answers of 8 MB that lack their end, until their upstreams cut them off.
func (w *world) heldAnswers(t *testing.T) {
	const answers = 30
	text := strings.Repeat("a", 8<<20)
	var sent sync.WaitGroup
	sent.Add(answers)
	end := make(chan struct{})
	var wrong tally
	w.up.play("8 mb", func(conn net.Conn) {
		fmt.Fprintf(conn, "%scontent-length: %d\r\n\r\n{\"x\":\"%s", wholeHead, 9<<20, text)
		sent.Done()
		<-end
	})
	var all sync.WaitGroup
	for range answers {
		all.Go(func() {
			r, err := w.post(t.Context(), newClient(t, false), question("play:8 mb;", false))
			if err == nil {
				err = r.wantEnding(fails, false)
			}
			wrong.add(err)
		})
	}
	sent.Wait()
	if err := w.ask(t.Context(), w.client, false); err != nil {
		t.Errorf("beside unfinished answers: %v", err)
	}
	close(end)
	all.Wait()
	wrong.report(t, "answers of 8 MB go wrong", answers)
}
