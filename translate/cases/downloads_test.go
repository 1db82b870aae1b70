package cases

import (
	"strings"
	"testing"
)

const downloading = `What.
rule: a
-- request.json --
{"model":"m"}
-- download.request --
GET /a.png
authority: img.example.test
x-image-scheme: https
-- download.quoted --
"\x89PNG"
-- download-2.request --
GET /b.png
authority: img.example.test
x-image-scheme: http
-- download-2 --
404
-- upstream.request.json --
{"model":"m"}
`

func asked(path, scheme string, more ...[2]string) Sent {
	return Sent{Method: "GET", Path: path, Header: append(Header{
		{"authority", "img.example.test"}, {"x-image-scheme", scheme}, {"accept-encoding", "identity"},
	}, more...)}
}

func TestDownloadsAreAnsweredInAnyOrder(t *testing.T) {
	c := parse(t, downloading)
	d := c.PlayDownloads()
	if a := d.Answer(asked("/b.png", "http")); a.Status != 404 {
		t.Errorf("b: %+v", a)
	}
	if a := d.Answer(asked("/a.png", "https")); a.Status != 200 || string(a.Body) != "\x89PNG" {
		t.Errorf("a: %+v", a)
	}
	if a := d.Answer(asked("/a.png", "https")); a.Status != 500 {
		t.Errorf("a again: %+v", a)
	}
	if n := len(d.Sent()); n != 3 {
		t.Errorf("%d requests are remembered", n)
	}
}

func TestCompareDownloads(t *testing.T) {
	both := []Sent{asked("/b.png", "http"), asked("/a.png", "https")}
	for _, test := range []struct {
		name  string
		level Level
		sent  []Sent
		want  string // "" when all fits
	}{
		{"both", Wasm, both, ""},
		{"both, as the core knows them", Core, both, ""},
		{"none", Core, nil, "download of /a.png: it was not asked for"},
		{"one", Wasm, both[:1], "download of /a.png: it was not asked for"},
		{"one too many", Wasm, append(both[:2:2], asked("/c.png", "http")), "/c.png of img.example.test was asked for"},
		{"one twice", Wasm, append(both[:2:2], both[0]), "/b.png of img.example.test was asked for"},
		{"another scheme", Core, []Sent{both[0], asked("/a.png", "http")}, "x-image-scheme"},
		{"a key", Wasm, []Sent{both[0], asked("/a.png", "https", [2]string{"authorization", "x"})}, "authorization"},
		{"a cookie", Wasm, []Sent{both[0], asked("/a.png", "https", [2]string{"cookie", "x"})}, "cookie"},
		{"a header of the client", Wasm, []Sent{both[0], asked("/a.png", "https", [2]string{"x-stainless-os", "x"})}, "x-stainless-os"},
		{"packed", Wasm, []Sent{both[0], {Method: "GET", Path: "/a.png", Header: Header{{"authority", "img.example.test"}, {"x-image-scheme", "https"}}}}, "accept-encoding"},
	} {
		c, o := exchange(t)
		c.Downloads = parse(t, downloading).Downloads
		o.Downloads = test.sent
		diffs := strings.Join(c.Compare(test.level, o), "\n")
		if !strings.Contains(diffs, test.want) || (diffs == "") != (test.want == "") {
			t.Errorf("%s: %q, want a difference with %q", test.name, diffs, test.want)
		}
	}
}

func TestDownloadsNeedTheirPlace(t *testing.T) {
	for _, line := range []string{"GET /a.png\n", "authority: img.example.test\n", "x-image-scheme: https\n"} {
		if _, err := Parse("x", []byte(strings.Replace(downloading, line, "", 1))); err == nil || !strings.Contains(err.Error(), "a download needs") {
			t.Errorf("without %q: %v", line, err)
		}
	}
}
