package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// answered is what the egress says to a request that does not come from the filter.
type answered struct {
	status  int
	details string // x-egress-details
	header  http.Header
	body    string
}

// raw sends the bytes of a request to the egress itself. Nobody but the filter can do
// that in the shipped file; it shows that this wall stands without the filter's.
func (w *world) rawRequest(t *testing.T, request string) answered {
	t.Helper()
	address, err := w.envoy.ListenerAddr(t.Context(), "direct")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	return answered{response.StatusCode, response.Header.Get("x-egress-details"), response.Header, string(body)}
}

// request is one as the filter would send it.
func request(scheme, host, path string, more ...string) string {
	head := "GET " + path + " HTTP/1.1\r\nhost: " + host + "\r\nx-image-scheme: " + scheme + "\r\n"
	return head + strings.Join(more, "") + "\r\n"
}

func (w *world) testDirect(t *testing.T) {
	w.page("decorated", func(rw http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"x-egress-details": "dns_resolution_failure{address_denied}", "x-egress-flags": "DF", "set-cookie": "a=b",
			"x-envoy-upstream-service-time": "1", "server": "theirs", "location": "http://elsewhere.test/",
		} {
			rw.Header().Set(name, value)
		}
		rw.WriteHeader(http.StatusTeapot)
		io.WriteString(rw, "RBAC: access denied")
	})
	together(t, []scenario{
		{"addresses", w.testDirectAddresses},
		{"names like addresses", w.testDirectNames},
		{"hosts that are none", w.testDirectHosts},
		{"paths", w.testDirectPaths},
		{"headers", w.testDirectHeaders},
		{"certificates of addresses", w.testDirectCertificates},
	})
}

func (w *world) wantDetails(t *testing.T, request string, status int, details string) answered {
	t.Helper()
	a := w.rawRequest(t, request)
	if a.status != status || !strings.Contains(a.details, details) || (a.details == "") != (details == "") {
		t.Errorf("%.100q: got %d %q, want %d %q", request, a.status, a.details, status, details)
	}
	return a
}

// testDirectAddresses: literal addresses are checked like those of names.
func (w *world) testDirectAddresses(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1", "127.0.0.2", "0.0.0.0", "10.0.0.1", "100.64.0.1", "168.63.129.16", "169.254.169.254", "172.16.0.1", "192.0.0.192", "192.168.0.1",
		"198.18.0.1", "224.0.0.1", "255.255.255.255",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
		"[fd00::1]", "[fe80::1]", "[ff02::1]", "[2001::1]", "[2001:db8::1]", "[2002:7f00:1::]", "[3fff::1]",
		"localhost", "LOCALHOST",
	} {
		for scheme, port := range map[string]string{"http": w.plainPort, "https": w.tlsPort} {
			w.wantDetails(t, request(scheme, host+":"+port, "/png"), 503, "dns_resolution_failure{address_denied}")
			w.wantDetails(t, request(scheme, host, "/png"), 503, "dns_resolution_failure{address_denied}")
		}
	}
	if a := w.wantDetails(t, request("http", publicIP+":"+w.plainPort, "/png"), 200, ""); a.body != string(png) {
		t.Errorf("a public address serves %q", a.body)
	}
	// The resolver reads the leading zero as decimal and not as octal: 177.0.0.1, a public
	// address. It is denied only because these tests deny all that is not on loopback, and
	// that is why the filter refuses such spellings by itself.
	w.wantDetails(t, request("http", "0177.0.0.1", "/png"), 503, "dns_resolution_failure{address_denied}")
}

// testDirectNames: the resolver takes these for names and not for addresses.
func (w *world) testDirectNames(t *testing.T) {
	for _, host := range []string{"127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0"} {
		w.wantDetails(t, request("http", host+":"+w.plainPort, "/png"), 503, "dns_resolution_failure{cares_norecords")
		if w.names.questions(host) == 0 {
			t.Errorf("%s was not looked up", host)
		}
	}
	w.wantDetails(t, request("http", "127.0.0.1.:"+w.plainPort, "/png"), 503, "dns_resolution_failure{")
}

// testDirectHosts: what is no host is not connected to.
func (w *world) testDirectHosts(t *testing.T) {
	host := w.host(publicIP)
	for _, bad := range []string{
		"[fe80::1%25lo]", "[::1%lo]", "%31%32%37.0.0.1", "user@" + host, "a:1@b:2", host + ":", host + ":http", host + ":99999", host + ":80:80", host + ":0",
		`127.0.0.1\`, `\\127.0.0.1`, host + "#", host + "/png", host + " x", "１２７.0.0.1", "127。0。0。1", "",
	} {
		a := w.rawRequest(t, request("http", bad, "/png"))
		if a.status < 400 || a.details == "" {
			t.Errorf("the host %q: %d %q %q", bad, a.status, a.details, a.body)
		}
	}
}

// testDirectPaths: the path names no host, and only what is a path is sent.
func (w *world) testDirectPaths(t *testing.T) {
	host := w.host(publicIP) + ":" + w.plainPort
	w.wantDetails(t, request("http", host, "http://"+privateIP+":"+w.plainPort+"/png"), 404, "absolute_path_rejected")
	w.wantDetails(t, request("http", host, "http://"+host+"/png"), 404, "absolute_path_rejected")
	for path, status := range map[string]int{
		"": 400, "/p\xC3\xA4th": 400, "/a b": 400, "*": 404, "png": 400, "/" + strings.Repeat("x", 70_000): 431,
	} {
		if a := w.rawRequest(t, request("http", host, path)); a.status != status || a.details == "" {
			t.Errorf("the path %.20q: %d %q, want %d", path, a.status, a.details, status)
		}
	}
}

// testDirectHeaders: nothing that begins with x- goes out, and of what comes back,
// nothing can pass for the egress's own words.
func (w *world) testDirectHeaders(t *testing.T) {
	host := w.host(publicIP) + ":" + w.plainPort
	w.file("direct-headers", "image/png", png)
	w.wantDetails(t, request("http", host, "/direct-headers", "x-forwarded-for: 1.2.3.4\r\n", "x-envoy-retry-on: 5xx\r\n", "x-envoy-original-dst-host: "+privateIP+":"+w.plainPort+"\r\n",
		"x-envoy-upstream-rq-timeout-ms: 1\r\n", "x-request-id: 1\r\n", "X-Ezat-Session: s\r\n", "accept: image/png\r\n"), 200, "")
	for _, r := range w.requests("direct-headers") {
		for name := range r.Header {
			if strings.HasPrefix(name, "X-") {
				t.Errorf("a server sees %s: %s", name, r.Header[name])
			}
		}
		if r.Header.Get("accept") != "image/png" {
			t.Error("other headers do not pass")
		}
	}

	a := w.wantDetails(t, request("http", host, "/decorated"), http.StatusTeapot, "")
	for _, name := range []string{"x-egress-flags", "set-cookie"} {
		if value := a.header.Get(name); value != "" {
			t.Errorf("%s: %s comes back from a server", name, value)
		}
	}
	if a.header.Get("server") != "theirs" || a.header.Get("location") == "" {
		t.Errorf("what is the server's does not come back: %v", a.header)
	}

	for _, scheme := range []string{"", "HTTP", "ftp", "http,https"} {
		w.wantDetails(t, request(scheme, host, "/png"), 404, "route_not_found")
	}
	w.wantDetails(t, fmt.Sprintf("GET /png HTTP/1.1\r\nhost: %s\r\n\r\n", host), 404, "route_not_found")
}

// testDirectCertificates: a certificate for an address has to name it.
func (w *world) testDirectCertificates(t *testing.T) {
	w.wantDetails(t, request("https", public2IP+":"+w.tlsPort, "/png"), 200, "")
	w.wantDetails(t, request("https", publicIP+":"+w.tlsPort, "/png"), 503, "TLS_error")
}
