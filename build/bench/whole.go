package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ezat.io/chat-completions/build/bench/work"
	"ezat.io/chat-completions/e2e/envoy"
)

// pair is one Envoy with the filter and one without, in front of one stand-in.
type pair struct {
	upstream *standIn
	envoys   [2]*envoy.Envoy // with the filter, without
}

func newPair(ctx context.Context, m modules) (p *pair, err error) {
	p = &pair{}
	if p.upstream, err = newStandIn(); err != nil {
		return nil, err
	}
	for i, edits := range [][]envoy.Edit{nil, {withoutFilter}} {
		if p.envoys[i], err = start(ctx, p.upstream.address(), m.shipped, edits...); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

func (p *pair) close() error {
	err := errors.Join(p.upstream.err(), p.upstream.close())
	for _, e := range p.envoys {
		if e != nil {
			stop(e, &err)
		}
	}
	return err
}

// scene is one kind of exchange.
type scene struct {
	name    string
	request []byte
	reply   *reply
	ends    []byte // with the filter, how the answer's body ends
	pairs   int    // how often each side is asked
	first   bool   // the time to the first byte of the body counts
	budget  *limit
	beside  string
}

// How the client's answers end.
var (
	jsonEnd    = []byte("}")
	streamsEnd = []byte("data: [DONE]\n\n")
)

const streaming = `{"model":"anthropic/claude-sonnet-5-5","stream":true,"messages":[{"role":"user","content":"Count to a hundred."}]}`

func scenes(o options) []scene {
	ask := func(name string, body []byte, pairs int, budget *limit) scene {
		return scene{name, post(body), whole(work.Answer()), jsonEnd, pairs, false, budget, ""}
	}
	stream := func(name string, r *reply, beside string) scene {
		return scene{name, post([]byte(streaming)), r, streamsEnd, o.pairs, false, atMost(deltas200AddedMs).reached(deltas200AddedFloorMs), beside}
	}
	first := stream("first chunk of a stream", pausing(work.TextKind, 3), "time to the first byte of the body; the upstream pauses behind its first delta")
	first.first, first.budget, first.pairs = true, atMost(firstChunkAddedMs).reached(firstChunkAddedFloorMs), max(1, o.pairs/2)
	return []scene{
		ask(nameSmall, work.SmallChat(), o.pairs*2, atMost(smallChatAddedMs).reached(smallChatAddedFloorMs)),
		agentScene(o),
		ask("8 MB image", work.Image(8<<20), max(3, o.pairs/15), atMost(image8MBAddedMs)),
		ask(nameImage, work.Image(24<<20), max(3, o.pairs/30), atMost(image24MBAddedMs)),
		stream("200 text deltas", atOnce(work.TextKind, 200), "the upstream writes them at once"),
		stream("200 tool-argument deltas", atOnce(work.ArgumentsKind, 200), "the upstream writes them at once"),
		stream("200 text deltas, one write each", each(work.TextKind, 200), "a write of the upstream for each"),
		stream("200 tool-argument deltas, one write each", each(work.ArgumentsKind, 200), "a write of the upstream for each"),
		first,
	}
}

func agentScene(o options) scene {
	body := work.AgentTurn()
	return scene{nameAgent, post(body), each(work.TextKind, 1), streamsEnd, o.pairs, false, atMost(agentTurnAddedMs).reached(agentTurnAddedFloorMs), ""}
}

// atOnce is a stream of n deltas that is written at once.
func atOnce(kind work.Kind, n int) *reply {
	b := append([]byte(streamHead), chunk(work.Start(kind))...)
	for i := range n {
		b = append(b, chunk(work.Delta(kind, i))...)
	}
	return &reply{pieces: [][]byte{append(append(b, chunk(work.End())...), chunk(nil)...)}}
}

// each is a stream of n deltas with a write for each.
func each(kind work.Kind, n int) *reply {
	r := &reply{pieces: [][]byte{append([]byte(streamHead), chunk(work.Start(kind))...)}}
	for i := range n {
		r.pieces = append(r.pieces, chunk(work.Delta(kind, i)))
	}
	r.pieces = append(r.pieces, append(chunk(work.End()), chunk(nil)...))
	return r
}

// pausing is a stream that pauses between its deltas; the first comes with the
// stream's start.
func pausing(kind work.Kind, n int) *reply {
	r := each(kind, n)
	r.pieces[1] = append(r.pieces[0], r.pieces[1]...)
	r.pieces = r.pieces[1:]
	r.pause = 2 * time.Millisecond
	return r
}

// full measures whole exchanges through a real Envoy.
func full(ctx context.Context, r *report, m modules, o options) (err error) {
	p, err := newPair(ctx, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	for _, s := range scenes(o) {
		if err := p.added(r, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, s := range loads() {
		if err := p.throughput(r, s, o); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// loads are the kinds of exchanges for many connections at once.
func loads() []scene {
	stream := func(name string, r *reply, floor float64) scene {
		return scene{name: name, request: post([]byte(streaming)), reply: r, ends: streamsEnd, budget: atLeast(deltasThroughputPart).reached(floor)}
	}
	return []scene{
		{name: nameSmall, request: post(work.SmallChat()), reply: whole(work.Answer()), ends: jsonEnd,
			budget: atLeast(smallChatThroughputPart).reached(smallChatThroughputFloorPart)},
		stream("200 text deltas", atOnce(work.TextKind, 200), deltasThroughputFloorPart),
		stream("200 tool-argument deltas", atOnce(work.ArgumentsKind, 200), deltasThroughputFloorPart),
		stream("200 text deltas, one write each", each(work.TextKind, 200), writesThroughputFloorPart),
		stream("200 tool-argument deltas, one write each", each(work.ArgumentsKind, 200), writesThroughputFloorPart),
	}
}

// warmUps is how often each side is asked before it is measured.
const warmUps = 10

// dialBoth opens a connection to each Envoy, and sees that both answer.
func (p *pair) dialBoth(s scene) (clients [2]*client, err error) {
	p.upstream.reply.Store(s.reply)
	for i, e := range p.envoys {
		if clients[i], err = dial(e.Addr); err != nil {
			return clients, err
		}
		for range warmUps { // of the VM, and of the connections behind Envoy
			msg, err := clients[i].send(s.request, true)
			if err != nil {
				return clients, err
			}
			if filtered := i == 0; filtered && (!bytes.HasSuffix(msg.body, s.ends) || !bytes.Contains(msg.body, []byte("chat.completion"))) {
				return clients, fmt.Errorf("the answer is not the expected one: %.200q", msg.body)
			}
		}
	}
	return clients, nil
}

// added measures what the filter adds to the median of one connection's
// exchanges.
func (p *pair) added(r *report, s scene) error {
	clients, err := p.dialBoth(s)
	for _, c := range clients {
		if c != nil {
			defer c.close()
		}
	}
	if err != nil {
		return err
	}
	taken, err := byTurns(clients[:], [][]byte{s.request, s.request}, s)
	if err != nil {
		return err
	}
	with, without := median(taken[0]), median(taken[1])
	beside := fmt.Sprintf("%s with, %s without, medians of %d", number(with), number(without), s.pairs)
	if s.beside != "" {
		beside += "; " + s.beside
	}
	r.add(row{"Added in Envoy, one connection", s.name, with - without, "ms", s.budget, beside})
	return nil
}

// turnMax is how many exchanges one side has in a row. A gateway's code is warm
// with what it does all day; by turns of one each side would find the other's in
// the processor's caches.
const turnMax = 50

// sideError says which side of a comparison has failed.
type sideError struct {
	side int
	err  error
}

func (e *sideError) Error() string { return e.err.Error() }
func (e *sideError) Unwrap() error { return e.err }

// byTurns asks each client its request s.pairs times, by turns, and gives the
// milliseconds that each took. Its faults are sideErrors.
func byTurns(clients []*client, requests [][]byte, s scene) (taken [][]float64, err error) {
	taken = make([][]float64, len(clients))
	turn := min(turnMax, max(1, s.pairs/4))
	for done := 0; done < s.pairs; done += turn {
		for i, c := range clients {
			for range min(turn, s.pairs-done) {
				x, err := c.ask(requests[i])
				if err != nil {
					return nil, &sideError{i, err}
				}
				d := x.whole
				if s.first {
					d = x.first
				}
				taken[i] = append(taken[i], ms(d))
			}
		}
	}
	return taken, nil
}

// connectionsForLoad is how many connections ask at once.
const connectionsForLoad = 8

// throughput measures which part of the throughput is left with the filter. The
// sides are loaded by turns.
func (p *pair) throughput(r *report, s scene, o options) error {
	clients, err := p.dialBoth(s)
	for _, c := range clients {
		if c != nil {
			c.close()
		}
	}
	if err != nil {
		return err
	}
	var rates, costs [2][]float64
	for range o.windows {
		for i, e := range p.envoys {
			rate, cost, err := load8(e.Addr, e.PID, s.request, 0, o.window)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], rate)
			costs[i] = append(costs[i], cost)
		}
	}
	with, without := median(rates[0]), median(rates[1])
	r.add(row{"Throughput in Envoy, 8 connections, one worker", s.name, with / without, "of that without the filter", s.budget,
		fmt.Sprintf("%s/s with, %s/s without; Envoy's processor time for each: %s and %s µs", number(with), number(without),
			number(median(costs[0])), number(median(costs[1])))})
	return nil
}

// load8 asks on all connections for the length of a window. Answers have at least
// so many bytes. rate is how many come in a second, cost the processor time in µs
// that each takes the process.
func load8(address string, pid int, request []byte, least int, window time.Duration) (rate, cost float64, err error) {
	began := processorTime(pid)
	var clients [connectionsForLoad]*client
	for i := range clients {
		c, err := dial(address)
		if err != nil {
			return 0, 0, err
		}
		defer c.close()
		c.least = least
		clients[i] = c
	}
	var group sync.WaitGroup
	var counts [connectionsForLoad]int
	var errs [connectionsForLoad]error
	begin := time.Now()
	for i, c := range clients {
		group.Go(func() {
			for time.Since(begin) < window && errs[i] == nil {
				_, errs[i] = c.ask(request)
				counts[i]++
			}
		})
	}
	group.Wait()
	took, ran := time.Since(begin), processorTime(pid)-began
	answers := 0.0
	for _, n := range counts {
		answers += float64(n)
	}
	return answers / took.Seconds(), float64(ran) / 1000 / answers, errors.Join(errs[:]...)
}
