package hostile_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// imageQuestion is a chat about pictures by URL.
func imageQuestion(text string, urls ...string) string {
	var parts strings.Builder
	for _, url := range urls {
		fmt.Fprintf(&parts, `{"type":"image_url","image_url":{"url":%q}},`, url)
	}
	return fmt.Sprintf(`{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":[%s{"type":"text","text":%q}]}]}`, parts.String(), text)
}

// turnMax is what a picture may wait behind other clients' downloads: less than the 15 s that
// a download from a silent server takes, so that nobody waits for those of others.
const turnMax = 12 * time.Second

// testDownloads: servers that say nothing, too much, or what is no picture; and clients
// that go away meanwhile. Another client's picture comes all the same.
func (w *world) testDownloads(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var waiting sync.WaitGroup
	for i := range 8 {
		var urls []string
		for j := range 20 {
			urls = append(urls, fmt.Sprintf("%s/silent?%s%d-%d", w.images.url, marker, i, j))
		}
		waiting.Go(func() {
			r, err := w.post(ctx, newClient(t, false), imageQuestion("look", urls...))
			if err == nil && r.Status != 400 { // none has a picture; those that are left behind have no answer
				t.Errorf("silent servers: %d %.300q", r.Status, r.Body)
			}
		})
	}
	for end := time.Now().Add(patience); len(w.images.requests()) < 20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is downloaded")
		}
	}
	for i := range 3 {
		mark, began := w.mark(), time.Now()
		r, err := w.post(t.Context(), w.client, imageQuestion("Repeat after me: "+mark, fmt.Sprintf("%s/png?%s%d", w.images.url, marker, i)))
		if err == nil {
			err = r.wantText(mark, false)
		}
		if err != nil {
			t.Errorf("a picture beside silent servers: %v", err)
		}
		if took := time.Since(began); took > turnMax {
			t.Errorf("a picture beside silent servers took %v", took)
		}
	}
	leave()
	waiting.Wait()
	for _, path := range []string{"/endless", "/none", "/png?a b", "/large?1"} {
		want := map[bool]int{true: 200, false: 400}[strings.HasPrefix(path, "/png") || strings.HasPrefix(path, "/large")]
		if r, err := w.post(t.Context(), w.client, imageQuestion("look", w.images.url+path)); err != nil || r.Status != want {
			t.Errorf("%s: %v %d %.300q", path, err, r.Status, r.Body)
		}
	}
}
