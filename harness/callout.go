package harness

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"ezat.io/chat-completions/harness/internal/abi"
)

// Callout is a call of the guest (proxy_http_call) that waits for its answer.
// Callouts to a cluster with a Transport or an Egress are carried by it; others
// wait for a test to answer them with one of the methods. Each is answered once; what comes
// later goes nowhere.
type Callout struct {
	ID       uint32
	Cluster  string
	Headers  Headers
	Body     []byte
	Trailers Headers
	Timeout  time.Duration // 0: none

	v           *vm
	stop        context.CancelFunc // of a Transport's work
	stopTimeout func() bool
}

// calloutAnswer is what the guest sees in proxy_on_http_call_response.
type calloutAnswer struct {
	headers  Headers
	body     []byte
	trailers Headers
}

// httpCall starts a callout.
func (v *vm) httpCall(c abi.Call) (uint32, abi.Status) {
	cluster, known := v.host.config.Clusters[c.Cluster]
	if c.TimeoutMs < 0 || !known {
		return 0, abi.BadArgument
	}
	call := &Callout{
		Cluster: c.Cluster, Headers: headersOf(c.Headers), Body: c.Body, Trailers: headersOf(c.Trailers),
		Timeout: time.Duration(c.TimeoutMs) * time.Millisecond, v: v,
	}
	for _, name := range []string{":path", ":method", ":authority"} {
		if _, ok := call.Headers.Lookup(name); !ok {
			return 0, abi.BadArgument
		}
	}
	if cluster.Empty || len(v.callouts) >= v.host.config.CalloutsMax ||
		call.Headers.Bytes() > guestHeaderFactor*v.host.config.HeaderBytesMax {
		return 0, abi.InternalFailure
	}
	if len(call.Body) > 0 {
		call.Headers.Set("content-length", strconv.Itoa(len(call.Body)))
	}
	v.nextCall++
	for v.nextCall == 0 || v.callouts[v.nextCall] != nil {
		v.nextCall++
	}
	call.ID = v.nextCall
	v.callouts[call.ID] = call
	switch {
	case cluster.Refuses:
		v.w.posted = append(v.w.posted, func() { call.finish(ownAnswer(503, resetBody(ResetRefused))) })
	case cluster.carries():
		call.carry(&cluster)
	}
	if call.Timeout > 0 {
		call.stopTimeout = v.host.config.Clock.AfterFunc(call.Timeout, func() {
			call.answer(ownAnswer(504, "upstream request timeout"))
		})
	}
	return call.ID, abi.OK
}

// ownAnswer is an answer of Envoy's own: callouts get those like a client does.
func ownAnswer(code int, body string) *calloutAnswer {
	return &calloutAnswer{headers: prepareReply(code, []byte(body), nil).headers, body: []byte(body)}
}

// Respond answers the callout.
func (c *Callout) Respond(m Message) {
	h := m.Headers.Clone()
	if _, ok := h.Lookup("content-length"); !ok && len(m.Body) > 0 {
		h.Add("content-length", strconv.Itoa(len(m.Body)))
	}
	a := &calloutAnswer{headers: h, body: bytes.Clone(m.Body), trailers: m.Trailers.Clone()}
	if len(a.body) > c.v.host.config.CalloutBytesMax {
		a = nil
	}
	c.answer(a)
}

// Refuse answers the callout with Envoy's own 503 of an upstream that closes the
// connection before it answers.
func (c *Callout) Refuse() { c.answer(ownAnswer(503, resetBody(ResetTermination))) }

// Cut ends the callout in the middle of its answer: the guest is called back
// without headers.
func (c *Callout) Cut() { c.answer(nil) }

// answer delivers an answer, nil for a failed call, to the guest.
func (c *Callout) answer(a *calloutAnswer) { c.v.w.do(func() { c.finish(a) }) }

// finish is answer on the worker.
func (c *Callout) finish(a *calloutAnswer) {
	v := c.v
	if v.callouts[c.ID] != c {
		return
	}
	delete(v.callouts, c.ID)
	c.cancel()
	if v.failure != nil || !v.has("proxy_on_http_call_response") {
		return
	}
	var headers, trailers, size int
	if a == nil {
		v.status, v.statusMsg = abi.BrokenConnection, "reset"
		v.after = append(v.after, func() { v.statusMsg = "" })
	} else {
		v.answering = a
		v.after = append(v.after, func() { v.answering = nil })
		headers, trailers, size = len(a.headers), len(a.trailers), len(a.body)
	}
	v.notify(v.root, "proxy_on_http_call_response",
		uint64(v.root.id), uint64(c.ID), uint64(headers), uint64(size), uint64(trailers))
	v.answering = nil
}

// cancel stops whatever still works on the callout.
func (c *Callout) cancel() {
	if c.stop != nil {
		c.stop()
	}
	if c.stopTimeout != nil {
		c.stopTimeout()
	}
}

// carry sends the callout through the cluster's Egress or Transport, off the
// worker.
func (c *Callout) carry(cluster *Cluster) {
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	h := c.v.host
	h.enterBusy(1)
	go func() {
		if cluster.Egress != nil {
			cluster.Egress.carry(ctx, c.Headers, c.bounded)
		} else {
			c.answer(c.exchange(ctx, cluster))
		}
		h.enterBusy(-1)
	}()
}

// bounded answers unless the body is past the host's limit.
func (c *Callout) bounded(a *calloutAnswer) {
	if len(a.body) > c.v.host.config.CalloutBytesMax {
		a = nil
	}
	c.answer(a)
}

// enterBusy counts the callouts that are carried.
func (h *Host) enterBusy(n int) {
	h.busyMu.Lock()
	h.busy += n
	h.progress.Broadcast()
	h.busyMu.Unlock()
}

// exchange makes the call. The whole answer is read before the guest sees it.
func (c *Callout) exchange(ctx context.Context, cluster *Cluster) *calloutAnswer {
	req, err := newRequest(ctx, cluster, c.Headers, io.NopCloser(bytes.NewReader(c.Body)))
	if err != nil {
		return ownAnswer(503, err.Error())
	}
	if req.ContentLength = int64(len(c.Body)); req.ContentLength == 0 {
		req.Body = http.NoBody
	}
	resp, err := cluster.Transport.RoundTrip(req)
	if err != nil {
		return ownAnswer(503, resetBody(resetOf(err)))
	}
	defer resp.Body.Close()
	a := &calloutAnswer{headers: responseHeaders(resp)}
	if a.headers.Bytes() > c.v.host.config.HeaderBytesMax {
		return ownAnswer(503, resetBody(ResetOverflow))
	}
	limit := int64(c.v.host.config.CalloutBytesMax)
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil || int64(len(a.body)) > limit {
		return nil
	}
	a.trailers = headersFromHTTP(resp.Trailer)
	return a
}

// Callouts lists the callouts that wait on any worker, oldest first by worker.
func (h *Host) Callouts() []*Callout {
	var out []*Callout
	for _, w := range h.workers {
		w.do(func() {
			var here []*Callout
			for _, c := range w.vm.callouts {
				here = append(here, c)
			}
			slices.SortFunc(here, func(a, b *Callout) int { return int(a.ID) - int(b.ID) })
			out = append(out, here...)
		})
	}
	return out
}

// resetOf says how Envoy would name an error of a Transport.
func resetOf(err error) Reset {
	if isDial(err) {
		return ResetRefused
	}
	return ResetTermination
}
