package egress_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// testChangingAnswers: names whose addresses become others between two look-ups.
func (w *world) testChangingAnswers(t *testing.T) {
	first := func(before, after answer) answerer {
		return func(n int, _ bool) answer {
			if n == 0 {
				return before
			}
			return after
		}
	}
	of := func(addresses ...string) answer { return answer{addresses: addresses, ttl: 1} }
	var all []scenario
	for _, a := range []struct {
		name            string
		before, after   answer
		reason, reason2 string // at first, and after the second look-up
	}{
		// What was public stays in use while the name has nothing else that is.
		{"public, then private", of(publicIP), of(privateIP), "", ""},
		{"public, then private over IPv6", of(publicIP), of(private6), "", ""},
		{"public, then dead and private", of(publicIP), of(deadIP, privateIP), "", noConnection},
		{"private, then public", of(privateIP), of(publicIP), notPublic, ""},
		{"private, then dead and private", of(privateIP), of(privateIP, deadIP), notPublic, noConnection},
		{"nothing, then public", answer{}, of(publicIP), "name not found", ""},
		{"nothing, then private", answer{}, of(privateIP), "name not found", notPublic},
	} {
		all = append(all, scenario{a.name, func(t *testing.T) {
			host := fmt.Sprintf("changing-%d.test", w.marks.Add(1))
			w.names.script(host, first(a.before, a.after))
			w.try(t, attempt{url: w.plain(host, "/png"), reason: a.reason})
			w.askUntil(t, host, 3) // the second answer is in the cache by now
			w.try(t, attempt{url: w.plain(host, "/png"), reason: a.reason2})
		}})
	}
	together(t, all)
}

// askUntil waits until the name server was asked for a host so many times. Envoy
// forgets a name that nobody asks for, so it is asked for now and then.
func (w *world) askUntil(t *testing.T, host string, questions int) {
	t.Helper()
	for end := time.Now().Add(patience); w.names.questions(host) < questions; time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("%s was asked for %d times, want %d", host, w.names.questions(host), questions)
		}
		if _, err := w.ask(t.Context(), w.plain(host, "/png")); err != nil {
			t.Fatal(err)
		}
	}
}

// testHalfAnAnswer: a name server that says nothing of IPv6. Whether the resolver waits
// for that or goes on with what it has is a matter of its clock.
func (w *world) testHalfAnAnswer(t *testing.T) {
	for address, fine := range map[string]string{publicIP: `"object":"chat.completion"`, privateIP: notPublic} {
		host := fmt.Sprintf("half-%d.test", w.marks.Add(1))
		w.names.script(host, func(_ int, ipv6 bool) answer { return answer{addresses: []string{address}, silent: ipv6} })
		o, err := w.ask(t.Context(), w.plain(host, "/png"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(o.body, fine) && !strings.Contains(o.body, failed(timedOut)) {
			t.Errorf("%s: %d %s", address, o.status, o.body)
		}
	}
}

// testFlippingAnswers asks for images of names whose addresses are others at each
// look-up, and others for IPv4 than for IPv6, for as long as slow servers take anyway.
// What comes of it is as chance will have it, but never a private connection.
func (w *world) testFlippingAnswers(t *testing.T) {
	answers := [][]string{
		{publicIP}, {privateIP}, {deadIP, privateIP}, {privateIP, publicIP}, {private6, publicIP}, {"::ffff:" + privateIP}, {privateIP, deadIP, private6},
	}
	flip := func(start int) answerer {
		return func(n int, ipv6 bool) answer {
			if ipv6 {
				n += 3
			}
			return answer{addresses: answers[(start+n)%len(answers)]}
		}
	}
	const duration, threads, timesMax = 8 * time.Second, 4, 600
	end := time.Now().Add(duration)
	reasons := map[string]int{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for thread := range threads {
		wait.Go(func() {
			for i := 0; i < timesMax && time.Now().Before(end); i++ {
				// Some names stay, and are looked up again; the others are new.
				host := fmt.Sprintf("flip-%d.test", i%7)
				if i%2 == 0 {
					host = fmt.Sprintf("flip-%d-%d.test", thread, i)
				}
				w.names.scriptOnce(host, flip(i))
				o, err := w.ask(t.Context(), w.plain(host, "/png"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				reasons[o.body[:min(len(o.body), 120)*(o.status/400)]]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for text, n := range reasons {
		t.Logf("%d times %q", n, text)
	}
	if len(reasons) < 3 {
		t.Error("the answers have not flipped")
	}
}
