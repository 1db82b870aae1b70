package harness

import (
	"slices"

	"ezat.io/chat-completions/harness/internal/abi"
)

// bodyBuffer is a run of bytes in pieces: appending and prepending copy
// nothing that is there already.
type bodyBuffer struct {
	pieces [][]byte
	size   int

	// A buffer that holds a paused body is watched: limit is where onHigh runs,
	// once, until half of the limit is left (Envoy's low watermark).
	limit  int
	high   bool
	onHigh func()
	onLow  func()
}

// bodyBytesMax bounds any one buffer: a guest that appends without end while
// nothing is held would take all of the host's memory. Envoy has no such bound.
const bodyBytesMax = 1 << 30

// joinBytesMax is the size below which neighbours are put together, so that
// many small pieces do not cost a slice each.
const joinBytesMax = 4096

// Len is the size in bytes.
func (b *bodyBuffer) Len() int { return b.size }

// add appends data, which the buffer keeps.
func (b *bodyBuffer) add(data []byte) {
	if len(data) == 0 {
		return
	}
	if last := len(b.pieces) - 1; last >= 0 && len(b.pieces[last])+len(data) <= joinBytesMax {
		b.pieces[last] = append(slices.Clip(b.pieces[last]), data...)
	} else {
		b.pieces = append(b.pieces, data)
	}
	b.size += len(data)
	b.watch()
}

// prepend puts data, which the buffer keeps, in front.
func (b *bodyBuffer) prepend(data []byte) {
	if len(data) == 0 {
		return
	}
	b.pieces = slices.Insert(b.pieces, 0, data)
	b.size += len(data)
	b.watch()
}

// drain takes n bytes from the front, or all.
func (b *bodyBuffer) drain(n int) {
	n = min(n, b.size)
	b.size -= n
	for n > 0 {
		if n < len(b.pieces[0]) {
			b.pieces[0] = b.pieces[0][n:]
			break
		}
		n -= len(b.pieces[0])
		b.pieces[0] = nil
		b.pieces = b.pieces[1:]
	}
	b.watch()
}

// move takes all of another buffer.
func (b *bodyBuffer) move(from *bodyBuffer) {
	pieces := from.take()
	for _, p := range pieces {
		b.size += len(p)
	}
	b.pieces = append(b.pieces, pieces...)
	b.watch()
}

// take empties the buffer and returns what was in it.
func (b *bodyBuffer) take() [][]byte {
	pieces := b.pieces
	b.pieces, b.size = nil, 0
	b.watch()
	return pieces
}

// watch tells when a limit is crossed.
func (b *bodyBuffer) watch() {
	if b.limit <= 0 {
		return
	}
	if !b.high && b.size > b.limit {
		b.high = true
		if b.onHigh != nil {
			b.onHigh()
		}
	} else if b.high && b.size <= b.limit/2 {
		b.high = false
		if b.onLow != nil {
			b.onLow()
		}
	}
}

// CopyTo fills dst with the bytes from start on.
func (b *bodyBuffer) CopyTo(dst []byte, start int) {
	for _, p := range b.pieces {
		if start >= len(p) {
			start -= len(p)
			continue
		}
		n := copy(dst, p[start:])
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		start = 0
	}
}

// Replace is proxy_set_buffer_bytes on a body, as Envoy does it: start 0 drains
// length bytes from the front and prepends, a start at or past the end appends,
// anything else is refused.
func (b *bodyBuffer) Replace(start, length uint32, data []byte) abi.Status {
	if b.size+len(data) > bodyBytesMax {
		return abi.BadArgument
	}
	switch {
	case start == 0:
		if length > 0 {
			b.drain(int(length))
		}
		b.prepend(data)
	case int64(start) >= int64(b.size):
		b.add(data)
	default:
		return abi.BadArgument
	}
	return abi.OK
}

// constBuffer is a run of bytes that a guest may only read.
type constBuffer string

func (b constBuffer) Len() int                                  { return len(b) }
func (b constBuffer) CopyTo(dst []byte, start int)              { copy(dst, b[start:]) }
func (b constBuffer) Replace(uint32, uint32, []byte) abi.Status { return abi.BadArgument }
