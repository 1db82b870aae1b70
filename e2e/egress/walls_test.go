package egress_test

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"ezat.io/chat-completions/e2e/envoy"
)

// attempt is one image URL and what becomes of it.
type attempt struct {
	name   string
	url    string
	reason string // why there is no image; "" when there is one

	mediaType string
	file      []byte // nil for the usual PNG
}

const (
	notPublic    = "not a public address"
	badURL       = "not a valid URL"
	noConnection = "no connection"
)

// TestEgress makes one Envoy meet everything that a URL, a name server or an image
// server can do to it, all of it at the same time.
func TestEgress(t *testing.T) {
	w := newWorld(t, nil, envoy.EgressListener("direct"))
	w.file("png", "image/png", png)
	together(t, []scenario{
		w.attempts("addresses", addresses(w)),
		w.attempts("spellings", spellings(w)),
		w.attempts("look-ups", lookups(w)),
		w.attempts("redirects", redirects(w)),
		w.attempts("certificates", certificates(t, w)),
		w.attempts("statuses", statuses(w)),
		w.attempts("files", files(w)),
		w.attempts("sizes", sizes(w)),
		w.attempts("slow servers", slowServers(w)),
		w.attempts("broken servers", brokenServers(w)),
		{"half an answer", w.testHalfAnAnswer},
		{"answers that change", w.testChangingAnswers},
		{"answers that flip", w.testFlippingAnswers},
		{"endless files", w.testEndlessFile},
		{"what servers see", w.testRequests},
		{"ports", w.testPorts},
		{"metrics", w.testMetrics},
		{"counts", w.testCounts},
		{"totals", w.testTotals},
		{"tool results", w.testToolResults},
		{"clients that leave", w.testClientsThatLeave},
		{"streams meanwhile", w.testStreamsMeanwhile},
		{"without the filter", w.testDirect},
	})
	w.wantOnLoopback(t)
	w.wantSilentLogs(t)
}

// scenario is a test that runs beside others.
type scenario struct {
	name string
	run  func(t *testing.T)
}

// together runs scenarios at the same time: most of what they do is waiting.
func together(t *testing.T, all []scenario) {
	var wait sync.WaitGroup
	for _, s := range all {
		wait.Go(func() { t.Run(s.name, s.run) })
	}
	wait.Wait()
}

// attempts is the scenario of trying URLs, all at the same time.
func (w *world) attempts(name string, list []attempt) scenario {
	return scenario{name, func(t *testing.T) {
		var all []scenario
		for _, a := range list {
			all = append(all, scenario{a.name, func(t *testing.T) { w.try(t, a) }})
		}
		together(t, all)
	}}
}

func (w *world) try(t *testing.T, a attempt) {
	o, err := w.ask(t.Context(), a.url)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case a.reason != "":
		wantRefused(t, o, failed(a.reason))
	case a.file != nil:
		wantServed(t, o, a.mediaType, a.file)
	default:
		wantServed(t, o, "image/png", png)
	}
}

// addresses are names that lead to public and to private addresses.
func addresses(w *world) []attempt {
	var all []attempt
	for _, a := range []struct {
		addresses []string
		reason    string
	}{
		{[]string{publicIP}, ""},
		{[]string{privateIP}, notPublic},
		{[]string{localIP}, notPublic},
		{[]string{private6}, notPublic},
		{[]string{privateIP, private6}, notPublic},
		{[]string{"::ffff:" + privateIP}, notPublic},
		{[]string{"10.0.0.1", "192.168.0.1", "169.254.169.254", "172.16.0.1"}, notPublic},
		{[]string{"fd00::1", "fe80::1", "64:ff9b::7f00:2"}, notPublic},
		{[]string{publicIP, privateIP}, ""},
		{[]string{privateIP, publicIP}, ""},
		{[]string{publicIP, private6}, ""},
		{[]string{privateIP, publicIP, private6}, ""},
		{[]string{deadIP}, noConnection},
		{[]string{deadIP, privateIP}, noConnection},
		{[]string{privateIP, deadIP}, noConnection},
		{[]string{deadIP, private6}, noConnection},
		{[]string{muteIP}, noConnection},
		{[]string{muteIP, privateIP}, noConnection},
		{[]string{privateIP, muteIP}, noConnection},
		{[]string{deadIP, publicIP}, ""},
	} {
		name := strings.Join(a.addresses, " and ")
		all = append(all,
			attempt{name: "http to " + name, url: w.plain(w.host(a.addresses...), "/png"), reason: a.reason},
			attempt{name: "https to " + name, url: w.tls(w.host(a.addresses...), "/png"), reason: a.reason})
	}
	return all
}

// spellings are hosts that the filter itself does not let through, in spellings that
// different programs read as different addresses, or as none.
func spellings(w *world) []attempt {
	var all []attempt
	for reason, hosts := range map[string][]string{
		notPublic: {
			"127.0.0.1", "127.0.0.2", "0.0.0.0", "10.0.0.1", "169.254.169.254", "127.0.1.1", "168.63.129.16",
			"127.1", "127.0.1", "0x7f.1", "0x7f000001", "0X7F000001", "2130706433", "017700000001", "0177.0.0.1", "127.0.0.01", "0",
			"127.0.0.1.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]",
			"[fd00::1]", "[fe80::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
			"localhost", "LOCALHOST", "LocalHost.", "a.localhost",
			// Names that only a private network can have; whether it has them, nobody is told.
			"intranet", "db.internal", "printer.local", "kubernetes.default.svc",
		},
		badURL: {
			"[fe80::1%25lo]", "[::1", "::1", "[::1]x", "user@127.0.0.1", "user:secret@host.test", "a:1@b:2",
			"host%2etest", "%31%32%37.0.0.1", "127。0。0。1", "１２７.0.0.1", "ⅼocalhost", "host .test", "", ".", "..", "a..test",
			`127.0.0.1\@host.test`, `host.test\.private`, "host.test:80:80", "host.test:0", "host.test:99999", "host.test:http", "host.test:-1",
			"host.test\r\nx-image-scheme: http", "host.test\x00.private", "host.test\t",
		},
	} {
		for _, host := range hosts {
			all = append(all, attempt{name: fmt.Sprintf("%q", host), url: "http://" + host + "/png", reason: reason})
		}
	}
	return append(all,
		attempt{name: "a port behind a bracket", url: w.plain("[::1]", "/png"), reason: notPublic},
		attempt{name: "another case", url: "HTTP://" + strings.ToUpper(w.host(publicIP)) + ":" + w.plainPort + "/png"},
		attempt{name: "a dot at the end", url: w.tls(w.host(publicIP)+".", "/png")})
}

// lookups are answers of the name server.
func lookups(w *world) []attempt {
	w.names.script("no-address.test", func(int, bool) answer { return answer{} })
	w.names.script("broken.test", func(int, bool) answer { return answer{rcode: dnsmessage.RCodeServerFailure} })
	w.names.script("refused.test", func(int, bool) answer { return answer{rcode: dnsmessage.RCodeRefused} })
	w.names.script("silent.test", func(int, bool) answer { return answer{silent: true} })
	return []attempt{
		{name: "a name that is not there", url: w.plain("nowhere.test", "/png"), reason: "name not found"},
		{name: "a name without an address", url: w.plain("no-address.test", "/png"), reason: "name not found"},
		{name: "a name server that fails", url: w.plain("broken.test", "/png"), reason: "name not found"},
		{name: "a name server that refuses", url: w.plain("refused.test", "/png"), reason: "name not found"},
		{name: "a name server that says nothing", url: w.plain("silent.test", "/png"), reason: "timed out"},
	}
}

// redirects are answers that lead elsewhere.
func redirects(w *world) []attempt {
	host, other, private := w.host(publicIP), w.host(publicIP), w.host(privateIP)
	w.page("go", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header()["Location"] = []string{r.URL.Query().Get("to")}
		rw.WriteHeader(http.StatusFound)
	})
	// /hops/n redirects n times.
	w.page("hops", func(rw http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscanf(r.URL.Path, "/hops/%d", &n)
		if n == 0 {
			rw.Write(png)
			return
		}
		rw.Header()["Location"] = []string{fmt.Sprintf("%d?a=b#c", n-1)}
		rw.WriteHeader([]int{301, 302, 303, 307, 308}[n%5])
	})
	all := []attempt{
		{name: "three redirects", url: w.plain(host, "/hops/3")},
		{name: "four redirects", url: w.plain(host, "/hops/4"), reason: "more than 3 redirects"},
		{name: "a circle", url: w.plain(host, "/go?to="), reason: "HTTP 302"},
		{name: "a redirect without a location", url: w.plain(host, "/status/302"), reason: "HTTP 302"},
	}
	for to, reason := range map[string]string{
		w.plain(other, "/png"):                    "",
		w.tls(other, "/png"):                      "",
		"//" + other + ":" + w.plainPort + "/png": "",
		"/png":                       "",
		"png":                        "",
		"/go":                        "HTTP 302",
		w.plain(private, "/png"):     notPublic,
		w.tls(private, "/png"):       notPublic,
		w.plain("localhost", "/png"): notPublic,
		w.plain(privateIP, "/png"):   notPublic,
		"//" + privateIP + ":" + w.plainPort + "/png": notPublic,
		w.plain("["+private6+"]", "/png"):             notPublic,
		w.plain("0x7f000002", "/png"):                 notPublic,
		w.plain("nowhere.test", "/png"):               "name not found",
		"file:///etc/passwd":                          badURL,
		"ftp://" + other + "/png":                     badURL,
		"data:image/png;base64,AAAA":                  badURL,
		"http://user@" + other + "/png":               badURL,
	} {
		all = append(all, attempt{name: "http to " + to, url: w.plain(host, "/go?to="+escape(to)), reason: reason})
	}
	for to, reason := range map[string]string{
		w.plain(other, "/png"):                  "a redirect from https to http",
		w.plain(private, "/png"):                "a redirect from https to http",
		w.tls(other, "/png"):                    "",
		w.tls(private, "/png"):                  notPublic,
		"//" + other + ":" + w.tlsPort + "/png": "",
		"/png":                                  "",
	} {
		all = append(all, attempt{name: "https to " + to, url: w.tls(host, "/go?to="+escape(to)), reason: reason})
	}
	return all
}

// escape is for a URL in another one's query.
func escape(text string) string {
	return strings.NewReplacer("%", "%25", "&", "%26", "#", "%23", "+", "%2B", "?", "%3F", ";", "%3B").Replace(text)
}

// certificates are servers that cannot prove their names.
func certificates(t *testing.T, w *world) []attempt {
	good, wrong, expired, own, stranger := w.host(publicIP), w.host(publicIP), w.host(publicIP), w.host(publicIP), w.host(publicIP)
	forName := func(name string) *x509.Certificate {
		c := template(name)
		c.DNSNames = []string{name}
		return c
	}
	w.show(t, wrong, forName(good), w.ca)
	old := forName(expired)
	old.NotAfter = time.Now().Add(-time.Hour)
	w.show(t, expired, old, w.ca)
	w.show(t, own, forName(own), nil)
	w.show(t, stranger, forName(stranger), newAuthority(t))
	const tlsFailure = "TLS failure"
	return []attempt{
		{name: "a good certificate", url: w.tls(good, "/png")},
		{name: "another name's certificate", url: w.tls(wrong, "/png"), reason: tlsFailure},
		{name: "an expired certificate", url: w.tls(expired, "/png"), reason: tlsFailure},
		{name: "a self-signed certificate", url: w.tls(own, "/png"), reason: tlsFailure},
		{name: "a stranger's certificate", url: w.tls(stranger, "/png"), reason: tlsFailure},
		{name: "https on a plain port", url: "https://" + good + ":" + w.plainPort + "/png", reason: tlsFailure},
		{name: "http on a TLS port", url: "http://" + good + ":" + w.tlsPort + "/png", reason: "HTTP 400"},
	}
}
