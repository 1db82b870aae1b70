package main

import (
	"runtime"
	"slices"

	"ezat.io/chat-completions/translate"
)

// ledger bounds everything unfinished that lives in the memory of one VM
// (decision 54): events that have come in parts, inputs that blocks brought in
// their start, model lists under way, images of requests that wait for others.
// What the host buffers is not in it.
//
// Each exchange has a weight, the bytes that it holds, which is taken anew after
// each change. When all together pass bytesMax the heaviest fails by
// itself, with its right error, and the others go on.
type ledger struct {
	bytesMax int
	bytes    int         // of all exchanges
	heavy    []*exchange // those of heavyBytes and more: only they are looked through
	fresh    int         // large bytes made since the last collection
}

// change takes the new weight of an exchange.
func (l *ledger) change(x *exchange, weight int) {
	was := x.weight
	x.weight = weight
	l.bytes += weight - was
	switch {
	case weight >= heavyBytes && was < heavyBytes:
		l.heavy = append(l.heavy, x)
	case weight < heavyBytes && was >= heavyBytes:
		i := slices.Index(l.heavy, x)
		l.heavy = slices.Delete(l.heavy, i, i+1)
	}
	if weight > was && weight >= heavyBytes {
		l.made(2 * (weight - was)) // a buffer that grows is made anew, and doubles
	}
}

// heaviest is the exchange with the largest weight, x itself where no other one
// has more.
func (l *ledger) heaviest(x *exchange) *exchange {
	for _, other := range l.heavy {
		if other.weight > x.weight {
			x = other
		}
	}
	return x
}

// made counts large memory that has been taken, and has the collector run before
// too much more is: by itself it would wait until the garbage is as much as all
// that is in use.
func (l *ledger) made(bytes int) {
	l.fresh += bytes
	if l.fresh >= freshBytesMax {
		l.collect()
	}
}

// collect clears away what large bodies, events and outgrown buffers have left
// behind. Go's collector works beside the program, and a guest runs only while it
// is called: left to itself it falls behind until the VM has no memory left.
func (l *ledger) collect() {
	l.fresh = 0
	runtime.GC()
}

// weigh takes the exchange's weight anew.
func (x *exchange) weigh() {
	weight := x.list.Held()
	if x.stream != nil {
		weight += x.stream.Held()
	}
	if x.downloads != nil {
		weight += x.downloads.held()
	}
	if weight != x.weight {
		x.plugin.ledger.change(x, weight)
	}
}

// fits weighs x, whose callback is running, and makes room where all is too much
// together. When it is false x itself is the heaviest, and must fail.
func (x *exchange) fits() bool {
	x.weigh()
	l := x.plugin.ledger
	for l.bytes > l.bytesMax {
		other := l.heaviest(x)
		if other == x {
			return false
		}
		other.shed()
		if other.weight >= heavyBytes {
			other.end() // a bug of ours has kept it from letting go
		}
		// It fails when x has ended: then nothing more is done for it.
		_ = x.host.Enter()
	}
	return true
}

// shed lets go of what an exchange holds, from the callback of another one. Its
// client is told at once where nothing has left, and else when the host next asks
// about its body: nothing can be written before.
func (x *exchange) shed() {
	var action Action
	defer x.leave(&action, x.enter(phaseOther))
	if err := x.host.Enter(); err != nil {
		// The host has not said that the stream ended.
		x.recorded = true
		x.end()
		return
	}
	if x.downloads != nil {
		x.refuse(noRoom(), nil)
		return
	}
	e := translate.BadUpstream()
	if x.held {
		x.record(x.faultRecord(e))
	}
	x.failWith(e)
}

// noRoom is the contract's row 503, for requests that this VM has no room for.
func noRoom() *translate.Error { return new(translate.Reply).UpstreamError(503, nil) }
