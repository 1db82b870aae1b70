package harness

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
)

// Egress answers the callouts with which a guest downloads images, as the egress
// listener of envoy.yaml does: from public addresses only, within bounds of size
// and time, and with nothing of the client in the request (contract, "Images and
// PDFs": "The host must be a public address"; decisions 26 and 27). Set it as the
// Egress of the clusters that the callouts go to.
//
// A name is looked up once for each download, every address that is not public is
// taken out of the answer, and connections are made to the addresses that are
// left and to nothing else. So an answer that changes, or that mixes public and
// private addresses, gains nothing.
//
// The callout names the target in :authority and :path, and in x-image-scheme
// whether it is http or https. What the server sees is host and the callout's
// headers, without those that begin with x-. No proxy of the environment is used,
// no redirect followed, no cookie kept, and no connection used twice.
//
// The guest gets the server's answer, or one of the egress's own with Envoy's
// status and, in x-egress-details, Envoy's response code details:
//
//	400 http….…, path_normalization_failed            no host or path that could be sent
//	404 absolute_path_rejected, route_not_found       a path that is a URL; no scheme
//	431 http1.headers_too_large
//	500 response_payload_too_large                    a body of more than 10 MiB
//	502 upstream_reset_before_response_started{protocol_error}
//	502 upstream_reset_after_response_started{…}      the answer broke off
//	503 upstream_reset_before_response_started{…}     no connection in 5 s, no TLS, or no answer
//	503 dns_resolution_failure{address_denied}        no public address
//	503 dns_resolution_failure{…}                     no address, or none in 5 s
//	504 response_timeout                              15 s are over
//
// Past DownloadsMax or BufferBytesMax it is Envoy's 503 of a cluster that is
// full, with x-envoy-overloaded and without details.
//
// An Egress is safe for concurrent use.
type Egress struct {
	o EgressOptions
	// dial connects to an address; tests take its place.
	dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)

	downloads atomic.Int64 // under way
	buffered  atomic.Int64 // bytes of bodies
}

// EgressOptions are how an Egress is set up. The zero value reaches public
// addresses only, by the machine's resolver and certificate authorities.
type EgressOptions struct {
	// Resolver looks names up; default net.DefaultResolver.
	Resolver Resolver
	// Allow are networks whose addresses may be reached although they are not
	// public: for tests, and for labs whose images have private addresses.
	Allow []netip.Prefix
	// Roots are the authorities of servers' certificates; default the system's.
	Roots *x509.CertPool
	// DownloadsMax is the number of downloads at once; default 1,024, as Envoy's
	// circuit breakers have it.
	DownloadsMax int
	// BufferBytesMax bounds the bytes of all bodies that are being read or wait
	// for their guest; default 512 MiB.
	BufferBytesMax int
	// Clock is the time for all deadlines; default RealClock.
	Clock Clock
	// Log takes each download that has ended. It runs on the download's own
	// goroutine.
	Log func(Download)
}

// Resolver is what an Egress needs of net.Resolver.
type Resolver interface {
	// LookupNetIP returns the addresses of a host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Download is one download for the log. Path and query are left out: they may
// hold keys.
type Download struct {
	// Authority is the host as the guest named it, which may be any text.
	Authority string
	// Status is the answer's. Details are the egress's, "" for a server's answer.
	Status  int
	Details string
	// Address is where the connection led; the zero value when there was none.
	Address  netip.AddrPort
	Bytes    int // of the body
	Duration time.Duration
}

// Limits of a download, those of envoy.yaml where it has them.
const (
	imageBytesMax        = 10 << 20 // contract: "10 MB per image"
	imageTimeout         = 15 * time.Second
	imageLookupTimeout   = 5 * time.Second
	imageConnectTimeout  = 5 * time.Second // the TLS handshake included
	imageAttemptDelay    = 300 * time.Millisecond
	imageAddressesMax    = 16 // of one name that are tried
	imageHeaderLinesMax  = 100
	downloadsDefault     = 1024
	bufferedBytesDefault = 512 << 20
)

// Headers between a guest and its egress.
const (
	imageSchemeHeader   = "x-image-scheme"
	egressDetailsHeader = "x-egress-details"
	egressFlagsHeader   = "x-egress-flags"
	serviceTimeHeader   = "x-envoy-upstream-service-time"
	overloadedHeader    = "x-envoy-overloaded"
)

// NewEgress returns an egress.
func NewEgress(o EgressOptions) *Egress {
	orDefault(&o.DownloadsMax, downloadsDefault)
	orDefault(&o.BufferBytesMax, bufferedBytesDefault)
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Clock == nil {
		o.Clock = RealClock()
	}
	return &Egress{o: o, dial: dialTCP}
}

// egressFault is an error that becomes a reply of the egress's own.
type egressFault struct {
	status        int
	body, details string
}

func (f *egressFault) Error() string { return f.details }

// Envoy's words for what a download ends with.
var (
	errNoRoute      = &egressFault{404, "", "route_not_found"}
	errAbsolutePath = &egressFault{404, "", "absolute_path_rejected"}
	errBadRequest   = &egressFault{400, "Bad Request", "http1.codec_error"}
	errBadAuthority = &egressFault{400, "", "http.invalid_authority"}
	errFragment     = &egressFault{400, "", "path_normalization_failed"}
	errLongRequest  = &egressFault{431, "Request Header Fields Too Large", "http1.headers_too_large"}
	errDenied       = lookupFault("address_denied")
	errBadName      = lookupFault("cares_failure:Misformatted_domain_name")
	errNoName       = lookupFault("cares_norecords:Domain_name_not_found")
	errNoLookup     = lookupFault("cares_failure:DNS_server_returned_general_failure")
	errLookupTime   = lookupFault("resolve_timeout")
	errRefused      = resetFault(ResetRefused, "remote_connection_failure|delayed_connect_error:_Connection_refused")
	errNoConnection = resetFault(ResetRefused, "remote_connection_failure")
	errConnectTime  = resetFault(ResetRefused, "connection_timeout")
	errTLS          = resetFault(ResetRefused, "remote_connection_failure|TLS_error")
	errClosed       = resetFault(ResetTermination, "connection_termination")
	errNotHTTP      = &egressFault{502, resetBody(ResetProtocolError), "upstream_reset_before_response_started{protocol_error}"}
	errBrokenOff    = &egressFault{502, resetBody(ResetProtocolError), "upstream_reset_after_response_started{protocol_error}"}
	errTooLarge     = &egressFault{500, "Internal Server Error", "response_payload_too_large"}
	errImageTime    = &egressFault{504, "upstream request timeout", "response_timeout"}
	// It has no details, because the callout's cluster says it.
	errOverloaded = &egressFault{503, resetBody(ResetOverflow), ""}
)

func lookupFault(why string) *egressFault {
	return &egressFault{503, "DNS resolution failure", "dns_resolution_failure{" + why + "}"}
}

func resetFault(reset Reset, why string) *egressFault {
	return &egressFault{503, resetBody(reset), "upstream_reset_before_response_started{" + why + "}"}
}

// download is one download on its way.
type download struct {
	e        *Egress
	target   target
	address  netip.AddrPort // where the connection leads
	reserved int            // bytes of the egress's total
}

// carry downloads what a callout asks for and delivers the answer. It holds the
// answer's bytes in the egress's total until the guest has taken them.
func (e *Egress) carry(ctx context.Context, h Headers, deliver func(*calloutAnswer)) {
	began := e.o.Clock.Now()
	ctx, stop := withTimeout(ctx, e.o.Clock, imageTimeout, errImageTime)
	defer stop()
	d := &download{e: e}
	defer func() { e.buffered.Add(-int64(d.reserved)) }()
	a, err := d.run(ctx, h)
	if context.Cause(ctx) == context.Canceled {
		return // the callout is over, nobody waits
	}
	if err != nil {
		a = faultAnswer(err)
	}
	took := e.o.Clock.Now().Sub(began)
	if !isOwn(err) {
		// Envoy's cluster adds it to whatever comes out of the egress listener. A
		// guest knows by it that the answer is not the callout's own.
		a.headers.Set(serviceTimeHeader, strconv.FormatInt(took.Milliseconds(), 10))
	}
	if e.o.Log != nil {
		e.o.Log(Download{
			Authority: h.Get(":authority"), Status: statusOf(a.headers), Details: a.headers.Get(egressDetailsHeader),
			Address: d.address, Bytes: len(a.body), Duration: took,
		})
	}
	deliver(a)
}

// run makes the download.
func (d *download) run(ctx context.Context, h Headers) (*calloutAnswer, error) {
	e := d.e
	defer e.downloads.Add(-1)
	if e.downloads.Add(1) > int64(e.o.DownloadsMax) {
		return nil, errOverloaded
	}
	var err error
	if d.target, err = readTarget(h); err != nil {
		return nil, err
	}
	addresses, err := e.resolve(ctx, &d.target)
	if err != nil {
		return nil, err
	}
	conn, err := e.connect(ctx, &d.target, addresses)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// Whatever waits for the server ends with the context.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if to, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		d.address = to.AddrPort()
	}
	a, err := d.exchange(conn, h)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return a, err
}

// isOwn says whether an error is of the callout itself: it has not come as far
// as the egress.
func isOwn(err error) bool {
	var fault *egressFault
	return errors.As(err, &fault) && fault.details == ""
}

// faultAnswer is the reply for an error.
func faultAnswer(err error) *calloutAnswer {
	var fault *egressFault
	if !errors.As(err, &fault) {
		fault = errClosed
	}
	a := ownAnswer(fault.status, fault.body)
	switch {
	case fault == errOverloaded:
		a.headers.Add(overloadedHeader, "true")
	case !isOwn(err):
		a.headers.Add(egressDetailsHeader, fault.details)
	}
	return a
}

// withTimeout is context.WithTimeoutCause by a clock of ours.
func withTimeout(ctx context.Context, clock Clock, d time.Duration, cause error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := clock.AfterFunc(d, func() { cancel(cause) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
