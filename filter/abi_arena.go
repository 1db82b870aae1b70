package main

// arena is the memory that the host writes into. What it copies in for a body
// lands in one buffer that is used again; everything else (header values
// become strings without a copy) in memory of its own.
//
// The host writes behind the garbage collector's back, so the arena holds on
// to each allocation until the next one.
type arena struct {
	body    []byte // the buffer; nil while it is lent
	forBody bool   // the next allocation is for a body
	last    []byte // the latest allocation
}

const (
	// bodySlackBytes are the zero bytes behind a body: a scanner that reads
	// words needs no check at the end.
	bodySlackBytes = 64

	// bodySmallBytes is the buffer's first size. Beyond it the buffer grows in
	// steps of bodyStepBytes, so that bodies that grow little by little do not
	// leave a trail of buffers behind.
	bodySmallBytes = 64 << 10
	bodyStepBytes  = 4 << 20
)

// expectBody makes the next allocation one for a body.
func (a *arena) expectBody() { a.forBody = true }

// allocate is memory for size bytes of the host's.
func (a *arena) allocate(size int) []byte {
	if !a.forBody {
		a.last = make([]byte, max(size, 1))
		return a.last
	}
	a.forBody = false
	b := a.body
	a.body, a.last = nil, nil
	if need := size + bodySlackBytes; cap(b) < need {
		step := bodySmallBytes
		if need > step {
			step = bodyStepBytes
		}
		// The old buffer is garbage before the new one is made.
		b = nil
		b = make([]byte, (need+step-1)/step*step)
	}
	a.last = b[:cap(b)]
	return a.last
}

// takeBody is the body of size bytes that the host has just written, with
// bodySlackBytes zeroes behind it. ok is false when it has written nothing, or
// less.
func (a *arena) takeBody(size int) (body []byte, ok bool) {
	a.forBody = false
	b := a.last
	a.last = nil
	if size < 0 || len(b) < size+bodySlackBytes {
		return nil, false
	}
	clear(b[size : size+bodySlackBytes])
	return b[:size], true
}

// takeValue is what the host has just written into memory of its own. The arena
// lets go of it.
func (a *arena) takeValue(size int) (value []byte, ok bool) {
	b := a.last
	a.last = nil
	if size <= 0 || len(b) != size {
		return nil, false
	}
	return b, true
}

// release takes a body back, so that the next one lands in its memory. Of two
// that are lent at a time the larger one stays.
func (a *arena) release(body []byte) {
	if cap(body) > cap(a.body) {
		a.body = body[:0]
	}
}
