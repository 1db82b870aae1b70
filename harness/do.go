package harness

import (
	"context"
	"errors"
	"fmt"
)

// Exchange is one request and its answer, for Host.Do.
type Exchange struct {
	// Request is what the client sends. A message without a body and without
	// EndAlone's chunked framing ends with its headers; see Message.
	Request Message
	// Upstream makes the answer to what has come upstream. Nil: a 200 without a body.
	Upstream func(sent Message) Message
	// Callout answers the guest's callouts to clusters without a Transport or an
	// Egress. Nil: such a callout makes Do fail.
	Callout func(c *Callout) Message
}

// ErrStalled says that a stream does not go on: the guest holds it, and there is
// no callout that could resume it.
var ErrStalled = errors.New("harness: the stream does not go on")

// Do takes one exchange through the guest and returns what reached the client
// and what went upstream. The upstream answers once it has the whole request.
// It fails when the stream stalls instead of ending, and when a content-length
// is not the length of its body.
func (h *Host) Do(ctx context.Context, x Exchange) (client, upstream Message, err error) {
	s := h.NewStream()
	err = s.send(x.Request, s.RequestHeaders, s.RequestBody, s.RequestTrailers)
	if err == nil {
		err = s.settle(ctx, &x, func(client, up Message) bool { return client.done() || up.done() })
	}
	if sent := s.Upstream(); err == nil && sent.Ended && !s.Over() {
		answer := Message{Headers: NewHeaders(":status", "200")}
		if x.Upstream != nil {
			answer = x.Upstream(sent)
		}
		if err = s.send(answer, s.ResponseHeaders, s.ResponseBody, s.ResponseTrailers); err == nil {
			err = s.settle(ctx, &x, func(client, _ Message) bool { return client.done() })
		}
	}
	client, upstream = s.Client(), s.Upstream()
	if err != nil {
		s.ClientLeaves()
		return client, upstream, err
	}
	return client, upstream, errors.Join(client.checkLength("response"), upstream.checkLength("request"))
}

func (m *Message) done() bool { return m.Ended || m.Reset }

// checkLength finds a content-length that is not the body's.
func (m *Message) checkLength(what string) error {
	n, ok := m.Headers.Lookup("content-length")
	if !ok || !m.Ended || m.bare || n == fmt.Sprint(len(m.Body)) {
		return nil
	}
	return fmt.Errorf("harness: the %s's content-length is %s, its body has %d bytes", what, n, len(m.Body))
}

// send plays a whole message.
func (s *Stream) send(m Message, headers func(Headers, bool) error, body func([]byte, bool) error, trailers func(Headers) error) error {
	pieces := m.Pieces
	if pieces == nil && len(m.Body) > 0 {
		pieces = [][]byte{m.Body}
	}
	bare := len(pieces) == 0 && m.Trailers == nil
	if err := headers(m.Headers, bare); err != nil || bare {
		return err
	}
	withData := m.End == EndWithData && m.Trailers == nil
	for i, p := range pieces {
		if s.Over() {
			return nil
		}
		if err := body(p, withData && i == len(pieces)-1); err != nil {
			return err
		}
	}
	switch {
	case s.Over() || withData:
		return nil
	case m.Trailers != nil:
		return trailers(m.Trailers)
	}
	return body(nil, true)
}

// settle waits, and answers callouts, until the stream is where it should be.
func (s *Stream) settle(ctx context.Context, x *Exchange, done func(client, up Message) bool) error {
	h := s.w.host
	stop := context.AfterFunc(ctx, func() {
		h.busyMu.Lock()
		defer h.busyMu.Unlock()
		h.progress.Broadcast()
	})
	defer stop()
	for {
		// In this order: a callout may come back, and end the stream, in between.
		busy, over := h.calloutsUnderWay(), s.Over()
		if done(s.Client(), s.Upstream()) {
			return nil
		}
		if over {
			return fmt.Errorf("%w: it is over without a whole response (%s)", ErrStalled, s.Details())
		}
		answered, err := h.answerCallouts(x)
		if err != nil {
			return err
		}
		switch {
		case answered:
		case busy == 0:
			return fmt.Errorf("%w: %s", ErrStalled, s.where())
		default:
			if err := h.awaitProgress(ctx, busy); err != nil {
				return err
			}
		}
	}
}

// where says what a stalled stream waits for.
func (s *Stream) where() string {
	var text string
	s.w.do(func() {
		text = "the guest holds the request"
		if s.router.responseBegan {
			text = "the guest holds the response"
		} else if s.router.requestEnded {
			text = "the upstream has not answered"
		}
	})
	return text
}

// answerCallouts answers the callouts that wait for a test.
func (h *Host) answerCallouts(x *Exchange) (bool, error) {
	answered := false
	for _, c := range h.Callouts() {
		if cluster := h.config.Clusters[c.Cluster]; cluster.carries() || cluster.Refuses {
			continue
		}
		if x.Callout == nil {
			return false, fmt.Errorf("harness: nobody answers the callout to %s %s", c.Cluster, c.Headers.Get(":path"))
		}
		c.Respond(x.Callout(c))
		answered = true
	}
	return answered, nil
}

func (h *Host) calloutsUnderWay() int {
	h.busyMu.Lock()
	defer h.busyMu.Unlock()
	return h.busy
}

// awaitProgress waits until another number of callouts is under way.
func (h *Host) awaitProgress(ctx context.Context, busy int) error {
	h.busyMu.Lock()
	defer h.busyMu.Unlock()
	for h.busy == busy && ctx.Err() == nil && !h.closed {
		h.progress.Wait()
	}
	return ctx.Err()
}
