package translate

import (
	"encoding/base64"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

func TestImageURLs(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"https://Example.COM./a b?q=\"é\"#frag", "https://example.com/a%20b?q=%22%C3%A9%22"},
		{"HTTP://example.com", "http://example.com/"},
		{"http://example.com?x", "http://example.com/?x"},
		{"http://example.com:08080/", "http://example.com:8080/"},
		{"http://example.com/%7e\\^", "http://example.com/%7e%5C%5E"},
		{"http://8.8.8.8/", "http://8.8.8.8/"},
		{"https://[2606:4700:4700::1111]:443/x", "https://[2606:4700:4700::1111]:443/x"},
		{"http://a_b.example-1.com/", "http://a_b.example-1.com/"},
		{"http://a:/x", "http://a/x"}, {"https://a.:?x", "https://a/?x"}, {"http://[2606:4700:4700::1111]:/x", "http://[2606:4700:4700::1111]/x"},
		{"http://a:", "http://a/"}, {"http://8.8.8.8:/", "http://8.8.8.8/"},
		{"http://a/b/../c/./d", "http://a/c/d"}, {"http://a/..", "http://a/"}, {"http://a/.?../x#../y", "http://a/?../x"}, {"http://a/..b/.c/d../.../e", "http://a/..b/.c/d../.../e"},
		{"http://a/b//../c", "http://a/b/c"}, {"http://a/../../..//b", "http://a//b"}, {"http://a/%2e%2e/b", "http://a/%2e%2e/b"}, {"http://a/b\\..\\c", "http://a/b%5C..%5Cc"},

		{"ftp://a/", urlBad}, {"http:/a", urlBad}, {"http://", urlBad}, {"http:///a", urlBad}, {"http://?a", urlBad},
		{"http://:/", urlBad}, {"http://:80/", urlBad}, {"http://a::/", urlBad}, {"http://a:x/", urlBad}, {"http://a:0/", urlBad}, {"http://a:99999/", urlBad}, {"http://a:80:80/", urlBad},
		{"http://u@a/", urlBad}, {"http://u:p@a/", urlBad}, {"http://a:1@b:2/", urlBad},
		{"http://a\\b/", urlBad}, {"http://a b/", urlBad}, {"http://a%41/", urlBad}, {"http://é.com/", urlBad}, {"http://１２７.0.0.1/", urlBad},
		{"http://a..b/", urlBad}, {"http://.a/", urlBad}, {"http://a../", urlBad}, {"http://a/\r\nx: y", urlBad}, {"http://a\t/", urlBad},
		{"http://[::1%25eth0]/", urlBad}, {"http://[::g]/", urlBad}, {"http://[1:2:3]/", urlBad}, {"http://[1::2::3]/", urlBad}, {"http://::1/", urlBad},
		{"http://" + strings.Repeat("a", 64) + ".com/", urlBad}, {"http://" + strings.Repeat("a.", 127) + "com/", urlBad},
		{"http://a/" + strings.Repeat("a", 9000), urlTooLong},

		{"http://127.0.0.1/", urlNotPublic}, {"http://127.0.0.1./", urlNotPublic}, {"http://10.1.2.3/", urlNotPublic}, {"http://169.254.169.254/latest", urlNotPublic},
		{"http://0177.0.0.1/", urlNotPublic}, {"http://0x7f.1/", urlNotPublic}, {"http://0x7f000001/", urlNotPublic}, {"http://2130706433/", urlNotPublic},
		{"http://017700000001/", urlNotPublic}, {"http://127.1/", urlNotPublic}, {"http://0/", urlNotPublic}, {"http://0x/", urlNotPublic}, {"http://8.8.8.010/", urlNotPublic},
		{"http://256.1.1.1/", urlNotPublic}, {"http://1.2.3.4.5/", urlNotPublic}, {"http://0X7F.0.0.1/", urlNotPublic},
		{"http://[::1]/", urlNotPublic}, {"http://[::]/", urlNotPublic}, {"http://[::ffff:127.0.0.1]/", urlNotPublic}, {"http://[::ffff:7f00:1]/", urlNotPublic},
		{"http://[::127.0.0.1]/", urlNotPublic}, {"http://[64:ff9b::7f00:1]/", urlNotPublic}, {"http://[fe80::1]/", urlNotPublic}, {"http://[2002:7f00:1::]/", urlNotPublic},
		{"http://127.0.0.1:/", urlNotPublic}, {"http://[::1]:/", urlNotPublic}, {"http://localhost:/", urlNotPublic},
		{"http://[fd00::1]/", urlNotPublic}, {"http://[2001:db8::1]/", urlNotPublic},
		{"http://localhost/", urlNotPublic}, {"http://LocalHost.:80/", urlNotPublic}, {"http://a.localhost/", urlNotPublic},
	} {
		u, fault := ParseImageURL(c.url, false)
		got := fault
		if fault == "" {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("%.80q gives %q, want %q", c.url, got, c.want)
		}
	}
	for _, url := range []string{"http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/"} {
		if u, fault := ParseImageURL(url, true); fault != "" || u.String() != url {
			t.Errorf("%s with private addresses allowed gives %q %q", url, u, fault)
		}
	}
	if _, fault := ParseImageURL("http://0177.0.0.1/", true); fault != urlNotPublic {
		t.Error("an octal address passes where private ones are allowed")
	}
}

func TestRedirects(t *testing.T) {
	for _, c := range []struct{ from, location, want string }{
		{"http://a/x/y?q", "z", "http://a/x/z"},
		{"http://a/x/y?q", "?r", "http://a/x/y?r"},
		{"http://a/x/y?q/r", "z", "http://a/x/z"},
		{"http://a/x/y?q", "/z", "http://a/z"},
		{"https://a:444/x", "//b/z", "https://b/z"},
		{"https://a:444/x", "z", "https://a:444/z"},
		{"http://a/", "https://b", "https://b/"},
		{"http://a/x", "", "http://a/x"},
		{"http://a/x/y", "../png", "http://a/png"},
		{"http://a/x/../y/z", "../png", "http://a/png"},
		{"http://a:81/x", "//b:/./z", "http://b/z"},
		{"http://a/x", "https://b:/../z", "https://b/z"},
		{"http://a/x", "/..//b", "http://a//b"},
		{"http://a//b/c", "", "http://a//b/c"},
		{"https://a/", "http://b/", urlDowngrade},
		{"https://a/", "http://127.0.0.1/", urlNotPublic},
		{"http://a/", "//[::1]/", urlNotPublic},
		{"http://a/", "file:///etc/passwd", urlBad},
		{"http://a/", "data:image/png;base64,AAAA", urlBad},
	} {
		from, fault := ParseImageURL(c.from, false)
		if fault != "" {
			t.Fatal(c.from, fault)
		}
		u, got := from.Redirect(c.location, false)
		if got == "" {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("%s from %s leads to %q, want %q", c.location, c.from, got, c.want)
		}
	}
}

// TestReferencesOfTheRFC: the examples of RFC 3986, 5.4.1 and 5.4.2, without the
// fragments that are never sent. Other schemes are not followed, and neither is the
// old form http:g, which a strict parser may not take for a relative one.
func TestReferencesOfTheRFC(t *testing.T) {
	for _, scheme := range []string{"http:", "https:"} {
		base, fault := ParseImageURL(scheme+"//a/b/c/d;p?q", false)
		if fault != "" {
			t.Fatal(fault)
		}
		for ref, want := range map[string]string{
			"g:h": urlBad, "g": "//a/b/c/g", "./g": "//a/b/c/g", "g/": "//a/b/c/g/", "/g": "//a/g", "//g": "//g/",
			"?y": "//a/b/c/d;p?y", "g?y": "//a/b/c/g?y", "#s": "//a/b/c/d;p?q", "g#s": "//a/b/c/g", "g?y#s": "//a/b/c/g?y",
			";x": "//a/b/c/;x", "g;x": "//a/b/c/g;x", "g;x?y#s": "//a/b/c/g;x?y", "": "//a/b/c/d;p?q",
			".": "//a/b/c/", "./": "//a/b/c/", "..": "//a/b/", "../": "//a/b/", "../g": "//a/b/g",
			"../..": "//a/", "../../": "//a/", "../../g": "//a/g",

			"../../../g": "//a/g", "../../../../g": "//a/g", "/./g": "//a/g", "/../g": "//a/g",
			"g.": "//a/b/c/g.", ".g": "//a/b/c/.g", "g..": "//a/b/c/g..", "..g": "//a/b/c/..g",
			"./../g": "//a/b/g", "./g/.": "//a/b/c/g/", "g/./h": "//a/b/c/g/h", "g/../h": "//a/b/c/h",
			"g;x=1/./y": "//a/b/c/g;x=1/y", "g;x=1/../y": "//a/b/c/y",
			"g?y/./x": "//a/b/c/g?y/./x", "g?y/../x": "//a/b/c/g?y/../x", "g#s/./x": "//a/b/c/g", "g#s/../x": "//a/b/c/g",
			"http:g": urlBad,
		} {
			if want != urlBad {
				want = scheme + want
			}
			next, got := base.Redirect(ref, false)
			if got == "" {
				got = next.String()
			}
			if got != want {
				t.Errorf("%s from %s leads to %q, want %q", ref, base.String(), got, want)
			}
		}
	}
}

// TestPublicAgreesWithNetip holds the address blocks and the parsers against
// net/netip: nothing that it calls private, loopback, link-local or multicast is
// public here, and both read the same addresses.
func TestPublicAgreesWithNetip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	public := 0
	for range 200_000 {
		var b [16]byte
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		v4 := netip.AddrFrom4([4]byte(b[:4]))
		mine, ok := parseIPv4(v4.String())
		if !ok || mine != ipv4(b[0])<<24|ipv4(b[1])<<16|ipv4(b[2])<<8|ipv4(b[3]) {
			t.Fatalf("%s is read as %x", v4, mine)
		}
		if mine.public() && !v4.IsGlobalUnicast() || mine.public() && v4.IsPrivate() {
			t.Fatalf("%s counts as public", v4)
		}
		if random.IntN(2) == 0 {
			b[0] = 0x20 | b[0]&0x1F
		}
		for i := range 8 { // runs of zeros, so that :: is spelled
			if random.IntN(3) == 0 {
				b[2*i], b[2*i+1] = 0, 0
			}
		}
		v6 := netip.AddrFrom16(b)
		six, ok := parseIPv6(v6.String())
		if !ok {
			t.Fatalf("%s is not read", v6)
		}
		for i := range six {
			if six[i] != uint16(b[2*i])<<8|uint16(b[2*i+1]) {
				t.Fatalf("%s is read as %x", v6, six)
			}
		}
		if six.public() {
			public++
			if !v6.IsGlobalUnicast() || v6.IsPrivate() || v6.Is4In6() {
				t.Fatalf("%s counts as public", v6)
			}
		}
	}
	if public < 10_000 {
		t.Errorf("only %d public addresses drawn: the test proves little", public)
	}
}

func FuzzImageURL(f *testing.F) {
	f.Add("https://example.com/a?b#c", "//d/e")
	f.Add("http://[::ffff:1.2.3.4]:80", "?x")
	f.Fuzz(func(t *testing.T, url, location string) {
		u, fault := ParseImageURL(url, false)
		if fault != "" {
			return
		}
		again, fault := ParseImageURL(u.String(), false)
		if fault != "" && fault != urlTooLong || fault == "" && again != u {
			t.Fatalf("%q in clean form is %q, and that is %q %q", url, u, again, fault)
		}
		for i := range len(u.String()) {
			if c := u.String()[i]; c <= ' ' || c >= 0x7F {
				t.Fatalf("%q has a byte %x", u, c)
			}
		}
		if next, fault := u.Redirect(location, false); fault == "" {
			path, _, _ := strings.Cut(next.Path, "?")
			for segment := range strings.SplitSeq(path, "/") {
				if segment == "." || segment == ".." {
					t.Fatalf("%q from %q leads to %q", location, url, next.Path)
				}
			}
		}
	})
}

func TestDownloadedImages(t *testing.T) {
	image := func(url string) string {
		return `{"type":"image_url","image_url":{"url":"` + url + `"}}`
	}
	text := said(`{"role":"user","content":[` + image("http://a/1") + `,` + image("https://b/2") + `,` + image("http://a/1") + `]}`)
	parser := Parser{Images: ImagePolicy{HTTP: true, HTTPS: true}}
	r, refused := parser.Parse([]byte(text))
	if refused != nil {
		t.Fatal(refused)
	}
	p, refused := Decide(r, plainEnv())
	if refused != nil {
		t.Fatal(refused)
	}
	if len(p.Fetches) != 2 || p.Fetches[0].Uses != 2 || p.Fetches[1].Path != "messages[0].content[1].image_url.url" {
		t.Fatalf("fetches %+v", p.Fetches)
	}
	failing := p.Fetches[1]
	big := []byte("\x89PNG\r\n\x1a\n" + strings.Repeat("0123456789", 5000))
	small := []byte("\xff\xd8\xff\x00")
	p.Resolve([]Image{{ImageType(big), big}, {ImageType(small), small}})
	var out strings.Builder
	p.Write(func(piece []byte) { out.Write(piece) })
	part := func(kind string, data []byte) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + kind + `","data":"` + base64.StdEncoding.EncodeToString(data) + `"}}`
	}
	want := head + `,"messages":[{"role":"user","content":[` + part("image/png", big) + `,` + part("image/jpeg", small) + `,` + part("image/png", big) + `]}]}`
	if out.String() != want {
		t.Errorf("got %.200s…", out.String())
	}

	parser.Images.HTTP = false
	if _, refused = parser.Parse([]byte(text)); refused == nil || refused.Message != `messages[0].content[0].image_url.url: image downloads are turned off here; send the image as a data URL` {
		t.Errorf("a scheme that is off gives %v", refused)
	}
	parser.Images.HTTP = true
	early := `{"model":"m","messages":[{"role":"user","content":[` + image("http://10.0.0.1/") + `]},5],"tools":5}`
	if _, refused = parser.Parse([]byte(early)); refused == nil || refused.Message != `messages[0].content[0].image_url.url: could not download the image (not a public address)` {
		t.Errorf("a private address in front of other faults gives %v", refused)
	}
	if e := failing.Failed("HTTP 404"); e.Message != "messages[0].content[1].image_url.url: could not download the image (HTTP 404)" || e.Field != "messages" {
		t.Errorf("failure %+v", e)
	}
	many := strings.Repeat(image("http://a/1")+`,`, 20) + image("http://a/1")
	if _, refused = parser.Parse([]byte(said(`{"role":"user","content":[` + many + `]}`))); refused == nil || refused.Message != `messages[0].content[20].image_url.url: a request may have at most 20 image URLs` {
		t.Errorf("21 URLs give %v", refused)
	}
}
