package harness

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Stream is one request and its response on their way through the guest. A test
// that wants to see each step opens one with Host.NewStream, plays the client
// with the Request methods and ClientLeaves, the upstream with the Response
// methods, and looks at what has come out with Upstream and Client.
//
// The methods may be called from several goroutines; each runs the guest's
// callbacks before it returns.
type Stream struct {
	w  *worker
	vm *vm

	guest          *guestContext // nil until the request's headers have come
	request        flow
	response       flow
	phase          phase
	endOfStream    bool // of the message part that the guest was told of last
	logging        bool // proxy_on_log runs
	failureReplied bool // the guest is dead, and the client was told

	decoderAborted, encoderAborted bool
	prepared                       *localReply
	encoded                        bool // response headers have gone to the client
	encodeEnded                    bool // the response has gone to the client as a whole
	destroyed                      bool

	isHead      bool
	asked       [3]string // the client's method, path and authority
	start       time.Time
	connection  uint64
	source      string // address of the client
	destination string // address it called
	details     *string
	code        int // of the response; 0: none yet
	received    int // bytes of the request's body
	sent        int // bytes of the response's body
	state       map[string]string
	stateBytes  int

	route  *Route // nil: none
	stale  bool   // the request's headers have changed: the route is to be picked again
	router router
	client peer
	up     peer

	idle      func() bool // stops the idle timer
	idleSince time.Time

	onVMFailure func() // told when the guest dies; must not block
	onUnblock   func() // told when reading may go on; must not block
}

// peer is the other end of a direction: what Envoy's codec writes to. Its
// methods run on the worker and must not block.
type peer interface {
	headers(h Headers, end bool)
	data(pieces [][]byte, end bool)
	trailers(t Headers)
	reset()
}

// localReply is a response that comes from no upstream.
type localReply struct {
	headers Headers
	body    []byte
}

// Access describes a stream that has ended.
type Access struct {
	Method, Path, Authority string // as the client sent them
	// Status is what the client got, 0 when it got nothing.
	Status int
	// Details is Envoy's response code details: "via_upstream" for an answer of
	// the upstream.
	Details string
	// FilterState holds what the guest wrote with proxy_set_property, under
	// "wasm." and the path.
	FilterState map[string]string
	Duration    time.Duration
	// BytesReceived and BytesSent count the bodies of the request and response.
	BytesReceived, BytesSent int
	Worker                   int
}

// newStream opens a stream on a worker. It runs on the worker.
func (w *worker) newStream(client, up peer) *Stream {
	s := &Stream{
		w: w, vm: w.current(), client: client, up: up,
		start:      w.host.config.Clock.Now(),
		connection: w.host.streams.next() + 1,
		source:     "127.0.0.1:50000", destination: "127.0.0.1:10000",
	}
	s.request = flow{s: s, streaming: true}
	s.response = flow{s: s, response: true, streaming: true}
	return s
}

// touch starts the idle time again.
func (s *Stream) touch() {
	timeout := s.w.host.config.StreamIdleTimeout
	if timeout <= 0 || s.destroyed {
		return
	}
	s.idleSince = s.w.host.config.Clock.Now()
	if s.idle == nil {
		s.idle = s.w.host.config.Clock.AfterFunc(timeout, func() { s.w.do(s.checkIdle) })
	}
}

// checkIdle ends a stream on which nothing has happened for too long.
func (s *Stream) checkIdle() {
	if s.destroyed {
		return
	}
	timeout, clock := s.w.host.config.StreamIdleTimeout, s.w.host.config.Clock
	if left := timeout - clock.Now().Sub(s.idleSince); left > 0 {
		s.idle = clock.AfterFunc(left, func() { s.w.do(s.checkIdle) })
		return
	}
	s.idle = nil
	code := http.StatusRequestTimeout
	if s.request.complete {
		code = http.StatusGatewayTimeout
	}
	s.sendLocalReply(code, []byte("stream timeout"), nil, "stream_idle_timeout")
}

func (s *Stream) unblocked() {
	if s.onUnblock != nil {
		s.onUnblock()
	}
}

func (s *Stream) setDetails(d string) { s.details = &d }

// sendLocalReply answers the client without an upstream, as far as that is
// still possible: through the guest when no response has begun, past it when
// one has begun that has not reached the client, and with a reset after that.
func (s *Stream) sendLocalReply(code int, body []byte, extra Headers, details string) {
	if s.destroyed {
		return
	}
	switch {
	case s.phase&decoding != 0:
		s.decoderAborted = true
	case s.phase&encoding != 0:
		s.encoderAborted = true
	}
	s.setDetails(details)
	if s.response.headers == nil {
		s.currentRoute()
	}
	reply := prepareReply(code, body, extra)
	switch {
	case s.response.headers == nil && s.phase&decoding != 0:
		if s.prepared == nil { // the first of a callback wins
			s.prepared = reply
		}
	case s.response.headers == nil:
		s.encodeReply(reply)
	case !s.encoded:
		s.directReply(reply)
	default:
		s.abort()
	}
}

func prepareReply(code int, body []byte, extra Headers) *localReply {
	r := &localReply{body: body}
	r.headers.Add(":status", strconv.Itoa(code))
	for _, f := range extra {
		r.headers.Add(f.Name, f.Value)
	}
	if len(body) == 0 {
		r.headers.Remove("content-length")
		r.headers.Remove("content-type")
		return r
	}
	r.headers.Set("content-length", strconv.Itoa(len(body)))
	if r.headers.Get("content-type") == "" {
		r.headers.Set("content-type", "text/plain")
	}
	return r
}

// executeReply sends the reply that a callback prepared.
func (s *Stream) executeReply() {
	if reply := s.prepared; reply != nil {
		s.prepared = nil
		s.encodeReply(reply)
	}
}

// encodeReply sends a reply through the guest's response callbacks.
func (s *Stream) encodeReply(r *localReply) {
	if s.destroyed || s.response.headers != nil {
		return
	}
	s.response.headers = &r.headers
	s.code = statusOf(r.headers)
	end := len(r.body) == 0 || s.isHead
	s.response.complete = end
	s.response.inHeaders(end)
	if !end && !s.destroyed {
		s.response.complete = true
		s.response.inData(bufferOf(r.body), true)
	}
}

// directReply sends a reply past the guest.
func (s *Stream) directReply(r *localReply) {
	s.response.headers = &r.headers
	end := len(r.body) == 0 || s.isHead
	s.writeHeaders(end)
	if !end && !s.destroyed {
		s.encodeData([][]byte{r.body}, true)
	}
}

func bufferOf(data []byte) *bodyBuffer {
	b := &bodyBuffer{}
	b.add(data)
	return b
}

func statusOf(h Headers) int {
	code, err := strconv.Atoi(h.Get(":status"))
	if err != nil || code < 100 || code > 999 {
		return 0
	}
	return code
}

// encodeHeaders sends the response's headers to the client, unless the guest
// has taken away what a response needs.
func (s *Stream) encodeHeaders(end bool) {
	if s.destroyed {
		return
	}
	if statusOf(*s.response.headers) == 0 {
		const missing = "missing required header: :status"
		s.sendLocalReply(http.StatusBadGateway, []byte(missing), nil,
			"filter_removed_required_response_headers{"+strings.ReplaceAll(missing, " ", "_")+"}")
		return
	}
	s.writeHeaders(end)
}

func (s *Stream) writeHeaders(end bool) {
	s.touch()
	s.encoded = true
	s.code = statusOf(*s.response.headers)
	h := s.response.headers.Clone()
	for name := range hopByHop {
		h.Remove(name) // the guest sees an upstream's transfer-encoding, the client has its own
	}
	s.client.headers(h, end)
	s.endEncoding(end)
}

// encodeData sends a piece of the response's body to the client.
func (s *Stream) encodeData(pieces [][]byte, end bool) {
	if s.destroyed {
		return
	}
	s.touch()
	for _, p := range pieces {
		s.sent += len(p)
	}
	s.client.data(pieces, end)
	s.endEncoding(end)
}

// encodeTrailers sends the response's trailers to the client.
func (s *Stream) encodeTrailers() {
	if s.destroyed {
		return
	}
	s.client.trailers(s.response.trailers.Clone())
	s.endEncoding(true)
}

// endEncoding ends the stream with its response, whether the request has ended
// or not.
func (s *Stream) endEncoding(end bool) {
	if end && !s.destroyed {
		s.encodeEnded = true
		s.destroy()
	}
}

// abort resets the client's stream.
func (s *Stream) abort() {
	if s.destroyed {
		return
	}
	switch {
	case s.phase&decoding != 0:
		s.decoderAborted = true
	case s.phase&encoding != 0:
		s.encoderAborted = true
	}
	s.client.reset()
	s.destroy()
}

// destroy ends the stream: the guest logs it, is done with it and forgets it.
func (s *Stream) destroy() {
	if s.destroyed {
		return
	}
	s.destroyed = true
	s.response.complete = true
	if s.idle != nil {
		s.idle()
	}
	s.router.stop()
	if s.router.started && !(s.router.requestEnded && s.router.responseEnded) && !s.router.reset {
		s.router.reset = true
		s.up.reset()
	}
	if g := s.guest; g != nil {
		id := uint64(g.id)
		s.logging = true
		s.vm.notify(g, "proxy_on_log", id)
		s.logging = false
		s.logAccess()
		s.vm.notify(g, "proxy_on_done", id)
		s.vm.notify(g, "proxy_on_delete", id)
		delete(s.vm.streams, s)
		// The context's id is good until the worker is at rest: the end may have
		// come inside a hostcall of its own guest.
		s.w.posted = append(s.w.posted, func() { delete(s.vm.contexts, g.id) })
	} else {
		s.logAccess()
	}
	s.unblocked()
}

func (s *Stream) logAccess() {
	if s.w.host.config.AccessLog == nil {
		return
	}
	a := Access{
		Status: s.code, FilterState: maps.Clone(s.state), Worker: s.w.index,
		Duration:      s.w.host.config.Clock.Now().Sub(s.start),
		BytesReceived: s.received, BytesSent: s.sent,
	}
	if s.details != nil {
		a.Details = *s.details
	}
	if !s.encoded {
		a.Status = 0
	}
	a.Method, a.Path, a.Authority = s.asked[0], s.asked[1], s.asked[2]
	s.w.host.config.AccessLog(a)
}
