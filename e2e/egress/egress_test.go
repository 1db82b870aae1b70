// Package egress_test holds the way out for images against attacks: the module in
// real Envoy behind the shipped envoy.yaml, with a name server and image servers on
// loopback, and nothing beyond it.
//
// Of the file only this is replaced: the name server; 127.0.0.0/8, which is narrowed so
// that some loopback addresses play public ones; the certificate authorities; and the
// question whether this machine can reach anything but itself, on which nothing here may
// depend. What is not on loopback is refused besides, so that no spelling of an address
// can lead off this machine.
package egress_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

// patience bounds every wait of these tests; nothing good comes near it.
const patience = 60 * time.Second

// The smallest files of the four types that the upstream takes.
var (
	png, _  = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	gif, _  = base64.StdEncoding.DecodeString("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
	webp, _ = base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	jpeg    = []byte("\xFF\xD8\xFF\xE0\x00\x10JFIF\x00\x01")
)

// pngOf is a file of so many bytes that begins as a PNG does. No two seeds give the
// same file.
func pngOf(size, seed int) []byte {
	return append(fmt.Appendf(slices.Clone(png), "%d ", seed), bytes.Repeat([]byte{'x'}, size)...)[:size]
}

// world is one Envoy and all that it can reach.
type world struct {
	*site
	envoy  *envoy.Envoy
	names  *nameServer
	client *http.Client

	marks atomic.Int64
	mu    sync.Mutex
	sent  map[string][]byte            // bodies that went upstream, by their marks
	say   map[string]*standin.Response // answers that are not the stand-in's own, likewise
}

// newWorld starts an Envoy. Edits come after those that keep it on loopback.
func newWorld(t *testing.T, plugin any, edits ...envoy.Edit) *world {
	t.Helper()
	w := &world{site: newSite(t), names: newNameServer(t), sent: map[string][]byte{}, say: map[string]*standin.Response{}}
	up := standin.New(standin.Options{RecordsMax: 1})
	up.Script(w.record)
	listener := httptest.NewServer(up)
	t.Cleanup(func() {
		up.Close()
		listener.CloseClientConnections()
		listener.Close()
	})
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = &http.Client{Transport: transport, Timeout: patience}
	w.envoy = envoy.New(t, envoy.Options{
		Upstreams: []string{listener.URL}, ImageCA: w.ca.path, Plugin: plugin,
		Edits: append([]envoy.Edit{onLoopback(w.names.port())}, edits...),
	})
	return w
}

// beyondLoopback is every address but those of 127.0.0.0/8 and of IPv6's ::/3, in
// which none is public.
var beyondLoopback = []string{
	"0.0.0.0/2", "64.0.0.0/3", "96.0.0.0/4", "112.0.0.0/5", "120.0.0.0/6", "124.0.0.0/7", "126.0.0.0/8", "128.0.0.0/1", "2000::/3",
}

// onLoopback replaces the name server, makes 127.0.0.0/24 the only private part of
// 127.0.0.0/8, and refuses everything that is not on loopback.
func onLoopback(port int) envoy.Edit {
	server := map[string]any{"socket_address": map[string]any{"address": localIP, "port_value": port}}
	return envoy.ImageDNS(func(c *envoy.Config, place []any) error {
		resolver := envoy.At(place, "typed_dns_resolver_config", "typed_config")
		if err := c.Add([]any{server}, envoy.At(resolver, "resolvers")...); err != nil {
			return err
		}
		if err := c.Set(false, envoy.At(resolver, "filter_unroutable_families")...); err != nil {
			return err
		}
		return editRanges(c, place, func(prefix string, bits any) []any {
			if prefix == "127.0.0.0" && bits == 8 {
				bits = 24
			}
			return []any{cidr(prefix, bits)}
		}, beyondLoopback...)
	})
}

func cidr(prefix string, bits any) any {
	return map[string]any{"address_prefix": prefix, "prefix_len": bits}
}

// editRanges replaces each range of the address filter, and adds more.
func editRanges(c *envoy.Config, place []any, edit func(prefix string, bits any) []any, more ...string) error {
	place = envoy.At(place, "resolved_address_filter", "ranges")
	list, err := c.Get(place...)
	if err != nil {
		return err
	}
	var ranges []any
	for i := range list.([]any) {
		prefix, err := c.Get(envoy.At(place, i, "address_prefix")...)
		if err != nil {
			return err
		}
		bits, err := c.Get(envoy.At(place, i, "prefix_len")...)
		if err != nil {
			return err
		}
		ranges = append(ranges, edit(prefix.(string), bits)...)
	}
	for _, text := range more {
		prefix, bits, _ := strings.Cut(text, "/")
		n, err := strconv.Atoi(bits)
		if err != nil {
			return err
		}
		ranges = append(ranges, cidr(prefix, n))
	}
	return c.Set(ranges, place...)
}

// mark is in the text of each request, so that what goes upstream for it is found.
var mark = regexp.MustCompile(`mark-\d+\.`)

func (w *world) newMark() string { return fmt.Sprintf("mark-%d.", w.marks.Add(1)) }

// record keeps what goes upstream. The stand-in itself answers, and refuses what the
// API would refuse, unless answerWith says something else.
func (w *world) record(r *standin.Recorded) *standin.Response {
	m := mark.Find(r.Body)
	if m == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[string(m)] = r.Body
	return w.say[string(m)]
}

// answerWith sets the upstream's answer to a request with a mark.
func (w *world) answerWith(mark string, reply *standin.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say[mark] = reply
}

// upstreamBody is what went upstream for a request; nil when nothing did.
func (w *world) upstreamBody(mark string) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	body := w.sent[mark]
	delete(w.sent, mark)
	return body
}

func (w *world) plain(name, path string) string {
	return "http://" + name + ":" + w.plainPort + path
}

func (w *world) tls(name, path string) string {
	return "https://" + name + ":" + w.tlsPort + path
}

// host makes a name of one address that no other test has.
func (w *world) host(addresses ...string) string {
	name := fmt.Sprintf("host-%d.test", w.marks.Add(1))
	w.names.give(name, addresses...)
	return name
}

// outcome is what became of a request with image URLs.
type outcome struct {
	status  int
	header  http.Header
	body    string
	images  []image // that the upstream got
	reached bool    // the upstream
}

type image struct {
	mediaType string
	data      []byte
}

// ask sends a chat with one image part for each URL, behind one of text.
func (w *world) ask(ctx context.Context, urls ...string) (outcome, error) {
	parts := []any{}
	for _, url := range urls {
		parts = append(parts, imagePart(url))
	}
	return w.chat(ctx, func(text any) []any {
		return []any{map[string]any{"role": "user", "content": append([]any{text}, parts...)}}
	})
}

func imagePart(url string) any {
	return map[string]any{"type": "image_url", "image_url": map[string]any{"url": url}}
}

// chat sends a chat whose messages have a text part somewhere.
func (w *world) chat(ctx context.Context, messages func(text any) []any) (outcome, error) {
	mark := w.newMark()
	body, err := json.Marshal(map[string]any{
		"model": "anthropic/claude-sonnet-5-5", "max_tokens": 64,
		"messages": messages(map[string]any{"type": "text", "text": mark}),
	})
	if err != nil {
		return outcome{}, err
	}
	o, err := w.post(ctx, body)
	sent := w.upstreamBody(mark)
	o.reached = sent != nil
	if err == nil && o.status == http.StatusOK {
		o.images, err = imagesOf(sent)
	}
	return o, err
}

func (w *world) post(ctx context.Context, body []byte) (outcome, error) {
	response, err := w.send(ctx, body)
	if err != nil {
		return outcome{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return outcome{status: response.StatusCode, header: response.Header, body: string(text)}, err
}

// send sends a chat request, with things of the client's that are nobody's business.
func (w *world) send(ctx context.Context, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.envoy.URL+"/openai/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("authorization", "Bearer key-of-the-client")
	request.Header.Set("cookie", "cookie=of-the-client")
	return w.client.Do(request)
}

// block is a content block of a message upstream.
type block struct {
	Type    string
	Source  struct{ Type, Media_type, Data string }
	Content json.RawMessage
}

// imagesOf finds the images of a body that went upstream, in order, those in tool
// results included.
func imagesOf(body []byte) ([]image, error) {
	var message struct {
		Messages []struct{ Content []block }
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, err
	}
	var found []image
	for _, m := range message.Messages {
		images, err := imagesIn(m.Content)
		if err != nil {
			return nil, err
		}
		found = append(found, images...)
	}
	return found, nil
}

func imagesIn(blocks []block) ([]image, error) {
	var found []image
	for _, b := range blocks {
		switch b.Type {
		case "image":
			data, err := base64.StdEncoding.Strict().DecodeString(b.Source.Data)
			if err != nil || b.Source.Type != "base64" {
				return nil, fmt.Errorf("a source of type %q: %v", b.Source.Type, err)
			}
			found = append(found, image{b.Source.Media_type, data})
		case "tool_result":
			var inner []block
			if err := json.Unmarshal(b.Content, &inner); err != nil {
				return nil, err
			}
			images, err := imagesIn(inner)
			if err != nil {
				return nil, err
			}
			found = append(found, images...)
		}
	}
	return found, nil
}

// within waits for a channel that something else is to close.
func within(t *testing.T, what string, closed <-chan struct{}) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// wantServed fails the test unless the upstream got these files.
func wantServed(t *testing.T, o outcome, mediaType string, files ...[]byte) {
	t.Helper()
	if o.status != 200 || !strings.Contains(o.body, `"object":"chat.completion"`) {
		t.Errorf("status %d: %s", o.status, o.body)
		return
	}
	if len(o.images) != len(files) {
		t.Errorf("the upstream got %d images, want %d", len(o.images), len(files))
		return
	}
	for i, got := range o.images {
		if got.mediaType != mediaType {
			t.Errorf("image %d is of type %q, want %q", i, got.mediaType, mediaType)
		}
		if !bytes.Equal(got.data, files[i]) {
			t.Errorf("image %d, of %d bytes, is not the file of %d bytes", i, len(got.data), len(files[i]))
		}
	}
}

// wantRefused fails the test unless the client was told so in the contract's words,
// and the upstream nothing at all.
func wantRefused(t *testing.T, o outcome, message string) {
	t.Helper()
	want, err := json.Marshal(map[string]any{"error": struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}{Message: message, Type: "invalid_request_error"}})
	if err != nil {
		t.Fatal(err)
	}
	if o.status != 400 || o.body != string(want) || o.header.Get("content-type") != "application/json" {
		t.Errorf("got  %d %s\nwant 400 %s", o.status, o.body, want)
	}
	if o.reached {
		t.Error("the upstream was asked")
	}
}

// failed is the contract's text for the image behind a request's text.
func failed(reason string) string {
	return "messages[0].content[1].image_url.url: could not download the image (" + reason + ")"
}

// wantOnLoopback fails the test when anything was connected to that is not one of the
// public addresses here.
func (w *world) wantOnLoopback(t *testing.T) {
	t.Helper()
	w.wantUntouched(t)
	lines, err := w.envoy.ImageLog()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if to := line.Fields["upstream"]; to != "-" && !strings.HasPrefix(to, "127.0.1.") {
			t.Errorf("a connection went to %s: %s", to, line.Line)
		}
	}
}
