// Package sse cuts an event stream (WHATWG HTML, "Server-sent events") into
// events. It is a pure machine: bytes come in pieces of any size, and where they
// were cut changes nothing.
//
// Lines end in LF, CR or CRLF; a byte order mark at the front, comments and all
// fields but data are passed over; the data lines of an event are joined with
// LF. Two things differ from the standard, both in favour of what was sent: an
// event counts even where the stream ends before its blank line, and an event
// is bounded in size. An event without data, or with empty data, is none.
package sse

import "bytes"

// Slack is the number of zero bytes that stand behind the data of an event.
const Slack = 64

// keepBytesMax is the largest buffer that is used again for the next event: one
// large event must not hold its memory for the rest of a long stream.
const keepBytesMax = 16 << 10

// Reader cuts one stream. Use NewReader.
//
// An event is collected in buf: first its data lines, an LF behind each, then
// the line that has not ended yet. A line is searched for its end once, in the
// piece that it came with.
type Reader struct {
	in     []byte // the piece that is being read
	pos    int    // how far it has been read
	lf, cr int    // the next LF and CR of in, at pos or behind; below pos: not known
	whole  int    // the offset behind the last LF of in; below zero: not known

	buf  []byte
	data int  // bytes of buf that are data lines
	sent bool // buf was handed out and is free

	first    bool // no line has ended yet: a byte order mark may stand here
	afterCR  bool // an LF that comes now belongs to the CR before it
	end      bool // in is the last piece
	over     bool // the stream has ended, or is broken
	tooLarge bool

	eventBytesMax int
}

// NewReader makes a Reader that takes events of at most eventBytesMax bytes:
// their data lines and the line that is being read count.
func NewReader(eventBytesMax int) Reader {
	return Reader{first: true, eventBytesMax: eventBytesMax}
}

// Push gives the next piece of the stream; end marks the last one, which may be
// empty. Next must have used up the piece before. The piece must stay unchanged
// until Next returns false.
func (r *Reader) Push(piece []byte, end bool) {
	r.in, r.pos, r.end = piece, 0, r.end || end
	r.lf, r.cr, r.whole = -1, -1, -1
}

// Held is the memory that waits for the rest of an event, in bytes.
func (r *Reader) Held() int { return cap(r.buf) }

// TooLarge tells that the stream has an event above the limit. Nothing more
// comes then.
func (r *Reader) TooLarge() bool { return r.tooLarge }

// Whole gives the whole lines that come next in the piece, where an event
// begins there; else nothing. Skip passes over bytes of it.
func (r *Reader) Whole() []byte {
	r.free()
	if len(r.buf) > 0 || r.afterCR || r.over || r.pos == len(r.in) {
		return nil
	}
	if r.whole < 0 {
		// A walk byte by byte: not for pieces in the middle of a large event.
		r.whole = bytes.LastIndexByte(r.in, '\n') + 1
	}
	if r.pos >= r.whole {
		return nil
	}
	return r.in[r.pos:r.whole]
}

// Skip passes over n bytes of Whole, which must be whole events.
func (r *Reader) Skip(n int) {
	r.pos += n
	r.first = r.first && n == 0
}

// Next gives the data of the next event, or false when the piece is used up.
// The data is good until the next call, and Slack zeros stand behind it.
func (r *Reader) Next() (data []byte, ok bool) {
	r.free()
	for !r.over {
		if r.pos == len(r.in) && !r.end {
			break
		}
		if r.afterCR && r.pos < len(r.in) {
			if r.in[r.pos] == '\n' {
				r.pos++
			}
			r.afterCR = false
		}
		ended := r.lineEnd()
		piece := r.in[r.pos:ended]
		if len(r.buf)+len(piece) > r.eventBytesMax {
			r.tooLarge, r.over = true, true
			break
		}
		if ended == len(r.in) {
			return r.pause(piece)
		}
		r.afterCR = r.in[ended] == '\r'
		r.pos = ended + 1
		if blank := r.line(piece); blank {
			if data, ok := r.event(); ok {
				return data, true
			}
		}
	}
	r.in = nil
	return nil, false
}

// lineEnd is the offset of the next LF or CR, or of the end of the piece. Both
// are searched for once: a stream without CR costs one search for it a piece.
func (r *Reader) lineEnd() int {
	if r.lf < r.pos {
		r.lf = next(r.in, r.pos, '\n')
	}
	if r.cr < r.pos {
		r.cr = next(r.in, r.pos, '\r')
	}
	return min(r.lf, r.cr)
}

func next(b []byte, from int, c byte) int {
	if i := bytes.IndexByte(b[from:], c); i >= 0 {
		return from + i
	}
	return len(b)
}

// pause keeps the line that the piece breaks off in. At the end of the stream
// that line, and the event that it belongs to, count as ended.
func (r *Reader) pause(rest []byte) (data []byte, ok bool) {
	r.pos = len(r.in)
	if !r.end {
		r.grow(len(r.buf) + len(rest))
		r.buf = append(r.buf, rest...)
		r.in = nil
		return nil, false
	}
	r.over = true
	r.line(rest)
	r.in = nil
	return r.event()
}

// grow makes room for n bytes and what may stand behind them. Each buffer is twice
// the one before but for the last: all that are let go of are not much more than it.
func (r *Reader) grow(n int) {
	need := n + 1 + Slack
	if need <= cap(r.buf) {
		return
	}
	most := r.eventBytesMax + 1 + Slack
	size := max(need, min(2*cap(r.buf), most))
	r.buf = append(make([]byte, 0, size), r.buf...)
}

// line takes a line whose last part is rest, and tells whether it is blank.
func (r *Reader) line(rest []byte) (blank bool) {
	line := rest
	if len(r.buf) > r.data {
		r.grow(len(r.buf) + len(rest))
		r.buf = append(r.buf, rest...)
		line = r.buf[r.data:]
	}
	if r.first {
		r.first = false
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	value, isData := dataOf(line)
	if isData {
		r.grow(r.data + len(value))
		// The value may stand in buf already, behind the place where it goes.
		r.buf = append(r.buf[:r.data], value...)
		r.buf = append(r.buf, '\n')
		r.data = len(r.buf)
	}
	blank = len(line) == 0
	r.buf = r.buf[:r.data]
	return blank
}

// dataOf is the value of a data line.
func dataOf(line []byte) (value []byte, ok bool) {
	if len(line) < 4 || string(line[:4]) != "data" {
		return nil, false
	}
	line = line[4:]
	if len(line) == 0 {
		return line, true // a field without a colon has an empty value
	}
	if line[0] != ':' {
		return nil, false
	}
	line = line[1:]
	if len(line) > 0 && line[0] == ' ' {
		line = line[1:]
	}
	return line, true
}

// event hands out the data of the event that has ended, without the last LF.
func (r *Reader) event() (data []byte, ok bool) {
	n := r.data - 1
	if n <= 0 {
		r.buf, r.data = r.buf[:0], 0
		return nil, false
	}
	var zeros [Slack]byte
	r.buf = append(r.buf[:n], zeros[:]...)
	r.sent = true
	return r.buf[:n], true
}

// free makes buf ready for the next event.
func (r *Reader) free() {
	if !r.sent {
		return
	}
	if cap(r.buf) > keepBytesMax {
		r.buf = nil
	}
	r.buf, r.data, r.sent = r.buf[:0], 0, false
}
