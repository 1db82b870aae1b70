package harness

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ezat.io/chat-completions/translate"
)

// In these tests 127.0.0.1 plays the public network and 127.0.0.2 a private one. No
// connection leaves the machine: every dial goes through recordDials.

var (
	publicHost  = netip.MustParseAddr("127.0.0.1")
	privateHost = netip.MustParseAddr("127.0.0.2")
)

// egressPatience bounds what a test waits for.
const egressPatience = 30 * time.Second

// names is a resolver that knows some names.
type names map[string][]netip.Addr

func (n names) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	if network != "ip" {
		return nil, errors.New("another network was asked for: " + network)
	}
	if addresses, ok := n[host]; ok {
		return addresses, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// testEgress is an egress to 127.0.0.1, with what it has dialled and logged.
type testEgress struct {
	*Egress
	mu     sync.Mutex
	dialed []netip.AddrPort
	log    []Download
}

func newTestEgress(t *testing.T, change func(*EgressOptions)) *testEgress {
	x := &testEgress{}
	o := EgressOptions{
		Resolver: names{"image.test.": {publicHost}},
		Allow:    []netip.Prefix{netip.PrefixFrom(publicHost, 32)},
		Log: func(d Download) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.log = append(x.log, d)
		},
	}
	if change != nil {
		change(&o)
	}
	x.Egress = NewEgress(o)
	dial := x.dial
	x.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		x.mu.Lock()
		x.dialed = append(x.dialed, to)
		x.mu.Unlock()
		if !to.Addr().IsLoopback() {
			return nil, syscall.ENETUNREACH
		}
		return dial(ctx, to)
	}
	t.Cleanup(func() {
		// Nothing is left of any download.
		wantSoon(t, func() bool { return x.downloads.Load() == 0 && x.buffered.Load() == 0 })
	})
	return x
}

// dials are the addresses that have been connected to so far.
func (x *testEgress) dials() []netip.AddrPort {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.dialed)
}

// fetch makes one download.
func (x *testEgress) fetch(t *testing.T, scheme, authority, path string, more ...string) *calloutAnswer {
	t.Helper()
	h := NewHeaders(append([]string{":method", "GET", ":path", path, ":authority", authority, imageSchemeHeader, scheme}, more...)...)
	var got *calloutAnswer
	x.carry(t.Context(), h, func(a *calloutAnswer) { got = a })
	if got == nil {
		t.Fatal("there is no answer")
	}
	return got
}

// outcome is an answer in short: its status, and the details of the egress's own.
func (a *calloutAnswer) outcome() string {
	return strings.TrimSpace(a.headers.Get(":status") + " " + a.headers.Get(egressDetailsHeader))
}

func wantOutcome(t *testing.T, a *calloutAnswer, want string) {
	t.Helper()
	if got := a.outcome(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// listen serves each connection to a loopback address and returns the port.
func listen(t *testing.T, on netip.Addr, serve func(net.Conn)) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(on, 0).String())
	want(t, err)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		want(t, l.Close())
		work.Wait()
	})
	_, port, err = net.SplitHostPort(l.Addr().String())
	want(t, err)
	return port
}

// readRequest reads the head of a request as it came.
func readRequest(c net.Conn) string {
	var head strings.Builder
	for r := bufio.NewReader(c); !strings.HasSuffix(head.String(), "\r\n\r\n"); {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil {
			break
		}
	}
	return head.String()
}

// answering serves one text and closes.
func answering(text string) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, text) // an egress that has seen enough closes
	}
}

// hangUp waits until the other side has closed.
func hangUp(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// TestEgressRequest shows what a server sees, and what of its answer the guest gets.
func TestEgressRequest(t *testing.T) {
	seen := make(chan string, 1)
	port := listen(t, publicHost, func(c net.Conn) {
		seen <- readRequest(c)
		_, err := io.WriteString(c, "HTTP/1.1 200 Fine\r\nContent-Type: image/png\r\nContent-Length: 5\r\nServer: s\r\n"+
			"Set-Cookie: a=b\r\nX-Egress-Details: address_denied\r\nx-egress-flags: XX\r\nx-envoy-upstream-service-time: soon\r\n"+
			"Connection: keep-alive\r\n\r\nimage and more")
		if err != nil {
			t.Error(err)
		}
		hangUp(c)
	})
	t.Setenv("HTTP_PROXY", "http://127.0.0.2:1")
	x := newTestEgress(t, nil)
	a := x.fetch(t, "http", "image.test:"+port, "/a//b/../c%zz%41?q=a|b", ":scheme", "http",
		"accept", "image/png", "x-secret", "s", "user-agent", "test", "x-envoy-retry-on", "5xx", "connection", "close", "cookie", "c")
	want := "GET /a//b/../c%zz%41?q=a|b HTTP/1.1\r\nhost: image.test:" + port + "\r\naccept: image/png\r\nuser-agent: test\r\ncookie: c\r\n\r\n"
	if got := <-seen; got != want {
		t.Errorf("the server saw %q, want %q", got, want)
	}
	if string(a.body) != "image" {
		t.Errorf("the body is %q", a.body)
	}
	took := a.headers.Get(serviceTimeHeader)
	if _, err := strconv.Atoi(took); err != nil {
		t.Errorf("%s is %q", serviceTimeHeader, took)
	}
	a.headers.Remove(serviceTimeHeader)
	if got, want := a.headers.String(), ":status: 200\ncontent-length: 5\ncontent-type: image/png\nserver: s\n"; got != want {
		t.Errorf("the guest got %q, want %q", got, want)
	}
	if len(x.log) != 1 || x.log[0].Authority != "image.test:"+port || x.log[0].Status != 200 || x.log[0].Details != "" ||
		x.log[0].Address.String() != "127.0.0.1:"+port || x.log[0].Bytes != 5 || x.log[0].Duration < 0 {
		t.Errorf("the log has %+v", x.log)
	}
}

// serverCases are servers of all kinds, and what a download from them ends with: the
// status, and the details of Envoy's own replies. All were tried on Envoy 1.40.
var serverCases = map[string]struct {
	serve func(net.Conn)
	want  string
	body  int // bytes of an answer with status 200
}{
	"with length":            {answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nimage"), "200", 5},
	"chunked":                {answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nim\r\n3\r\nage\r\n0\r\n\r\n"), "200", 5},
	"chunked, with trailers": {answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nimage\r\n0\r\nA: b\r\n\r\n"), "200", 5},
	"to the end":             {answering("HTTP/1.1 200 OK\r\n\r\nimage"), "200", 5},
	"HTTP/1.0":               {answering("HTTP/1.0 200 OK\r\n\r\nimage"), "200", 5},
	"HTTP/2 by name":         {answering("HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nimage"), "200", 5},
	"empty":                  {answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "200", 0},
	"longer than it says":    {answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nimage and more"), "200", 5},
	"announced":              {answering("HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nimage"), "200", 5},
	"redirect":               {answering("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2/\r\nContent-Length: 0\r\n\r\n"), "302", 0},
	"no content":             {answering("HTTP/1.1 204 No Content\r\n\r\n"), "204", 0},
	"not found":              {answering("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"), "404", 0},
	"its own 503":            {answering("HTTP/1.1 503 Busy\r\nContent-Length: 23\r\n\r\nDNS resolution failure\n"), "503", 0},
	"its own 504":            {answering("HTTP/1.1 504 Late\r\nContent-Length: 0\r\n\r\n"), "504", 0},
	"another protocol":       {answering("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nimage"), "101", 0},
	"the largest":            {sized(imageBytesMax, true), "200", imageBytesMax},
	"the largest, chunked":   {sized(imageBytesMax, false), "200", imageBytesMax},

	"too large":                  {sized(imageBytesMax+1, true), "500 response_payload_too_large", 0},
	"too large, chunked":         {sized(imageBytesMax+1, false), "500 response_payload_too_large", 0},
	"endless":                    {sized(1<<40, false), "500 response_payload_too_large", 0},
	"an error that is too large": {answering("HTTP/1.1 404 No\r\n\r\n" + strings.Repeat("x", imageBytesMax+1)), "500 response_payload_too_large", 0},
	"closed":                     {answering(""), "503 upstream_reset_before_response_started{connection_termination}", 0},
	"closed in the headers":      {answering("HTTP/1.1 200 OK\r\nContent-"), "502 upstream_reset_before_response_started{protocol_error}", 0},
	"reset in the headers":       {reset("HTTP/1.1 200 OK\r\nContent-"), "502 upstream_reset_before_response_started{protocol_error}", 0},
	"reset":                      {reset(""), "503 upstream_reset_before_response_started{connection_termination}", 0},
	"reset in the body":          {reset("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nimage"), "502 upstream_reset_after_response_started{protocol_error}", 0},
	"shorter than it says":       {answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nimage"), "502 upstream_reset_after_response_started{protocol_error}", 0},
	"chunked without an end":     {answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nimage\r\n"), "502 upstream_reset_after_response_started{protocol_error}", 0},
	"broken chunks":              {answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nimage\r\n"), "502 upstream_reset_after_response_started{protocol_error}", 0},
	"not HTTP":                   {answering("220 mail.test ESMTP\r\n\r\n"), "502 upstream_reset_before_response_started{protocol_error}", 0},
	"two lengths":                {answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nimage!"), "502 upstream_reset_before_response_started{protocol_error}", 0},
	"a bad length":               {answering("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nimage"), "502 upstream_reset_before_response_started{protocol_error}", 0},
	"a bad header name":          {answering("HTTP/1.1 200 OK\r\nA b: c\r\nContent-Length: 0\r\n\r\n"), "502 upstream_reset_before_response_started{protocol_error}", 0},
	"a bad header value":         {answering("HTTP/1.1 200 OK\r\nA: b\x00c\r\nContent-Length: 0\r\n\r\n"), "502 upstream_reset_before_response_started{protocol_error}", 0},
	"200 kB of headers":          {answering("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 200_000) + "\r\n\r\n"), "502 upstream_reset_before_response_started{protocol_error}", 0},
	"too many headers":           {answering("HTTP/1.1 200 OK\r\n" + strings.Repeat("a: b\r\n", 200) + "\r\n"), "502 upstream_reset_before_response_started{protocol_error}", 0},
}

// sized serves a body of a size, with its length or in chunks.
func sized(bytes int, length bool) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		w := bufio.NewWriter(c)
		chunk := strings.Repeat("x", 1<<16)
		if length {
			fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", bytes)
		} else {
			fmt.Fprint(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		}
		for left := bytes; left > 0; {
			n := min(left, len(chunk))
			left -= n
			var err error
			if length {
				_, err = w.WriteString(chunk[:n])
			} else {
				_, err = fmt.Fprintf(w, "%x\r\n%s\r\n", n, chunk[:n])
			}
			if err != nil {
				return // the egress has seen enough
			}
		}
		if !length {
			fmt.Fprint(w, "0\r\n\r\n")
		}
		_ = w.Flush()
	}
}

// reset serves a text and then resets the connection.
func reset(text string) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, text)
		if text != "" {
			time.Sleep(50 * time.Millisecond) // the text is to arrive, or it is lost with the reset
		}
		_ = c.(*net.TCPConn).SetLinger(0)
	}
}

// TestEgressServers downloads from servers of all kinds.
func TestEgressServers(t *testing.T) {
	for name, test := range serverCases {
		t.Run(name, func(t *testing.T) {
			port := listen(t, publicHost, test.serve)
			a := newTestEgress(t, nil).fetch(t, "http", "image.test:"+port, "/")
			wantOutcome(t, a, test.want)
			if len(a.body) != test.body && a.headers.Get(":status") == "200" {
				t.Errorf("the body has %d bytes, want %d", len(a.body), test.body)
			}
			if strings.HasPrefix(test.want, "101") && len(a.body) > 0 {
				t.Errorf("the body is %q", a.body)
			}
			if a.headers.Get(serviceTimeHeader) == "" {
				t.Error("the guest would take the answer for the callout's own")
			}
			if strings.HasPrefix(test.want, "302") && a.headers.Get("location") != "http://127.0.0.2/" {
				t.Errorf("the redirect is gone: %v", a.headers)
			}
		})
	}
}

// TestEgressAddresses tries names and addresses that lead to private places: none of
// them is ever dialled.
func TestEgressAddresses(t *testing.T) {
	served := listen(t, publicHost, answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nimage"))
	dead := closedPort(t, publicHost)
	at := netip.MustParseAddr
	const denied = "503 dns_resolution_failure{address_denied}"
	const refused = "503 upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}"
	for name, test := range map[string]struct {
		addresses []netip.Addr
		port      string
		want      string
	}{
		"public":                         {[]netip.Addr{publicHost}, served, "200"},
		"private":                        {[]netip.Addr{privateHost}, served, denied},
		"public, then private":           {[]netip.Addr{publicHost, privateHost}, served, "200"},
		"private, then public":           {[]netip.Addr{privateHost, publicHost}, served, "200"},
		"dead, then private":             {[]netip.Addr{publicHost, privateHost}, dead, refused},
		"private, then dead":             {[]netip.Addr{privateHost, publicHost}, dead, refused},
		"dead, then private of IPv6":     {[]netip.Addr{publicHost, at("::1")}, dead, refused},
		"private of both families":       {[]netip.Addr{privateHost, at("::1"), at("fc00::1"), at("fe80::1%eth0")}, served, denied},
		"mapped":                         {[]netip.Addr{at("::ffff:127.0.0.2")}, served, denied},
		"compatible":                     {[]netip.Addr{at("::127.0.0.2")}, served, denied},
		"NAT64":                          {[]netip.Addr{at("64:ff9b::7f00:2")}, served, denied},
		"6to4":                           {[]netip.Addr{at("2002:7f00:2::")}, served, denied},
		"a public one with a zone":       {[]netip.Addr{at("2600::1%lo")}, served, denied},
		"not an address":                 {[]netip.Addr{{}}, served, denied},
		"nothing":                        {nil, served, "503 dns_resolution_failure{cares_norecords:Domain_name_not_found}"},
		"public, in its mapped form":     {[]netip.Addr{at("::ffff:127.0.0.1")}, served, "200"},
		"unreachable, then public":       {[]netip.Addr{at("2600::1"), publicHost}, served, "200"},
		"private ones, then the public":  {append(slices.Repeat([]netip.Addr{privateHost}, 1000), publicHost), served, "200"},
		"many that refuse, and a server": {append(slices.Repeat([]netip.Addr{at("2600::1")}, 1000), at("2600::2")), served, "503 upstream_reset_before_response_started{remote_connection_failure}"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestEgress(t, func(o *EgressOptions) { o.Resolver = names{"image.test.": test.addresses} })
			wantOutcome(t, x.fetch(t, "http", "image.test:"+test.port, "/"), test.want)
			dialed := x.dials()
			if len(dialed) > imageAddressesMax {
				t.Errorf("%d addresses were tried", len(dialed))
			}
			for _, to := range dialed {
				if to.Addr() != publicHost && !strings.HasPrefix(to.Addr().String(), "2600::") {
					t.Errorf("%v was dialled", to)
				}
			}
			if test.want == denied && len(dialed) > 0 {
				t.Errorf("%v was dialled", dialed)
			}
		})
	}
}

// closedPort is a port that refuses connections.
func closedPort(t *testing.T, on netip.Addr) string {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(on, 0).String())
	want(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	want(t, err)
	want(t, l.Close())
	return port
}

// TestEgressTargets tries spellings of hosts and paths. PORT stands for a server's port.
// Envoy 1.40 does the same, but for these: it takes [127.0.0.1] for an address, and +80
// and 0 for ports; it asks the DNS for names that are too long, for "." and for
// 127.0.0.2 with a dot; and it connects to 177.0.0.1 for 0177.0.0.1, which its resolver
// reads as decimal. The filter sends none of them.
func TestEgressTargets(t *testing.T) {
	port := listen(t, publicHost, answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nimage"))
	const denied, badName = "503 dns_resolution_failure{address_denied}", "503 dns_resolution_failure{cares_failure:Misformatted_domain_name}"
	const noName, bad, badHost = "503 dns_resolution_failure{cares_norecords:Domain_name_not_found}", "400 http1.codec_error", "400 http.invalid_authority"
	for authority, want := range map[string]string{
		"image.test:PORT": "200", "IMAGE.Test:PORT": "200", "image.test.:PORT": "200", "127.0.0.1:PORT": "200",
		"other.test:PORT": noName, "nothing": noName, "image_1.test": noName,

		// localhost is this machine, of which only 127.0.0.1 is allowed here.
		"localhost:PORT": "200", "LOCALHOST.:PORT": "200", "a.localhost:PORT": "200",

		"127.0.0.2:PORT": denied, "[::1]:PORT": denied, "[::1]": denied, "0.0.0.0": denied, "[::]": denied,
		"[::ffff:127.0.0.2]": denied, "[::ffff:7f00:2]": denied, "[0:0:0:0:0:FFFF:127.0.0.2]": denied, "[::127.0.0.2]": denied,
		"169.254.169.254": denied, "10.0.0.1": denied, "[fd00::1]": denied, "[fe80::1]": denied, "255.255.255.255": denied, "127.0.0.2.": denied,
		// A mapped literal is an IPv6 address; only a resolver's are taken for what they map.
		"[::ffff:127.0.0.1]:PORT": denied,

		// Not the one spelling of an address: names, which nobody has.
		"127.1": noName, "0x7f.1": noName, "0x7f000001": noName, "2130706433": noName, "017700000001": noName, "0": noName, "0177.0.0.1": noName,

		"::1": badName, "[fe80::1%lo]": badName, "[fe80::1%25lo]": badName, "a@image.test:PORT": badName, "a:1@b:2": badName,
		"image.test:": badName, "image.test:x": badName, "image.test:99999": badName, "image.test:0": badName, "image.test:-1": badName, "image.test:+80": badName,
		"image%2etest": badName, "image..test": badName, ".image.test": badName, ".": badName, "[image.test]": badName, "[127.0.0.1]:PORT": badName,
		"[::1": badName, "[::1]x:1": badName, "image.test:80:80": badName, strings.Repeat("a", 64) + ".test": badName, strings.Repeat("a.", 127) + "a": badName,

		"": badHost, "image.test/x": badHost, `image.test\x`: badHost, "image.test#x": badHost, "image test": badHost, "image.test?x": badHost, "ｉmage.test": badHost, "image\x7f.test": badHost, "image\ttest": badHost,
	} {
		t.Run("host "+authority, func(t *testing.T) {
			x := newTestEgress(t, nil)
			wantOutcome(t, x.fetch(t, "http", strings.ReplaceAll(authority, "PORT", port), "/"), want)
			if want != "200" && len(x.dials()) > 0 {
				t.Errorf("%v was dialled", x.dials())
			}
		})
	}
	for path, want := range map[string]string{
		"/": "200", "/a?b=c&d": "200", "/%": "200", "//a": "200", "/http://127.0.0.2/": "200", "/a?http://b": "200",
		"http://127.0.0.2/": "404 absolute_path_rejected", "*": "404 absolute_path_rejected", "/a#b": "400 path_normalization_failed",
		"": bad, "a": "404 absolute_path_rejected", "/a b": bad, "/ä": bad, "/\x01": bad,
		"/" + strings.Repeat("a", 70_000): "431 http1.headers_too_large",
	} {
		t.Run("path "+brief(path), func(t *testing.T) {
			wantOutcome(t, newTestEgress(t, nil).fetch(t, "http", "image.test:"+port, path), want)
		})
	}
	for scheme, want := range map[string]string{"http": "200", "": "404 route_not_found", "ftp": "404 route_not_found", "HTTP": "404 route_not_found"} {
		t.Run("scheme "+scheme, func(t *testing.T) {
			wantOutcome(t, newTestEgress(t, nil).fetch(t, scheme, "image.test:"+port, "/"), want)
		})
	}
}

func brief(s string) string { return s[:min(len(s), 40)] }

// TestEgressLineBreaks gives headers that would be more than one on the wire: the
// callout fails before it comes to the egress.
func TestEgressLineBreaks(t *testing.T) {
	for name, h := range map[string]Headers{
		"path":      NewHeaders(":method", "GET", ":path", "/ HTTP/1.1\r\nhost: other\r\n\r\n", ":authority", "127.0.0.1", imageSchemeHeader, "http"),
		"authority": NewHeaders(":method", "GET", ":path", "/", ":authority", "127.0.0.1\r\na: b", imageSchemeHeader, "http"),
		"value":     NewHeaders(":method", "GET", ":path", "/", ":authority", "127.0.0.1", imageSchemeHeader, "http", "accept", "a\nb: c"),
		"name":      NewHeaders(":method", "GET", ":path", "/", ":authority", "127.0.0.1", imageSchemeHeader, "http", "a: b\r\nc", "d"),
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestEgress(t, nil)
			var got *calloutAnswer
			x.carry(t.Context(), h, func(a *calloutAnswer) { got = a })
			wantOutcome(t, got, "503")
			if !strings.HasPrefix(string(got.body), "invalid header ") || got.headers.Get(serviceTimeHeader) != "" || len(x.dials()) > 0 {
				t.Errorf("got %v%s; dialled %v", got.headers, got.body, x.dials())
			}
		})
	}
}

// authority is a certificate authority for tests.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	want(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	want(t, err)
	a.cert, err = x509.ParseCertificate(der)
	want(t, err)
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue makes a certificate for a name or address that ends after a time.
func (a *authority) issue(t *testing.T, host string, validFor time.Duration) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	want(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	want(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// secure serves over TLS and tells the server name that was asked for.
func secure(cert tls.Certificate, asked chan<- string, serve func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		s := tls.Server(c, &tls.Config{
			Certificates: []tls.Certificate{cert},
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				asked <- hello.ServerName
				return nil, nil
			},
		})
		if err := s.Handshake(); err != nil {
			return // the egress did not like the certificate
		}
		serve(s)
		_ = s.Close()
	}
}

// TestEgressTLS shows which certificates are good, and which name is asked for.
func TestEgressTLS(t *testing.T) {
	ca := newAuthority(t)
	image := answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nimage")
	const failed = "503 upstream_reset_before_response_started{remote_connection_failure|TLS_error}"
	for name, test := range map[string]struct {
		host string
		cert tls.Certificate
		want string
		sni  string
	}{
		"good":              {"image.test", ca.issue(t, "image.test", time.Hour), "200", "image.test"},
		"upper case":        {"Image.TEST", ca.issue(t, "image.test", time.Hour), "200", "image.test"},
		"dot at the end":    {"image.test.", ca.issue(t, "image.test", time.Hour), "200", "image.test"},
		"another name":      {"image.test", ca.issue(t, "other.test", time.Hour), failed, "image.test"},
		"expired":           {"image.test", ca.issue(t, "image.test", -time.Minute), failed, "image.test"},
		"another authority": {"image.test", newAuthority(t).issue(t, "image.test", time.Hour), failed, "image.test"},
		"address":           {"127.0.0.1", ca.issue(t, "127.0.0.1", time.Hour), "200", ""},
		"address, no such":  {"127.0.0.1", ca.issue(t, "image.test", time.Hour), failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			port := listen(t, publicHost, secure(test.cert, asked, image))
			x := newTestEgress(t, func(o *EgressOptions) { o.Roots = ca.pool() })
			a := x.fetch(t, "https", test.host+":"+port, "/")
			wantOutcome(t, a, test.want)
			if got := <-asked; got != test.sni {
				t.Errorf("the name %q was asked for, want %q", got, test.sni)
			}
			for _, hidden := range []string{"other.test", "authority", "x509"} {
				if strings.Contains(a.headers.String()+string(a.body), hidden) {
					t.Errorf("the answer tells of the certificate: %v%s", a.headers, a.body)
				}
			}
		})
	}
	t.Run("system roots", func(t *testing.T) {
		port := listen(t, publicHost, secure(ca.issue(t, "image.test", time.Hour), make(chan string, 1), image))
		wantOutcome(t, newTestEgress(t, nil).fetch(t, "https", "image.test:"+port, "/"), failed)
	})
	t.Run("https on a plain port", func(t *testing.T) {
		port := listen(t, publicHost, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad\r\n\r\n")
		})
		wantOutcome(t, newTestEgress(t, nil).fetch(t, "https", "image.test:"+port, "/"), failed)
	})
	t.Run("http on a TLS port", func(t *testing.T) {
		port := listen(t, publicHost, secure(ca.issue(t, "image.test", time.Hour), make(chan string, 1), image))
		a := newTestEgress(t, nil).fetch(t, "http", "image.test:"+port, "/")
		if got := a.outcome(); !strings.Contains(got, " upstream_reset_before_response_started{") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a body that is cut", func(t *testing.T) {
		port := listen(t, publicHost, secure(ca.issue(t, "image.test", time.Hour), make(chan string, 1),
			answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nimage")))
		x := newTestEgress(t, func(o *EgressOptions) { o.Roots = ca.pool() })
		wantOutcome(t, x.fetch(t, "https", "image.test:"+port, "/"), "502 upstream_reset_after_response_started{protocol_error}")
	})
}

// await waits until a fake clock has this many timers.
func (c *FakeClock) await(t *testing.T, timers int) {
	t.Helper()
	wantSoon(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.timers) == timers
	})
}

// wantSoon waits until something is true.
func wantSoon(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(egressPatience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// begin starts a download.
func (x *testEgress) begin(ctx context.Context, scheme, authority string) <-chan *calloutAnswer {
	got := make(chan *calloutAnswer, 1)
	h := NewHeaders(":method", "GET", ":path", "/", ":authority", authority, imageSchemeHeader, scheme)
	go func() {
		defer close(got)
		x.carry(ctx, h, func(a *calloutAnswer) { got <- a })
	}()
	return got
}

// stuckResolver answers when nobody waits any more.
type stuckResolver struct{}

func (stuckResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestEgressTimeouts lets each step of a download take too long.
func TestEgressTimeouts(t *testing.T) {
	reached := make(chan bool, 10)
	stuck := func(text string, more bool) string {
		return listen(t, publicHost, func(c net.Conn) {
			readRequest(c)
			_, err := io.WriteString(c, text)
			for reached <- true; more && err == nil; time.Sleep(time.Millisecond) {
				_, err = io.WriteString(c, "x")
			}
			hangUp(c)
		})
	}
	ended := t.Context()
	for name, test := range map[string]struct {
		port     string // of a server that tells when it is reached
		resolver Resolver
		dial     func(context.Context, netip.AddrPort) (net.Conn, error)
		want     string
		after    time.Duration
	}{
		"no answer":         {port: stuck("", false), want: "504 response_timeout", after: imageTimeout},
		"half an answer":    {port: stuck("HTTP/1.1 200 OK\r\n", false), want: "504 response_timeout", after: imageTimeout},
		"headers that drip": {port: stuck("HTTP/1.1 200 OK\r\nA: ", true), want: "504 response_timeout", after: imageTimeout},
		"half a body":       {port: stuck("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nim", false), want: "504 response_timeout", after: imageTimeout},
		"a body that drips": {port: stuck("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", true), want: "504 response_timeout", after: imageTimeout},
		"no handshake":      {port: "tls", want: "503 upstream_reset_before_response_started{connection_timeout}", after: imageConnectTimeout},
		"no look-up":        {resolver: stuckResolver{}, want: "503 dns_resolution_failure{resolve_timeout}", after: imageLookupTimeout},
		"no connection": {dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, want: "503 upstream_reset_before_response_started{connection_timeout}", after: imageConnectTimeout},
		"a dial that does not end": {dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
			<-ended.Done()
			return nil, ended.Err()
		}, want: "503 upstream_reset_before_response_started{connection_timeout}", after: imageConnectTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			clock := NewFakeClock()
			x := newTestEgress(t, func(o *EgressOptions) {
				o.Clock = clock
				if test.resolver != nil {
					o.Resolver = test.resolver
				}
			})
			if test.dial != nil {
				x.dial = test.dial
			}
			scheme, port := "http", test.port
			if port == "tls" {
				scheme, port = "https", listen(t, publicHost, func(c net.Conn) {
					_, _ = c.Read(make([]byte, 1))
					reached <- true
					hangUp(c)
				})
			}
			got := x.begin(t.Context(), scheme, "image.test:"+cmp.Or(port, "80"))
			if port != "" {
				<-reached
			} else {
				clock.await(t, 2)
			}
			clock.Advance(test.after - time.Millisecond)
			select {
			case a := <-got:
				t.Fatalf("%q before its time", a.outcome())
			case <-time.After(20 * time.Millisecond):
			}
			clock.Advance(time.Millisecond)
			a := <-got
			wantOutcome(t, a, test.want)
			if ms := strconv.FormatInt(test.after.Milliseconds(), 10); a.headers.Get(serviceTimeHeader) != ms {
				t.Errorf("it took %s ms, want %s", a.headers.Get(serviceTimeHeader), ms)
			}
			clock.await(t, 0)
		})
	}
}

// TestEgressSecondAddress lets the first addresses of a name be slow: the next one is
// tried after a moment, and the connection that comes late is closed.
func TestEgressSecondAddress(t *testing.T) {
	port := listen(t, publicHost, answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nimage"))
	slow := []netip.Addr{netip.MustParseAddr("2600::1"), netip.MustParseAddr("2600::2")}
	clock := NewFakeClock()
	x := newTestEgress(t, func(o *EgressOptions) {
		o.Clock, o.Resolver = clock, names{"image.test.": append(slices.Clone(slow), privateHost, publicHost)}
	})
	dial, late := x.dial, make(chan net.Conn, 1)
	x.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		conn, err := dial(ctx, to)
		switch to.Addr() {
		case slow[0]:
			<-ctx.Done() // it comes when another one has been taken
			here, there := net.Pipe()
			late <- there
			return here, nil
		case slow[1]:
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return conn, err
	}
	got := x.begin(t.Context(), "http", "image.test:"+port)
	clock.await(t, 3) // of the download, the connection and the delay
	clock.Advance(imageAttemptDelay - time.Millisecond)
	if d := x.dials(); len(d) != 1 || d[0].Addr() != slow[0] {
		t.Errorf("%v was dialled", d)
	}
	clock.Advance(time.Millisecond)
	wantOutcome(t, <-got, "200")
	// By turns of the families, so the public IPv4 address comes second.
	if d := x.dials(); len(d) != 2 || d[1].Addr() != publicHost {
		t.Errorf("%v was dialled", d)
	}
	if _, err := (<-late).Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the late connection is not closed: %v", err)
	}
	clock.await(t, 0)
}

// TestEgressCalloutOver gives a download up when nobody waits for it any more.
func TestEgressCalloutOver(t *testing.T) {
	reached, closed := make(chan bool), make(chan bool)
	port := listen(t, publicHost, func(c net.Conn) {
		readRequest(c)
		close(reached)
		hangUp(c)
		close(closed)
	})
	x := newTestEgress(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	got := x.begin(ctx, "http", "image.test:"+port)
	<-reached
	cancel()
	<-closed
	if a, ok := <-got; ok {
		t.Errorf("it was answered with %q", a.outcome())
	}
}

// TestEgressBounds holds the number of downloads and the bytes of their bodies down.
func TestEgressBounds(t *testing.T) {
	wantOverload := func(a *calloutAnswer) {
		t.Helper()
		wantOutcome(t, a, "503")
		if a.headers.Get(overloadedHeader) != "true" || a.headers.Get(serviceTimeHeader) != "" {
			t.Errorf("it does not look like Envoy's overload: %v", a.headers)
		}
	}
	release := make(chan bool)
	port := listen(t, publicHost, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 999_999))
		<-release
		_, _ = io.WriteString(c, "x")
	})
	t.Run("downloads", func(t *testing.T) {
		x := newTestEgress(t, func(o *EgressOptions) { o.DownloadsMax = 2 })
		first, second := x.begin(t.Context(), "http", "image.test:"+port), x.begin(t.Context(), "http", "image.test:"+port)
		wantSoon(t, func() bool { return x.downloads.Load() == 2 })
		wantOverload(x.fetch(t, "http", "image.test:"+port, "/"))
		release <- true
		release <- true
		wantOutcome(t, <-first, "200")
		wantOutcome(t, <-second, "200")
	})
	t.Run("bytes", func(t *testing.T) {
		x := newTestEgress(t, func(o *EgressOptions) { o.BufferBytesMax = 1_500_000 })
		first := x.begin(t.Context(), "http", "image.test:"+port)
		wantSoon(t, func() bool { return x.buffered.Load() == 1_000_001 })
		wantOverload(x.fetch(t, "http", "image.test:"+listen(t, publicHost, sized(900_000, false)), "/"))
		small := listen(t, publicHost, sized(100_000, true))
		wantOutcome(t, x.fetch(t, "http", "image.test:"+small, "/"), "200")
		release <- true
		wantOutcome(t, <-first, "200")
	})
	t.Run("promises cost nothing", func(t *testing.T) {
		reached := make(chan bool)
		port := listen(t, publicHost, func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\nx")
			reached <- true
			<-release
		})
		x := newTestEgress(t, nil)
		got := x.begin(t.Context(), "http", "image.test:"+port)
		<-reached
		wantSoon(t, func() bool { return x.buffered.Load() > 0 })
		if n := x.buffered.Load(); n > readBytes {
			t.Errorf("one byte has come, %d are held", n)
		}
		release <- true
		wantOutcome(t, <-got, "502 upstream_reset_after_response_started{protocol_error}")
	})
}

// TestEgressHammer has many downloads of all kinds at once. Nothing of them is left.
func TestEgressHammer(t *testing.T) {
	const count = 300
	before := runtime.NumGoroutine()
	t.Run("downloads", func(t *testing.T) {
		kinds := []struct{ port, want string }{
			{listen(t, publicHost, answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nimage")), "200"},
			{listen(t, publicHost, sized(200_000, false)), "200"},
			{listen(t, publicHost, reset("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nimage")), "502 upstream_reset_after_response_started{protocol_error}"},
			{closedPort(t, publicHost), errRefused.outcome()},
			{listen(t, publicHost, hangUp), ""},
		}
		x := newTestEgress(t, func(o *EgressOptions) {
			o.Resolver = names{"image.test.": {privateHost, publicHost}}
		})
		var work sync.WaitGroup
		for i := range count {
			kind := kinds[i%len(kinds)]
			work.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				got := x.begin(ctx, "http", "image.test:"+kind.port)
				if kind.want == "" {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				switch a, ok := <-got; {
				case ok && a.outcome() != kind.want:
					t.Errorf("got %q, want %q", a.outcome(), kind.want)
				case !ok && kind.want != "":
					t.Errorf("no answer, want %q", kind.want)
				}
			})
		}
		work.Wait()
		for _, to := range x.dials() {
			if to.Addr() != publicHost {
				t.Errorf("%v was dialled", to)
			}
		}
	})
	wantSoon(t, func() bool { return runtime.NumGoroutine() <= before })
}

// outcome is that of the answer it becomes.
func (f *egressFault) outcome() string { return faultAnswer(f).outcome() }

// flippingDNS answers every question for IPv4 with the next of its addresses, and
// counts the names that it does not know.
type flippingDNS struct {
	addresses []netip.Addr
	asked     atomic.Int64
	others    atomic.Int64
}

// dial is net.Resolver's Dial: a connection to the server over which messages go with
// their length in front, as on TCP (RFC 1035, section 4.2.2).
func (f *flippingDNS) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		for {
			var length [2]byte
			if _, err := io.ReadFull(there, length[:]); err != nil {
				return
			}
			question := make([]byte, binary.BigEndian.Uint16(length[:]))
			if _, err := io.ReadFull(there, question); err != nil {
				return
			}
			answer := f.answer(question)
			if _, err := there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
				return
			}
		}
	}()
	return here, nil
}

// answer makes the message for a question (RFC 1035, section 4.1).
func (f *flippingDNS) answer(question []byte) []byte {
	name := []byte("\x05image\x04test\x00")
	end := 12 + bytes.IndexByte(question[12:], 0) + 1
	kind := binary.BigEndian.Uint16(question[end:])
	answer := append([]byte{}, question[:end+4]...)
	copy(answer[2:12], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
	switch {
	case !bytes.Equal(question[12:end], name):
		f.others.Add(1)
		answer[3] |= 3 // no such name
	case kind == 1:
		n := f.asked.Add(1) - 1
		ip := f.addresses[n%int64(len(f.addresses))].As4()
		answer[7] = 1
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		answer = append(answer, ip[:]...)
	}
	return answer
}

// TestEgressResolver asks a server of the DNS whose answer changes from public to
// private each time. One look-up serves for the check and the connection.
func TestEgressResolver(t *testing.T) {
	port := listen(t, publicHost, answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nimage"))
	dns := &flippingDNS{addresses: []netip.Addr{publicHost, privateHost}}
	x := newTestEgress(t, func(o *EgressOptions) { o.Resolver = &net.Resolver{PreferGo: true, Dial: dns.dial} })
	for i := range 10 {
		a := x.fetch(t, "http", "image.test:"+port, "/")
		wantOutcome(t, a, []string{"200", "503 dns_resolution_failure{address_denied}"}[i%2])
		if n := dns.asked.Load(); n != int64(i+1) {
			t.Fatalf("after %d downloads the name was looked up %d times", i+1, n)
		}
	}
	for _, to := range x.dials() {
		if to.Addr() != publicHost {
			t.Errorf("%v was dialled", to)
		}
	}
	// A name with one label is asked for as it is: no search domain is tried.
	wantOutcome(t, x.fetch(t, "http", "intranet-of-nobody", "/"), "503 dns_resolution_failure{cares_norecords:Domain_name_not_found}")
	if n := dns.others.Load(); n != 2 {
		t.Errorf("there were %d questions, want one for each family", n)
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"timeout": {&net.DNSError{IsTimeout: true}, "503 dns_resolution_failure{resolve_timeout}"},
		"failure": {&net.DNSError{IsTemporary: true}, "503 dns_resolution_failure{cares_failure:DNS_server_returned_general_failure}"},
		"other":   {errors.New("no"), "503 dns_resolution_failure{cares_failure:DNS_server_returned_general_failure}"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestEgress(t, func(o *EgressOptions) { o.Resolver = failingResolver{test.err} })
			wantOutcome(t, x.fetch(t, "http", "image.test", "/"), test.want)
		})
	}
}

type failingResolver struct{ err error }

func (r failingResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, r.err
}

// FuzzEgressTarget holds what is sent to a server to one request for one host.
func FuzzEgressTarget(f *testing.F) {
	for _, seed := range [][3]string{
		{"image.test:80", "/a?b", "image/png"}, {"[::1]:1", "/", ""}, {"a:1@b:2", "http://c/", "x"}, {"127.0.0.1", "/%0d%0a", "a\r\nb"}, {"[::ffff:1.2.3.4%1]", "//", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	e := NewEgress(EgressOptions{})
	f.Fuzz(func(t *testing.T, authority, path, accept string) {
		h := NewHeaders(":method", "GET", ":authority", authority, ":path", path, imageSchemeHeader, "https", "accept", accept)
		target, err := readTarget(h)
		if err != nil {
			if a := faultAnswer(err); statusOf(a.headers) < 400 {
				t.Fatalf("the fault %v is answered with %v", err, a.headers)
			}
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(target.request(h))))
		if err != nil {
			// Go's reader is stricter in a few places, but the lines are as meant.
			if n := bytes.Count(target.request(h), []byte("\n")); n != 4 {
				t.Fatalf("%d lines: %q", n, target.request(h))
			}
		} else if r.Host != authority || r.RequestURI != path || len(r.Header) != 1 {
			t.Fatalf("%q became %+v", target.request(h), r)
		}
		if target.port == 0 || !target.literal.IsValid() && !isName(target.host) {
			t.Fatalf("%q became %+v", authority, target)
		}
		if target.literal.IsValid() {
			if to, err := e.resolve(t.Context(), &target); err == nil && !strings.EqualFold(to[0].Addr().String(), target.literal.String()) {
				t.Fatalf("%q leads to %v", authority, to)
			}
		}
	})
}

// TestPublicAddresses holds the list of networks against other opinions of what is
// public: the filter's own check of a URL, package netip, and envoy.yaml.
func TestPublicAddresses(t *testing.T) {
	e := NewEgress(EgressOptions{})
	check := func(a netip.Addr) {
		is := e.reachable(a)
		host := a.String()
		if a.Is6() {
			host = "[" + host + "]"
		}
		if _, fault := translate.ParseImageURL("http://"+host+"/", false); is != (fault == "") {
			t.Errorf("%v: the egress says %v, the filter %q", a, is, fault)
		}
		if is && (!a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast()) {
			t.Errorf("%v is reachable", a)
		}
	}
	random := mathrand.New(mathrand.NewPCG(1, 2))
	for range 400_000 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], random.Uint32())
		check(netip.AddrFrom4(b))
		// Half of the IPv6 addresses are of 2000::/3, a quarter begins with 2001.
		var c [16]byte
		binary.BigEndian.PutUint64(c[:], random.Uint64())
		binary.BigEndian.PutUint64(c[8:], random.Uint64())
		switch random.IntN(4) {
		case 0:
			c[0] = c[0]&0x1f | 0x20
		case 1:
			copy(c[:], []byte{0x20, 1})
			c[2] &= 0x0f
		}
		check(netip.AddrFrom16(c))
	}
	for _, p := range notPublic {
		first, last := p.Masked().Addr(), lastOf(p)
		if p.Addr() != first {
			t.Errorf("%v is not the first address of its network", p)
		}
		for _, a := range []netip.Addr{first, last} {
			if e.reachable(a) {
				t.Errorf("%v of %v is reachable", a, p)
			}
		}
		for _, a := range []netip.Addr{first.Prev(), first, first.Next(), last.Prev(), last, last.Next()} {
			if a.IsValid() && !a.Is4In6() {
				check(a)
			}
		}
	}
	for _, public := range []string{"1.1.1.1", "100.63.255.255", "100.128.0.0", "172.32.0.0", "192.0.1.0", "198.20.0.0", "223.255.255.255", "2000::", "2001:200::", "2003::", "2606:4700::1111", "3fff:1000::", "3ffe::"} {
		if !e.reachable(netip.MustParseAddr(public)) {
			t.Errorf("%v is not reachable", public)
		}
	}
}

// TestShippedNetworks holds the list against that of envoy.yaml, line by line.
func TestShippedNetworks(t *testing.T) {
	shipped, err := os.ReadFile("../envoy.yaml")
	want(t, err)
	var listed, ours []string
	for _, m := range regexp.MustCompile(`\{address_prefix: "?([0-9a-f.:]+)"?, prefix_len: ([0-9]+)\}`).FindAllSubmatch(shipped, -1) {
		listed = append(listed, string(m[1])+"/"+string(m[2]))
	}
	for _, p := range notPublic {
		ours = append(ours, p.String())
	}
	if !slices.Equal(listed, ours) {
		t.Errorf("envoy.yaml has\n%q\nthe egress\n%q", listed, ours)
	}
}

// TestEgressLocalhost is refused like any other name of this machine.
func TestEgressLocalhost(t *testing.T) {
	x := newTestEgress(t, func(o *EgressOptions) { o.Allow = nil })
	for _, host := range []string{"localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "[::1]"} {
		wantOutcome(t, x.fetch(t, "http", host, "/"), "503 dns_resolution_failure{address_denied}")
	}
	if len(x.dials()) > 0 {
		t.Errorf("%v was dialled", x.dials())
	}
}

// lastOf is a network's last address.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// TestAllowedNetworks opens a network, and nothing beside it.
func TestAllowedNetworks(t *testing.T) {
	e := NewEgress(EgressOptions{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}})
	for address, want := range map[string]bool{
		"10.1.2.3": true, "10.2.0.0": false, "fd00:1::1": true, "fd00:2::": false, "127.0.0.1": false, "::ffff:10.1.2.3": false, "fd00:1::1%eth0": false, "8.8.8.8": true,
	} {
		if got := e.reachable(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}
