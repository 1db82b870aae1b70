package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/harness"
)

// picture has the first bytes of a PNG image.
var picture = append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("pixels"), 100)...)

// servePicture serves an image, and a 404 beside it.
func servePicture(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/picture.png" {
			http.NotFound(w, r)
			return
		}
		for name := range r.Header {
			if name != "Accept" && name != "Accept-Encoding" && name != "User-Agent" {
				t.Errorf("the server sees the header %s", name)
			}
		}
		_, _ = w.Write(picture)
	}))
	t.Cleanup(s.Close)
	return s
}

// askAbout sends a request with an image to the gateway and returns its answer.
func (r *running) askAbout(t *testing.T, url string) (status int, body string) {
	t.Helper()
	base := regexp.MustCompile(`http://127\.0\.0\.1:\d+/openai/v1`).FindString(r.out.String())
	req, err := http.NewRequestWithContext(t.Context(), "POST", base+"/chat/completions", strings.NewReader(fmt.Sprintf(
		`{"model":"anthropic/claude-sonnet-5-5","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":%q}}]}]}`, url)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-of-the-client")
	req.Header.Set("Cookie", "session=of-the-client")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestImages downloads an image for a request, from a network that was allowed.
func TestImages(t *testing.T) {
	server := servePicture(t)
	r := start(t, options{imageNetworks: "127.0.0.1/32, fd00::/8", show: true})
	if !strings.Contains(r.out.String(), "http(s) URLs") {
		t.Errorf("the greeting says nothing of images: %s", r.out.String())
	}
	if status, body := r.askAbout(t, server.URL+"/picture.png?key=secret"); status != 200 || !strings.Contains(body, `"chat.completion"`) {
		t.Fatalf("%d %s", status, body)
	}
	encoded := base64.StdEncoding.EncodeToString(picture)
	until(t, &r.out, `"data": "`+encoded[:shownFileBytes]+fmt.Sprintf(`… (%d characters)"`, len(encoded)))
	authority := strings.TrimPrefix(server.URL, "http://")
	until(t, &r.log, fmt.Sprintf("image %q 200 - from %s %d bytes", authority, authority, len(picture)))
	if status, body := r.askAbout(t, server.URL+"/other.png"); status != 400 ||
		!strings.Contains(body, `messages[0].content[0].image_url.url: could not download the image (HTTP 404)`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := r.askAbout(t, "http://127.0.0.2/"); status != 400 || !strings.Contains(body, "(not a public address)") {
		t.Errorf("%d %s", status, body)
	}
	until(t, &r.log, `image "127.0.0.2" 503 dns_resolution_failure{address_denied} from - 22 bytes`)
	if strings.Contains(r.log.String(), "secret") || strings.Contains(r.log.String()+r.out.String(), "of-the-client") {
		t.Errorf("there are secrets in the log:\n%s\n%s", r.log.String(), r.out.String())
	}
}

// TestImagesOnlyPublic is the gateway as it is started without any option: this
// machine's addresses cannot be reached, however they are spelled.
func TestImagesOnlyPublic(t *testing.T) {
	server := servePicture(t)
	r := start(t, options{})
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "2130706433", "127.1"} {
		status, body := r.askAbout(t, "http://"+host+port+"/picture.png")
		if status != 400 || !strings.Contains(body, "messages[0].content[0].image_url.url: could not download the image (not a public address)") {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
}

// TestImagesOff shows a gateway without downloads.
func TestImagesOff(t *testing.T) {
	server := servePicture(t)
	r := start(t, options{noImages: true})
	if status, body := r.askAbout(t, server.URL+"/picture.png"); status != 400 || !strings.Contains(body, "messages[0].content[0].image_url.url: image downloads are turned off") {
		t.Errorf("%d %s", status, body)
	}
	if strings.Contains(r.out.String(), "http(s) URLs") {
		t.Errorf("the greeting promises images: %s", r.out.String())
	}
}

// TestImagesByFile takes clusters of other names from a file, with one scheme off.
func TestImagesByFile(t *testing.T) {
	server := servePicture(t)
	file := filepath.Join(t.TempDir(), "plugin.json")
	text := `{"images": {"http_cluster": "pictures", "https_cluster": "", "allow_private": true}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, options{config: file, imageNetworks: "127.0.0.0/8"})
	if status, body := r.askAbout(t, server.URL+"/picture.png"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if status, body := r.askAbout(t, strings.Replace(server.URL, "http:", "https:", 1)); status != 400 || !strings.Contains(body, "turned off") {
		t.Errorf("%d %s", status, body)
	}
}

// TestBadImageOptions shows what does not start, and what is said.
func TestBadImageOptions(t *testing.T) {
	for name, test := range map[string]struct {
		o    options
		want string
	}{
		"not a network":        {options{imageNetworks: "10.0.0.0/8,loopback"}, `-image-networks: "loopback"`},
		"off, but with a file": {options{noImages: true, config: "some.json"}, "-no-images and -config"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			test.o.wasm, test.o.listen, test.o.workers = modulePath, "127.0.0.1:0", 1
			err := run(ctx, test.o, io.Discard, log.New(io.Discard, "", 0))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestImageClusters finds the clusters in a configuration.
func TestImageClusters(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`:                               {"image_http", "image_https"},
		`{"images":{}}`:                    {"image_http", "image_https"},
		`{"images":{"http_cluster":""}}`:   {"image_https"},
		`{"images":{"https_cluster":"e"}}`: {"image_http", "e"},
		`{"images":{"http_cluster":"","https_cluster":""}}`: {},
		`{"images":7}`: nil,
	} {
		if got := imageClustersOf([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestImageLine shows a line whose host would be two lines.
func TestImageLine(t *testing.T) {
	got := imageLine(harness.Download{Authority: "a\nb", Status: 200, Address: netip.MustParseAddrPort("[2600::1]:443"), Bytes: 7, Duration: time.Second})
	if want := `image "a\nb" 200 - from [2600::1]:443 7 bytes 1000ms`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
