package harness

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// router is Envoy's router filter, which comes behind the guest: it picks the
// cluster, keeps the time and answers when there is no upstream to do it.
type router struct {
	started       bool // a request has gone upstream
	requestEnded  bool
	responseBegan bool
	responseEnded bool
	reset         bool // the upstream request was given up
	cluster       *Cluster
	timeout       time.Duration
	stopTimeout   func() bool
	failure       string // upstream.transport_failure_reason
}

// timeoutHeader is what a request bounds its upstream time with, in
// milliseconds; 0 is no bound.
const timeoutHeader = "x-envoy-upstream-rq-timeout-ms"

func (r *router) stop() {
	if r.stopTimeout != nil {
		r.stopTimeout()
		r.stopTimeout = nil
	}
}

// currentRoute is the route of the request's headers. It is picked before the
// guest sees them, and again by the router, or for a local reply, when the guest
// has changed them or called clear_route_cache.
func (s *Stream) currentRoute() *Route {
	if s.stale {
		s.route, s.stale = s.pickRoute(), false
	}
	return s.route
}

func (s *Stream) pickRoute() *Route {
	h := s.request.headers
	if h == nil || h.Get("x-forwarded-proto") == "" {
		return nil // Envoy routes no request without it
	}
	path, ok := h.Lookup(":path")
	if !ok {
		return nil
	}
	for i := range s.w.host.config.Routes {
		r := &s.w.host.config.Routes[i]
		if r.Match != nil && r.Match(*h) || r.Match == nil && strings.HasPrefix(path, r.Prefix) {
			return r
		}
	}
	return nil
}

// routeHeaders takes the request's headers from the guest.
func (s *Stream) routeHeaders(end bool) {
	if s.destroyed {
		return
	}
	route := s.currentRoute()
	if route == nil {
		s.sendLocalReply(404, nil, nil, "route_not_found")
		return
	}
	if route.DirectStatus != 0 {
		s.sendLocalReply(route.DirectStatus, nil, nil, "direct_response")
		return
	}
	cluster, ok := s.w.host.config.Clusters[route.Cluster]
	if !ok {
		s.sendLocalReply(503, nil, nil, "cluster_not_found")
		return
	}
	if cluster.Empty {
		s.sendLocalReply(503, []byte("no healthy upstream"), nil, "no_healthy_upstream")
		return
	}
	r := &s.router
	r.cluster = &cluster
	s.rewrite(route)
	if cluster.Refuses {
		s.upstreamFails(ResetRefused)
		return
	}
	if fault := requestFault(*s.request.headers); fault != "" {
		s.sendLocalReply(503, []byte(fault), nil,
			"filter_removed_required_request_headers{"+strings.ReplaceAll(fault, " ", "_")+"}")
		return
	}
	r.started = true
	s.up.headers(s.request.headers.Clone(), end)
	s.requestEnds(end)
}

// rewrite changes the headers that are for the router, or changed by it.
func (s *Stream) rewrite(route *Route) {
	h := s.request.headers
	s.router.timeout = route.Timeout
	if ms, err := strconv.ParseUint(h.Get(timeoutHeader), 10, 32); err == nil {
		s.router.timeout = time.Duration(ms) * time.Millisecond
	}
	h.Remove(timeoutHeader)
	if path := h.Get(":path"); route.PrefixRewrite != "" && strings.HasPrefix(path, route.Prefix) {
		rest := strings.TrimPrefix(path, route.Prefix)
		for i := range *h {
			if (*h)[i].Name == ":path" {
				(*h)[i].Value = route.PrefixRewrite + rest
			}
		}
	}
}

// requestFault is what Envoy's codec finds wrong with a request, or "".
func requestFault(h Headers) string {
	for _, name := range []string{":method", ":path"} {
		if _, ok := h.Lookup(name); !ok {
			return "missing required header: " + name
		}
	}
	for _, f := range h {
		if !validName(f.Name) {
			return "invalid header name: " + f.Name
		}
		if strings.ContainsAny(f.Value, "\r\n\x00") {
			return "invalid header value for: " + f.Name
		}
	}
	return ""
}

// validName says whether a name is a token, with a colon before it or not.
func validName(name string) bool {
	name = strings.TrimPrefix(name, ":")
	if name == "" {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return true
}

// routeData takes a piece of the request's body from the guest.
func (s *Stream) routeData(pieces [][]byte, end bool) {
	r := &s.router
	if s.destroyed || !r.started || r.requestEnded || r.reset {
		return
	}
	s.up.data(pieces, end)
	s.requestEnds(end)
}

// routeTrailers takes the request's trailers from the guest.
func (s *Stream) routeTrailers() {
	r := &s.router
	if s.destroyed || !r.started || r.requestEnded || r.reset {
		return
	}
	s.up.trailers(s.request.trailers.Clone())
	s.requestEnds(true)
}

// requestEnds starts the upstream's time once it has the whole request.
func (s *Stream) requestEnds(end bool) {
	r := &s.router
	if !end || r.requestEnded || s.destroyed {
		return
	}
	r.requestEnded = true
	if r.timeout > 0 {
		r.stopTimeout = s.w.host.config.Clock.AfterFunc(r.timeout, func() { s.w.do(s.upstreamTimesOut) })
	}
}

// upstreamTimesOut ends a request that took too long.
func (s *Stream) upstreamTimesOut() {
	r := &s.router
	if s.destroyed || r.responseEnded {
		return
	}
	s.giveUp()
	s.sendLocalReply(504, []byte("upstream request timeout"), nil, "response_timeout")
}

// giveUp resets the upstream request.
func (s *Stream) giveUp() {
	r := &s.router
	r.stop()
	if r.started && !r.reset && !(r.requestEnded && r.responseEnded) {
		r.reset = true
		s.up.reset()
	}
	r.responseEnded = true
}

// Reset says why an upstream request came to nothing.
type Reset int

// The reasons, with Envoy's words for them.
const (
	ResetTermination   Reset = iota // the connection ended before or in the response
	ResetRefused                    // there was no connection
	ResetProtocolError              // what came is not HTTP, or is cut
	ResetOverflow                   // the response is past a limit
)

func (r Reset) text() (reason, transport string) {
	switch r {
	case ResetRefused:
		return "remote connection failure", "delayed connect error: Connection refused"
	case ResetProtocolError:
		return "protocol error", ""
	case ResetOverflow:
		return "overflow", ""
	}
	return "connection termination", ""
}

// upstreamFails ends a request whose upstream is gone.
func (s *Stream) upstreamFails(why Reset) {
	r := &s.router
	if s.destroyed || r.responseEnded {
		return
	}
	code, details := 503, "upstream_reset_before_response_started"
	if r.responseBegan {
		code, details, why = 502, "upstream_reset_after_response_started", ResetProtocolError
	}
	reason, transport := why.text()
	r.reset, r.responseEnded, r.failure = true, true, transport
	r.stop()
	inner := strings.ReplaceAll(reason, " ", "_")
	if transport != "" {
		inner += "|" + strings.ReplaceAll(transport, " ", "_")
	}
	s.sendLocalReply(code, []byte(resetBody(why)), nil, fmt.Sprintf("%s{%s}", details, inner))
}

// resetBody is the plain text of Envoy's own 503 for a reset.
func resetBody(why Reset) string {
	reason, _ := why.text()
	return "upstream connect error or disconnect/reset before headers. reset reason: " + reason
}

// upstreamHeaders takes the upstream's response headers.
func (s *Stream) upstreamHeaders(h Headers, end bool) {
	r := &s.router
	r.responseBegan = true
	s.setDetails("via_upstream")
	s.code = statusOf(h)
	s.response.headers = &h
	s.upstreamEnds(end)
	s.response.complete = end
	s.response.inHeaders(end)
}

// upstreamEnds notes the end of the upstream's response. A request that has not
// ended is given up with it.
func (s *Stream) upstreamEnds(end bool) {
	if !end {
		return
	}
	r := &s.router
	r.stop()
	r.responseEnded = true
	if !r.requestEnded && !r.reset {
		r.reset = true
		s.up.reset()
	}
}

func (s *Stream) upstreamData(b *bodyBuffer, end bool) {
	s.upstreamEnds(end)
	s.response.complete = end
	s.response.inData(b, end)
}

func (s *Stream) upstreamTrailers(t Headers) {
	s.upstreamEnds(true)
	s.response.trailers = &t
	s.response.complete = true
	s.response.inTrailers()
}
