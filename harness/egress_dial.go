package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// notPublic are the networks that no download reaches: the special-purpose blocks
// of IANA's registries for both families, multicast, and a public number with a
// private service behind it. Of IPv6 only 2000::/3 is given to the public, so the
// list begins with everything else. envoy.yaml has the same list.
var notPublic = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host agent
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/3"), // loopback, mapped and compatible IPv4, NAT64
	netip.MustParsePrefix("4000::/2"),
	netip.MustParsePrefix("8000::/1"),      // unique local, link local, multicast
	netip.MustParsePrefix("2001::/23"),     // Teredo, ORCHID, benchmarking
	netip.MustParsePrefix("2001:db8::/32"), // documentation
	netip.MustParsePrefix("2002::/16"),     // 6to4
	netip.MustParsePrefix("3fff::/20"),     // documentation
}

// reachable says whether a download may connect to an address. One with a zone
// belongs to a link of this machine, and no prefix matches it.
func (e *Egress) reachable(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	for _, p := range e.o.Allow {
		if p.Contains(a) {
			return true
		}
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// resolve returns the addresses that a target may be reached at: at least one.
// Nothing else is ever connected to.
func (e *Egress) resolve(ctx context.Context, t *target) ([]netip.AddrPort, error) {
	found := []netip.Addr{t.literal}
	if !t.literal.IsValid() {
		var err error
		if found, err = e.lookUp(ctx, t.host); err != nil {
			return nil, err
		}
	}
	var out []netip.AddrPort
	for _, a := range found {
		if e.reachable(a) && len(out) < imageAddressesMax {
			out = append(out, netip.AddrPortFrom(a, t.port))
		}
	}
	if len(out) == 0 {
		return nil, errDenied
	}
	return interleave(out), nil
}

// loopback is what localhost means (RFC 6761, section 6.3). No resolver is asked:
// Go's does not find a name of one label in the hosts file behind its dot.
var loopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// lookUp asks the resolver for a name. The dot at its end keeps search domains
// out: a name means the same on every machine.
func (e *Egress) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return loopback, nil
	}
	ctx, stop := withTimeout(ctx, e.o.Clock, imageLookupTimeout, errLookupTime)
	defer stop()
	found, err := e.o.Resolver.LookupNetIP(ctx, "ip", host+".")
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil && len(found) == 0:
		return nil, errNoName
	case err == nil:
	case errors.As(err, &dns) && dns.IsNotFound:
		return nil, errNoName
	case errors.As(err, &dns) && dns.IsTimeout:
		return nil, errLookupTime
	default:
		return nil, errNoLookup
	}
	// A resolver may give an IPv4 address in its mapped form. It is checked as the
	// address that it is connected to. The slice may be the resolver's own.
	out := make([]netip.Addr, len(found))
	for i, a := range found {
		out[i] = a.Unmap()
	}
	return out, nil
}

// interleave brings addresses into the order in which they are tried: the
// families by turns, the first one's first (RFC 8305, section 4).
func interleave(addresses []netip.AddrPort) []netip.AddrPort {
	var first, second []netip.AddrPort
	for _, a := range addresses {
		if a.Addr().Is4() == addresses[0].Addr().Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	out := addresses[:0:0]
	for len(first) > 0 || len(second) > 0 {
		if len(first) > 0 {
			out, first = append(out, first[0]), first[1:]
		}
		if len(second) > 0 {
			out, second = append(out, second[0]), second[1:]
		}
	}
	return out
}

// connect opens a connection to one of the addresses, with TLS for https.
func (e *Egress) connect(ctx context.Context, t *target, addresses []netip.AddrPort) (net.Conn, error) {
	ctx, stop := withTimeout(ctx, e.o.Clock, imageConnectTimeout, errConnectTime)
	defer stop()
	conn, err := e.race(ctx, addresses)
	if err == nil && t.https {
		// The certificate must be made out to the host of the URL. crypto/tls
		// sends no server name for an address.
		secure := tls.Client(conn, &tls.Config{ServerName: t.host, RootCAs: e.o.Roots})
		if err = secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			err = errTLS
		} else {
			conn = secure
		}
	}
	if err == nil {
		return conn, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, err
}

// attempt is how one connection went.
type attempt struct {
	conn net.Conn
	err  error
}

// race connects to the first address that answers. The next one is tried when
// one has failed, or has not answered for a moment (RFC 8305, section 5).
func (e *Egress) race(ctx context.Context, addresses []netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	attempts := make(chan attempt, len(addresses))
	slow := make(chan struct{}, len(addresses))
	started, ended := 0, 0
	stopDelay := func() bool { return true }
	start := func() {
		stopDelay()
		to := addresses[started]
		started++
		go func() {
			conn, err := e.dial(ctx, to)
			attempts <- attempt{conn, err}
		}()
		if started < len(addresses) {
			stopDelay = e.o.Clock.AfterFunc(imageAttemptDelay, func() { slow <- struct{}{} })
		}
	}
	defer func() {
		stopDelay()
		go closeLate(attempts, started-ended)
	}()
	start()
	for {
		select {
		case a := <-attempts:
			ended++
			switch {
			case a.err == nil:
				return a.conn, nil
			case started < len(addresses):
				start()
			case ended == len(addresses):
				return nil, connectFault(a.err)
			}
		case <-slow:
			if started < len(addresses) {
				start()
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// closeLate closes connections that came after another one was taken.
func closeLate(attempts <-chan attempt, count int) {
	for range count {
		if a := <-attempts; a.err == nil {
			a.conn.Close()
		}
	}
}

// connectFault is the fault of the last address that was tried.
func connectFault(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return errRefused
	}
	return errNoConnection
}

// dialTCP connects to an address and to nothing else.
func dialTCP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	conn, err := new(net.Dialer).DialTCP(ctx, "tcp", netip.AddrPort{}, to)
	if err != nil {
		return nil, err // not a nil *TCPConn in a net.Conn
	}
	return conn, nil
}
