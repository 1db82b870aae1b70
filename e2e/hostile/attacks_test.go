package hostile_test

import (
	"testing"

	"ezat.io/chat-completions/e2e/envoy"
)

// TestAttacks runs the classes one after the other against one Envoy with one worker: a
// neighbour there has no other to go to. Leaks come last, because what may leak is what
// all others have sent.
func TestAttacks(t *testing.T) {
	w := newWorld(t, envoy.Options{})
	w.heat(t)
	for _, class := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"connections", w.testConnections},
		{"smuggling", w.testSmuggling},
		{"http2", w.testHTTP2},
		{"upstreams", w.testUpstreams},
		{"call ids", w.testCallIDs},
		{"bodies", w.testBodies},
		{"downloads", w.testDownloads},
		{"memory", w.testMemory},
		{"leaks", w.testLeaks},
	} {
		t.Run(class.name, func(t *testing.T) { w.attack(t, class.run) })
	}
}

// heat asks once of each kind, so that all gauges are there.
func (w *world) heat(t *testing.T) {
	for _, stream := range []bool{false, true} {
		if err := w.ask(t.Context(), w.client, stream); err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.post(t.Context(), w.client, imageQuestion("look", w.images.url+"/png"))
	if err != nil || r.Status != 200 {
		t.Fatalf("a picture: %v %d %s", err, r.Status, r.Body)
	}
}
