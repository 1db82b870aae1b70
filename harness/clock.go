package harness

import (
	"slices"
	"sync"
	"time"
)

// Clock is where the host takes time from: for the guest's clocks, ticks and
// every timeout.
type Clock interface {
	Now() time.Time
	// AfterFunc runs f once d has passed, on a goroutine of the clock's
	// choosing. The returned function stops it and says whether it came in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// RealClock is the machine's clock.
func RealClock() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// FakeClock stands still until a test moves it: what a guest does depends on
// nothing but its inputs. It is safe for concurrent use.
type FakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*fakeTimer
}

type fakeTimer struct {
	at time.Time
	f  func()
}

// FakeEpoch is where a clock of NewFakeClock begins.
var FakeEpoch = time.Unix(1793318400, 0).UTC()

// NewFakeClock returns a clock that stands at FakeEpoch.
func NewFakeClock() *FakeClock { return &FakeClock{now: FakeEpoch} }

// Now returns where the clock stands.
func (c *FakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc runs f inside the Advance that reaches its time.
func (c *FakeClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{at: c.now.Add(d), f: f}
	c.timers = append(c.timers, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := len(c.timers)
		c.timers = slices.DeleteFunc(c.timers, func(o *fakeTimer) bool { return o == t })
		return len(c.timers) < n
	}
}

// Advance moves the clock by d and runs what becomes due, in order of time, on
// the calling goroutine. The clock shows each one's own time while it runs.
func (c *FakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		next := -1
		for i, t := range c.timers {
			if !t.at.After(end) && (next < 0 || t.at.Before(c.timers[next].at)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		t := c.timers[next]
		c.timers = slices.Delete(c.timers, next, next+1)
		if t.at.After(c.now) {
			c.now = t.at
		}
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}
