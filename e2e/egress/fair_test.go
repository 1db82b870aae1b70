package egress_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The filter's bounds for downloads under way on one worker: those that anybody may use,
// and all of them, past the former one for each request.
const (
	downloadsShared = 24
	downloadsMax    = 128
)

// crowd is requests whose images never come.
type crowd struct {
	w       *world
	url     func(n int) string
	ctx     context.Context
	ends    sync.WaitGroup
	asked   int
	arrived atomic.Int64 // at the server
}

// newCrowd makes requests for a page that say calls for each download, before it falls
// silent.
func (w *world) newCrowd(t *testing.T, page string, say func(rw http.ResponseWriter)) *crowd {
	ctx, cancel := context.WithCancel(t.Context())
	host := w.host(publicIP)
	c := &crowd{w: w, ctx: ctx, url: func(n int) string { return w.plain(host, fmt.Sprintf("/%s?%d", page, n)) }}
	w.page(page, func(rw http.ResponseWriter, r *http.Request) {
		say(rw)
		c.arrived.Add(1)
		<-r.Context().Done()
	})
	t.Cleanup(func() {
		cancel()
		c.ends.Wait()
	})
	return c
}

// ask sends requests with so many images each, and goes on.
func (c *crowd) ask(t *testing.T, requests, images int) {
	for range requests {
		urls := make([]string, images)
		for i := range urls {
			urls[i] = c.url(c.asked)
			c.asked++
		}
		c.ends.Go(func() {
			o, err := c.w.ask(c.ctx, urls...)
			switch {
			case err != nil && c.ctx.Err() == nil:
				t.Error(err)
			case err != nil || o.status == 400 && strings.Contains(o.body, timedOut):
			case o.status != http.StatusServiceUnavailable || !strings.Contains(o.body, tooManyWaited):
				t.Errorf("%d %s", o.status, o.body)
			}
		})
	}
}

const tooManyWaited = "(too many downloads were waiting)"

// wait waits until so many downloads are at the server.
func (c *crowd) wait(t *testing.T, n int64) {
	t.Helper()
	for end := time.Now().Add(patience); c.arrived.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d downloads have begun, want %d", c.arrived.Load(), n)
		}
	}
}

// TestFairDownloads has a hundred requests of twenty images that never come, all on one
// worker. Another client's image is there at once all the same, until there are so many
// such requests that nobody gets a turn in time: then that is said.
func TestFairDownloads(t *testing.T) {
	w := newWorld(t, nil)
	w.file("png", "image/png", png)
	c := w.newCrowd(t, "silent", func(http.ResponseWriter) {})
	c.ask(t, 100, 20)
	c.wait(t, downloadsShared+100-2) // the first two requests have all of the shared ones
	const bound = 5 * time.Second
	var longest time.Duration
	for range 5 {
		began := time.Now()
		w.try(t, attempt{url: w.plain(w.host(publicIP), "/png")})
		longest = max(longest, time.Since(began))
	}
	t.Logf("beside %d downloads that never end an image took %v at most", c.arrived.Load(), longest)
	if longest > bound {
		t.Errorf("an image took %v", longest)
	}

	// Twice as many as can be under way, so that those behind them wait for longer than 15 s.
	c.ask(t, 2*downloadsMax, 1)
	c.wait(t, downloadsMax)
	w.waitRequests(t, 100+2*downloadsMax)
	o, err := w.ask(t.Context(), w.plain(w.host(publicIP), "/png"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"error":{"message":"messages[0].content[1].image_url.url: could not download the image ` + tooManyWaited +
		`","type":"server_error","param":null,"code":"overloaded"}}`
	if o.status != http.StatusServiceUnavailable || o.body != want || o.header.Get("retry-after") != "1" || o.reached {
		t.Errorf("got %d %v %s, upstream asked: %v", o.status, o.header, o.body, o.reached)
	}
}

// waitRequests waits until so many requests are under way.
func (w *world) waitRequests(t *testing.T, n int64) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		stats, err := w.envoy.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		active := stats["http.openai.downstream_rq_active"]
		if active >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d requests are under way, want %d", active, n)
		}
	}
}

// TestStalledDownloads has as many downloads under way as there can be on one worker, but
// one, each of which stalls just before its end. Another image has a turn all the same,
// and Envoy holds the files once.
func TestStalledDownloads(t *testing.T) {
	const size = imageBytesMax - imageBytesMax/100
	w := newWorld(t, nil)
	w.file("png", "image/png", png)
	before := w.memory(t)
	data := pngOf(size, 0)
	c := w.newCrowd(t, "stalled", func(rw http.ResponseWriter) {
		rw.Header().Set("content-length", strconv.Itoa(size+1))
		rw.Write(data)
		flush(rw)
	})
	c.ask(t, downloadsMax-1, 1)
	c.wait(t, downloadsMax-1)
	began := time.Now()
	w.try(t, attempt{url: w.plain(w.host(publicIP), "/png")})
	took := time.Since(began)
	after := w.memory(t)
	t.Logf("resident %d MB before, %d MB at most; allocated %d MB before, %d MB with %d stalled; another image took %v",
		before.Resident>>20, after.Peak>>20, before.Allocated>>20, after.Allocated>>20, c.arrived.Load(), took)
	if grown := after.Peak - before.Resident; grown > downloadsMax*imageBytesMax*5/4 {
		t.Errorf("Envoy has grown by %d MB", grown>>20)
	}
}
