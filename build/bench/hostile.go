package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ezat.io/chat-completions/build/bench/work"
	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/translate/cases/worst"
)

const hostileSection = "Hostile bodies of 32 MB, through one worker"

// hostileShown is how many of the bodies stand in the table, the worst first.
const hostileShown = 80

// cost is what one body has taken.
type cost struct {
	body     worst.Body
	bytes    int
	ran      time.Duration // processor time of Envoy, the least of several
	status   string
	slowest  time.Duration // of the small chats beside it
	middle   time.Duration
	vmFailed bool
}

// hostile sends each of the worst bodies through an Envoy with one worker, beside
// small chats on another connection. Figures are relative to the slowest honest
// body of the same run.
func hostile(ctx context.Context, r *report, m modules, o options) (err error) {
	upstream, err := newStandIn()
	if err != nil {
		return err
	}
	upstream.reply.Store(whole(work.Answer()))
	defer func() { err = errors.Join(err, upstream.close()) }()
	e, err := start(ctx, upstream.address(), m.shipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	var costs []cost
	for _, b := range worst.Bodies() {
		if !b.Honest && !o.bodies.MatchString(b.Name) {
			continue
		}
		c, err := costOf(e, b, o)
		if err != nil {
			return fmt.Errorf("%s: %w", b.Name, err)
		}
		fmt.Fprintf(r.progress, "  %s: %.2f s, %s\n", b.Name, c.ran.Seconds(), c.status)
		costs = append(costs, c)
	}
	return addCosts(r, costs)
}

// addCosts makes rows of the costs, the worst first.
func addCosts(r *report, costs []cost) error {
	var yardstick cost
	for _, c := range costs {
		if c.body.Honest && c.ran > yardstick.ran {
			yardstick = c
		}
	}
	if yardstick.ran == 0 {
		return errors.New("no honest body has taken any time")
	}
	slices.SortStableFunc(costs, func(a, b cost) int { return cmp.Compare(b.ran, a.ran) })
	for i, c := range costs {
		name, beside := c.body.Name, fmt.Sprintf("%s MB, %.2f s of processor time, %s; a small chat beside it waits %s ms at most, %s in the middle",
			number(float64(c.bytes)/mb), c.ran.Seconds(), c.status, number(ms(c.slowest)), number(ms(c.middle)))
		if c.body.Honest {
			name += " (honest)"
		}
		value := float64(c.ran) / float64(yardstick.ran)
		switch {
		case c.vmFailed:
			value, beside = 100, "the VM has failed; "+beside
		case i >= hostileShown:
			continue
		}
		r.add(row{hostileSection, name, value, "× " + yardstick.body.Name, atMost(hostileTimesMax), beside})
	}
	return nil
}

// costOf sends a body a few times, and small chats beside it.
func costOf(e *envoy.Envoy, b worst.Body, o options) (cost, error) {
	body := b.Make(worst.BodyBytesMax)
	c := cost{body: b, bytes: len(body)}
	request, faults := post(body), len(e.Faults())
	var waits []time.Duration
	for i := range o.hostile {
		beside, err := besideChats(e)
		if err != nil {
			return c, err
		}
		ran := processorTime(e.PID)
		c.status, err = sendAny(e.Addr, request)
		ran = processorTime(e.PID) - ran
		took, waitErr := beside()
		waits = append(waits, took...)
		if len(e.Faults()) > faults {
			c.vmFailed = true
			return c, nil
		}
		if err := errors.Join(err, waitErr); err != nil {
			return c, err
		}
		if i == 0 || ran < c.ran {
			c.ran = ran
		}
	}
	slices.Sort(waits)
	c.slowest, c.middle = waits[len(waits)-1], waits[len(waits)/2]
	return c, nil
}

// besideChats begins to send small chats; what it returns ends that, and says how
// long each took.
func besideChats(e *envoy.Envoy) (end func() ([]time.Duration, error), err error) {
	c, err := dial(e.Addr)
	if err != nil {
		return nil, err
	}
	request := post(work.SmallChat())
	if _, err := c.ask(request); err != nil {
		c.close()
		return nil, err
	}
	var waits []time.Duration
	var failed error
	var group sync.WaitGroup
	over := make(chan struct{})
	group.Go(func() {
		defer c.close()
		for {
			x, err := c.ask(request)
			if err != nil {
				failed = err
				return
			}
			waits = append(waits, x.whole)
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond): // the worker must not be busy with these
			}
		}
	})
	return func() ([]time.Duration, error) {
		close(over)
		group.Wait()
		return waits, failed
	}, nil
}

// sendAny sends a request on a connection of its own and gives the status of the
// answer, which may come before the request has been read.
func sendAny(address string, request []byte) (status string, err error) {
	c, err := dial(address)
	if err != nil {
		return "", err
	}
	defer c.close()
	if err := c.conn.SetDeadline(time.Now().Add(exchangeLimit)); err != nil {
		return "", err
	}
	_, writeErr := c.conn.Write(request)
	msg, err := c.in.next(false)
	if len(msg.line) < 12 {
		return "", errors.Join(writeErr, err, fmt.Errorf("the answer is %q", msg.line))
	}
	return msg.line[9:12], nil
}
