package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	headersMax   = 100                  // lines of one header map, as Envoy's max_headers_count
	readBytes    = 64 << 10             // what is read from a connection at once
	aheadBytes   = 1 << 20              // what may wait to be written to one
	lingerFor    = time.Second          // how long a client may go on sending after its answer
	backpressure = 5 * time.Millisecond // how often a full pipe is looked at
)

// ProxyOptions are what a Proxy adds to its host.
type ProxyOptions struct {
	// Prefix is where the guest is reachable, at segment borders; other paths
	// are answered with an empty 404 that the guest does not see. "": everywhere.
	Prefix string
	// Edge does what Envoy does where clients are not trusted: their x-envoy-*
	// headers are dropped, x-request-id is always new, and the path is brought to
	// one spelling, without dot segments and double slashes, before anything
	// looks at it (use_remote_address, normalize_path, merge_slashes).
	Edge bool
	// Log takes what goes wrong with a connection, such as an answer whose
	// content-length is not the size of its body; nil: nobody is told.
	Log func(error)
}

// Proxy is an http.Handler that takes each request through the guest to the
// cluster of its route, and streams the answer back piece by piece. Clusters
// need a Transport.
//
// Like Envoy's HTTP/1 codec it tells the end of a body in a callback of its own,
// adds x-forwarded-proto and, when it is missing, x-request-id, and takes the
// headers away that belong to a connection.
type Proxy struct {
	host    *Host
	options ProxyOptions
}

// Proxy returns a handler that uses all workers by turns.
func (h *Host) Proxy(o ProxyOptions) *Proxy { return &Proxy{host: h, options: o} }

// NewTransport returns a transport for clusters: system roots for TLS, no
// compression of its own and no proxy from the environment, so that what goes
// upstream is what the guest wrote.
func NewTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.DisableCompression = true
	t.MaxResponseHeaderBytes = headerBytesDefault
	return t
}

// ServeHTTP takes one request through the guest.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := p.requestHeaders(r)
	if !p.under(h.Get(":path")) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if h.Bytes() > p.host.config.HeaderBytesMax || len(h) > headersMax {
		w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	x := &exchange{
		p: p, ctx: ctx, cancel: cancel, down: newPipe(), up: newPipe(),
		unblocked: make(chan struct{}, 1), read: make(chan struct{}),
	}
	x.open(r)
	rc := http.NewResponseController(w)
	if err := rc.EnableFullDuplex(); err != nil {
		x.say(fmt.Errorf("full duplex: %w", err)) // an early answer then waits for the body
	}
	var work sync.WaitGroup
	work.Go(x.carry)
	go x.receive(h, r)
	ok := x.send(w, rc)
	x.linger(rc)
	cancel()
	work.Wait()
	if !ok {
		panic(http.ErrAbortHandler)
	}
}

// under says whether the guest is reachable at a path.
func (p *Proxy) under(path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(p.options.Prefix, "/"))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '?')
}

// normalizePath takes dot segments and double slashes out of a path.
func normalizePath(path string) string {
	path, query, hasQuery := strings.Cut(path, "?")
	var kept []string
	segments := strings.Split(path, "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch strings.ReplaceAll(strings.ToLower(s), "%2e", ".") {
		case "":
		case ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, s)
			continue
		}
		if last {
			kept = append(kept, "") // the path ends in a slash
		}
	}
	path = "/" + strings.Join(kept, "/")
	if hasQuery {
		path += "?" + query
	}
	return path
}

// requestHeaders is the request as Envoy shows it to a guest.
func (p *Proxy) requestHeaders(r *http.Request) Headers {
	path := r.RequestURI
	if !strings.HasPrefix(path, "/") {
		path = r.URL.RequestURI()
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if p.options.Edge {
		path = normalizePath(path)
	}
	h := NewHeaders(":authority", r.Host, ":path", path, ":method", r.Method, ":scheme", scheme)
	for _, f := range headersFromHTTP(r.Header) {
		if p.options.Edge && (f.Name == "x-request-id" || strings.HasPrefix(f.Name, "x-envoy-")) {
			continue
		}
		h.Add(f.Name, f.Value)
	}
	if r.ContentLength > 0 {
		h.Set("content-length", strconv.FormatInt(r.ContentLength, 10))
	}
	h.Set("x-forwarded-proto", scheme)
	return h
}

// exchange is one request on its way. Three goroutines work on it: receive reads
// the client, carry talks to the upstream, and the handler's own writes to the
// client. None of them waits while it holds the worker.
type exchange struct {
	p         *Proxy
	s         *Stream
	ctx       context.Context
	cancel    context.CancelFunc
	down, up  *pipe
	unblocked chan struct{} // reading from the client may go on
	read      chan struct{} // closed when the client has been read
}

func (x *exchange) say(err error) {
	if x.p.options.Log != nil {
		x.p.options.Log(err)
	}
}

// open makes the stream.
func (x *exchange) open(r *http.Request) {
	w := x.p.host.pick()
	w.do(func() {
		s := w.newStream(x.down, x.up)
		s.source = r.RemoteAddr
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			s.destination = local.String()
		}
		s.onUnblock = func() {
			select {
			case x.unblocked <- struct{}{}:
			default:
			}
		}
		// A stream whose guest is dead may have no event to notice it by.
		s.onVMFailure = func() {
			go w.do(func() {
				if !s.destroyed {
					s.failed()
				}
			})
		}
		x.s = s
	})
}

// receive plays the client: headers, body and trailers, as they come.
func (x *exchange) receive(h Headers, r *http.Request) {
	defer close(x.read)
	s := x.s
	if _, ok := h.Lookup("x-request-id"); !ok {
		id, err := s.w.requestID()
		if err != nil {
			x.say(err)
		} else {
			h.Add("x-request-id", id)
		}
	}
	bodiless := r.Body == nil || r.Body == http.NoBody
	if err := s.RequestHeaders(h, bodiless); err != nil {
		x.say(err)
		return
	}
	if bodiless {
		return
	}
	for {
		buf := make([]byte, readBytes)
		n, err := r.Body.Read(buf)
		if n > 0 {
			x.playBody(buf[:n])
		}
		if err == nil {
			continue
		}
		if err != io.EOF {
			s.ClientLeaves()
			x.cancel() // what is on its way to the client is still tried
			return
		}
		if t := headersFromHTTP(r.Trailer); len(t) > 0 {
			err = s.RequestTrailers(t)
		} else {
			err = s.RequestBody(nil, true)
		}
		if err != io.EOF && err != nil {
			x.say(err)
		}
		return
	}
}

// playBody hands a piece of the request on, and waits while nothing more can be taken.
func (x *exchange) playBody(data []byte) {
	if err := x.s.RequestBody(data, false); err != nil {
		x.say(err)
		return
	}
	for x.s.RequestBlocked() {
		select {
		case <-x.unblocked:
		case <-x.ctx.Done():
			return
		}
	}
	x.ahead(x.up)
}

// ahead waits until a pipe has room, or the stream is over.
func (x *exchange) ahead(p *pipe) {
	for p.waiting() > aheadBytes && !x.s.Over() {
		select {
		case <-time.After(backpressure):
		case <-x.ctx.Done():
			return
		}
	}
}

// send writes what reaches the client. It returns false when the client's
// connection has to be cut.
func (x *exchange) send(w http.ResponseWriter, rc *http.ResponseController) bool {
	written := 0
	for {
		q, ok := x.down.next(x.ctx)
		if !ok {
			x.s.ClientLeaves()
			return false
		}
		switch {
		case q.reset:
			return false
		case q.headers != nil:
			x.writeHead(w, q.headers)
		case q.trailers != nil:
			for _, f := range q.trailers {
				w.Header().Add(http.TrailerPrefix+f.Name, f.Value)
			}
		}
		x.bound(rc)
		for _, b := range q.pieces {
			n, err := w.Write(b)
			if written += n; err != nil {
				if errors.Is(err, http.ErrContentLength) {
					x.say(fmt.Errorf("the answer's body is longer than its content-length: %w", err))
				}
				x.s.ClientLeaves()
				return false
			}
		}
		if q.end {
			x.checkLength(w, q, written)
			return true
		}
		if err := rc.Flush(); err != nil {
			x.s.ClientLeaves()
			return false
		}
	}
}

// bound gives a client that does not read as long as an idle stream has.
func (x *exchange) bound(rc *http.ResponseController) {
	if timeout := x.p.host.config.StreamIdleTimeout; timeout > 0 {
		if err := rc.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			x.say(err)
		}
	}
}

// checkLength tells of an answer that is shorter than it says; the server then
// cuts the connection.
func (x *exchange) checkLength(w http.ResponseWriter, last part, written int) {
	want, err := strconv.Atoi(w.Header().Get("content-length"))
	if err == nil && last.headers == nil && written != want {
		x.say(fmt.Errorf("the answer's body has %d bytes, its content-length says %d", written, want))
	}
}

// writeHead writes the status and the headers. An answer that comes before the
// request has ended is the connection's last, as with Envoy.
func (x *exchange) writeHead(w http.ResponseWriter, h Headers) {
	for _, f := range h {
		if !strings.HasPrefix(f.Name, ":") && !hopByHop[f.Name] {
			w.Header().Add(f.Name, f.Value)
		}
	}
	if _, ok := h.Lookup("content-type"); !ok {
		w.Header()["Content-Type"] = nil // or Go guesses one
	}
	select {
	case <-x.read:
	default:
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(statusOf(h))
}

// linger reads on for a moment when the client is still sending: cutting it
// off at once can make it lose the answer.
func (x *exchange) linger(rc *http.ResponseController) {
	select {
	case <-x.read:
		return
	default:
	}
	if err := rc.Flush(); err != nil {
		x.say(err)
	}
	if err := rc.SetReadDeadline(time.Now().Add(lingerFor)); err != nil {
		x.say(err)
		return
	}
	<-x.read
}

// carry talks to the upstream.
func (x *exchange) carry() {
	q, ok := x.up.next(x.ctx)
	if !ok || q.reset {
		return
	}
	// The part was sent after the cluster was chosen, which does not change.
	cluster := x.s.router.cluster
	if cluster.Transport == nil {
		x.say(fmt.Errorf("the cluster at %s has no Transport", cluster.address()))
		x.fails(ResetRefused)
		return
	}
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	body := &upstreamBody{up: x.up, ctx: ctx, cancel: cancel, trailer: http.Header{}}
	req, err := newRequest(ctx, cluster, q.headers, body)
	if err != nil {
		x.say(err)
		x.fails(ResetProtocolError)
		return
	}
	if q.end {
		req.Body, req.ContentLength = http.NoBody, 0
		body.ended()
	} else {
		req.Trailer = body.trailer
	}
	resp, err := cluster.Transport.RoundTrip(req)
	if err != nil {
		if ctx.Err() == nil {
			x.fails(resetOf(err))
		}
		return
	}
	defer resp.Body.Close()
	x.respond(resp)
}

// fails tells the stream that the upstream is gone.
func (x *exchange) fails(why Reset) {
	x.s.w.do(func() { x.s.upstreamFails(why) })
}

// respond plays the upstream's answer, as it comes.
func (x *exchange) respond(resp *http.Response) {
	s := x.s
	h := responseHeaders(resp)
	if len(resp.TransferEncoding) > 0 {
		h.Add("transfer-encoding", "chunked")
	}
	if h.Bytes() > x.p.host.config.HeaderBytesMax || len(h) > headersMax {
		x.fails(ResetOverflow)
		return
	}
	bodiless := resp.Body == http.NoBody || resp.ContentLength == 0
	if err := s.ResponseHeaders(h, bodiless); err != nil || bodiless {
		if err != nil {
			x.say(err)
		}
		return
	}
	for {
		buf := make([]byte, readBytes/2)
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if err := s.ResponseBody(buf[:n], false); err != nil {
				x.say(err)
				return
			}
			x.ahead(x.down)
		}
		switch {
		case err == nil:
			continue
		case err != io.EOF:
			if x.ctx.Err() == nil {
				x.fails(ResetProtocolError)
			}
			return
		}
		if t := headersFromHTTP(resp.Trailer); len(t) > 0 {
			err = s.ResponseTrailers(t)
		} else {
			err = s.ResponseBody(nil, true)
		}
		if err != nil {
			x.say(err)
		}
		return
	}
}

// upstreamBody is a request's body as a Transport reads it.
type upstreamBody struct {
	up      *pipe
	ctx     context.Context
	cancel  context.CancelFunc
	trailer http.Header

	mu   sync.Mutex
	rest [][]byte
	end  bool
}

// Read waits for the next bytes that the guest lets go.
func (b *upstreamBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.rest) == 0 {
		if b.end {
			return 0, io.EOF
		}
		q, ok := b.up.next(b.ctx)
		switch {
		case !ok:
			return 0, b.ctx.Err()
		case q.reset:
			b.cancel()
			return 0, errors.New("the request was given up")
		}
		for _, f := range q.trailers {
			b.trailer.Add(f.Name, f.Value)
		}
		b.rest = q.pieces
		if q.end {
			b.ended()
		}
	}
	n := copy(p, b.rest[0])
	if b.rest[0] = b.rest[0][n:]; len(b.rest[0]) == 0 {
		b.rest = b.rest[1:]
	}
	return n, nil
}

// ended notes that no more bytes come, and watches for a request that is given
// up after that.
func (b *upstreamBody) ended() {
	b.end = true
	go func() {
		if q, ok := b.up.next(b.ctx); ok && q.reset {
			b.cancel()
		}
	}()
}

// Close is part of io.ReadCloser.
func (b *upstreamBody) Close() error { return nil }

// requestID makes a random UUID.
func (w *worker) requestID() (string, error) {
	var b [16]byte
	var err error
	w.do(func() { _, err = io.ReadFull(w.random, b[:]) })
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), err
}
