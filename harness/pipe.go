package harness

import (
	"context"
	"sync"
)

// pipe carries the parts of a message from a worker, which must not wait, to a
// goroutine that writes them to a connection. It is a peer.
type pipe struct {
	mu    sync.Mutex
	parts []part
	bytes int
	moved chan struct{} // one waiter is told of any change
}

// part is headers, a piece of a body, trailers or a reset.
type part struct {
	headers  Headers
	trailers Headers
	pieces   [][]byte
	bytes    int
	reset    bool
	end      bool
}

func newPipe() *pipe { return &pipe{moved: make(chan struct{}, 1)} }

func (p *pipe) headers(h Headers, end bool) { p.push(part{headers: h, end: end}) }
func (p *pipe) trailers(t Headers)          { p.push(part{trailers: t, end: true}) }
func (p *pipe) reset()                      { p.push(part{reset: true, end: true}) }

func (p *pipe) data(pieces [][]byte, end bool) {
	n := 0
	for _, b := range pieces {
		n += len(b)
	}
	if n > 0 || end {
		p.push(part{pieces: pieces, bytes: n, end: end})
	}
}

func (p *pipe) push(q part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts = append(p.parts, q)
	p.bytes += q.bytes
	p.tell()
}

func (p *pipe) tell() {
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// next waits for the next part; false when ctx ends first.
func (p *pipe) next(ctx context.Context) (part, bool) {
	for {
		p.mu.Lock()
		if len(p.parts) > 0 {
			q := p.parts[0]
			p.parts[0] = part{}
			p.parts = p.parts[1:]
			p.bytes -= q.bytes
			p.mu.Unlock()
			return q, true
		}
		p.mu.Unlock()
		select {
		case <-p.moved:
		case <-ctx.Done():
			return part{}, false
		}
	}
}

// waiting is the number of bytes that have not been taken yet.
func (p *pipe) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}
