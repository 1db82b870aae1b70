package harness

import (
	"bytes"
	"errors"
	"fmt"
)

// Message is one side's view of a request or response.
type Message struct {
	Headers  Headers
	Body     []byte
	Trailers Headers
	// Pieces are the body as it was handed over, piece by piece. In a message
	// that is to be sent they say how the body is cut; nil: in one piece.
	Pieces [][]byte
	// End is how a message that is to be sent ends.
	End End
	// Began is true once the headers have come, Ended once the message is
	// whole, Reset when it was given up before that.
	Began, Ended, Reset bool

	bare bool // ended with its headers
}

// End is how the end of a message without trailers is told.
type End int

const (
	// EndAlone tells it after the last byte, in a callback of size 0, as HTTP/1
	// does. A message without a body ends with its headers.
	EndAlone End = iota
	// EndWithData tells it with the last piece, as HTTP/2 does.
	EndWithData
)

// record collects what reaches a side of a stream.
type record struct {
	m    Message
	seen int // bytes that TakeClient has returned
}

func (r *record) headers(h Headers, end bool) {
	r.m.Headers, r.m.Began, r.m.Ended, r.m.bare = h, true, end, end
}

func (r *record) data(pieces [][]byte, end bool) {
	for _, p := range pieces {
		r.m.Body = append(r.m.Body, p...)
	}
	if piece := bytes.Join(pieces, nil); len(piece) > 0 {
		r.m.Pieces = append(r.m.Pieces, piece)
	}
	r.m.Ended = end
}

func (r *record) trailers(t Headers) { r.m.Trailers, r.m.Ended = t, true }
func (r *record) reset()             { r.m.Reset = true }

// Errors of a test that plays its part in the wrong order.
var (
	// ErrOrder: headers come first and once, nothing comes after the end.
	ErrOrder = errors.New("harness: message parts out of order")
	// ErrNotUpstream: an upstream cannot answer what has not reached it.
	ErrNotUpstream = errors.New("harness: the request has not gone upstream")
)

// NewStream opens a stream on the next worker. Its clusters' Transports are not
// used: the test is the upstream.
func (h *Host) NewStream() *Stream {
	w := h.pick()
	var s *Stream
	w.do(func() { s = w.newStream(&record{}, &record{}) })
	return s
}

// RequestHeaders plays the client's request headers; end says that there is no
// body. As Envoy does, it adds x-forwarded-proto when it is missing.
func (s *Stream) RequestHeaders(h Headers, end bool) error {
	return s.play(func() error {
		if s.request.headers != nil {
			return fmt.Errorf("%w: request headers twice", ErrOrder)
		}
		h = h.Clone()
		if _, ok := h.Lookup("x-forwarded-proto"); !ok {
			h.Add("x-forwarded-proto", "http")
		}
		s.asked = [3]string{h.Get(":method"), h.Get(":path"), h.Get(":authority")}
		s.isHead = s.asked[0] == "HEAD"
		s.request.headers, s.request.complete = &h, end
		s.route = s.pickRoute()
		s.request.inHeaders(end)
		return nil
	})
}

// RequestBody plays a piece of the client's body; end says that it is the last.
// The data is copied. Once the stream is over it goes nowhere.
func (s *Stream) RequestBody(data []byte, end bool) error {
	data = bytes.Clone(data)
	return s.play(func() error {
		if s.destroyed {
			return nil
		}
		if s.request.headers == nil || s.request.complete {
			return fmt.Errorf("%w: request body", ErrOrder)
		}
		s.received += len(data)
		s.request.complete = end
		s.request.inData(bufferOf(data), end)
		return nil
	})
}

// RequestTrailers plays trailers, which end the client's request.
func (s *Stream) RequestTrailers(t Headers) error {
	t = t.Clone()
	return s.play(func() error {
		if s.destroyed {
			return nil
		}
		if s.request.headers == nil || s.request.complete {
			return fmt.Errorf("%w: request trailers", ErrOrder)
		}
		s.request.trailers, s.request.complete = &t, true
		s.request.inTrailers()
		return nil
	})
}

// ClientLeaves plays a client that closes its connection.
func (s *Stream) ClientLeaves() {
	s.w.do(func() {
		if s.destroyed {
			return
		}
		s.setDetails("downstream_remote_disconnect")
		s.destroy()
	})
}

// ResponseHeaders plays the upstream's response headers; end says that there is
// no body.
func (s *Stream) ResponseHeaders(h Headers, end bool) error {
	h = h.Clone()
	return s.answer(func() error {
		if s.router.responseBegan {
			return fmt.Errorf("%w: response headers twice", ErrOrder)
		}
		s.upstreamHeaders(h, end)
		return nil
	})
}

// ResponseBody plays a piece of the upstream's body; end says that it is the
// last. The data is copied.
func (s *Stream) ResponseBody(data []byte, end bool) error {
	data = bytes.Clone(data)
	return s.answer(func() error {
		if !s.router.responseBegan || s.router.responseEnded {
			return fmt.Errorf("%w: response body", ErrOrder)
		}
		s.upstreamData(bufferOf(data), end)
		return nil
	})
}

// ResponseTrailers plays trailers, which end the upstream's response.
func (s *Stream) ResponseTrailers(t Headers) error {
	t = t.Clone()
	return s.answer(func() error {
		if !s.router.responseBegan || s.router.responseEnded {
			return fmt.Errorf("%w: response trailers", ErrOrder)
		}
		s.upstreamTrailers(t)
		return nil
	})
}

// UpstreamFails plays an upstream that goes away: Envoy's own 503 when its
// response has not begun, a 502 while the response is held, and a reset after that.
func (s *Stream) UpstreamFails(why Reset) error {
	return s.answer(func() error {
		s.upstreamFails(why)
		return nil
	})
}

// play runs a step of the client.
func (s *Stream) play(f func() error) error {
	var err error
	s.w.do(func() { err = f() })
	return err
}

// answer runs a step of the upstream, which goes nowhere once the stream is over.
func (s *Stream) answer(f func() error) error {
	return s.play(func() error {
		if s.destroyed || s.router.reset && s.router.responseEnded {
			return nil
		}
		if !s.router.started {
			return ErrNotUpstream
		}
		return f()
	})
}

// Upstream is what has gone upstream so far.
func (s *Stream) Upstream() Message { return s.view(s.up) }

// Client is what has reached the client so far.
func (s *Stream) Client() Message { return s.view(s.client) }

func (s *Stream) view(p peer) Message {
	var m Message
	s.w.do(func() {
		if r, ok := p.(*record); ok {
			m = r.m
			m.Headers, m.Trailers = m.Headers.Clone(), m.Trailers.Clone()
			m.Body = bytes.Clone(m.Body)
			m.Pieces = append([][]byte(nil), m.Pieces...)
		}
	})
	return m
}

// TakeClient returns the bytes of the body that have reached the client since
// it was called last.
func (s *Stream) TakeClient() []byte {
	var out []byte
	s.w.do(func() {
		if r, ok := s.client.(*record); ok {
			out = bytes.Clone(r.m.Body[r.seen:])
			r.seen = len(r.m.Body)
		}
	})
	return out
}

// Over says whether the stream has ended and the guest has forgotten it.
func (s *Stream) Over() bool {
	var over bool
	s.w.do(func() { over = s.destroyed })
	return over
}

// Details are Envoy's response code details, "" while there are none.
func (s *Stream) Details() string {
	var d string
	s.w.do(func() {
		if s.details != nil {
			d = *s.details
		}
	})
	return d
}

// FilterState returns what the guest has written with proxy_set_property; the
// name is "wasm." and the path. Access loggers of Envoy read it by that name.
func (s *Stream) FilterState(name string) (string, bool) {
	var v string
	var ok bool
	s.w.do(func() { v, ok = s.state[name] })
	return v, ok
}

// RequestBlocked says whether the client has to stop sending: the guest holds
// all of the request, and it is past the limit. ResponseBlocked is the same for
// the upstream.
func (s *Stream) RequestBlocked() bool { return s.isBlocked(&s.request) }

// ResponseBlocked says whether the upstream has to stop sending.
func (s *Stream) ResponseBlocked() bool { return s.isBlocked(&s.response) }

func (s *Stream) isBlocked(f *flow) bool {
	var b bool
	s.w.do(func() { b = f.blocked && !s.destroyed })
	return b
}
