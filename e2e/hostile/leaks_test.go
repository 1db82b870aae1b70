package hostile_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ezat.io/chat-completions/e2e/envoy"
)

// ours are all names that metrics of the module may have: nothing that a client or an
// upstream says is among them.
var ours = regexp.MustCompile(`^wasmcustom\.ezat\.(requests\.(ok|refused|upstream_error|failed|client_left)|refusals\.[a-z_]+|` +
	`tokens\.(prompt|cached|cache_write|completion|reasoning)|image_downloads\.(ok|failed)|first_token_ms|translate_us)$`)

// testLeaks: what clients have sent in this test and in those before it is nowhere but
// where it was sent to. Keys, texts, tools, queries and headers all had the marker in them.
func (w *world) testLeaks(t *testing.T) {
	for _, r := range w.leaky() {
		reply, err := w.send(t, r)
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
			continue
		}
		// A client's own words may come back to it, its key and its headers never.
		for _, secret := range []string{clientKey, marker + "header", marker + "query"} {
			if strings.Contains(fmt.Sprint(reply.Header, reply.Body), secret) {
				t.Errorf("%s %s: %s comes back: %v %.300q", r.Method, r.URL.Path, secret, reply.Header, reply.Body)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// The last of them: then all the others are in the log, too.
	if _, err := w.envoy.WaitAccess(ctx, func(a envoy.Access) bool { return a.Path == "/openai/v1/embeddings" }); err != nil {
		t.Fatal(err)
	}
	w.wantSilent(t)
	w.wantClosedSet(t)
	w.wantNothingOfClients(t)
}

// leaky are requests with the marker in every place, some of which fail.
func (w *world) leaky() (list []*http.Request) {
	text := marker + "text"
	all := fmt.Sprintf(`{"model":"anthropic/claude-sonnet-5-5","max_tokens":64,"user":%[1]q,"metadata":{%[1]q:%[1]q},"prompt_cache_key":%[1]q,%[1]q:%[1]q,`+
		`"tools":[{"type":"function","function":{"name":%[1]q,"description":%[1]q,"parameters":{"type":"object","properties":{%[1]q:{}}}}}],`+
		`"messages":[{"role":"system","content":%[1]q},{"role":"user","name":%[1]q,"content":[{"type":"text","text":%[1]q},{"type":"image_url","image_url":{"url":"%[2]s/png?%[3]squery"}}]},`+
		`{"role":"assistant","content":null,"tool_calls":[{"id":%[1]q,"type":"function","function":{"name":%[1]q,"arguments":"{\"a\":\"%[1]s\"}"}}]},{"role":"tool","tool_call_id":%[1]q,"content":%[1]q}]}`,
		text, w.images.url, marker)
	broken := []string{
		all, strings.Replace(all, `"user":`, `"n":`, 1), strings.Replace(all, `"role":"system"`, `"role":"`+text+`"`, 1), all[:len(all)-9],
		strings.Replace(all, "claude-sonnet-5-5", text, 1), strings.Replace(all, `"max_tokens":64`, `"functions":[]`, 1),
		strings.Replace(all, "/png", "/none", 1), strings.Replace(all, "http:", "ftp:", 1), strings.Replace(all, "sonnet", "sonnet\\u2028", 1),
		strings.Replace(all, `"type":"text"`, `"type":"`+text+`"`, 1), strings.Replace(all, `{\"a\"`, `{\"a`+text, 1),
		strings.Replace(all, `"tool_call_id":"`, `"tool_call_id":"x`, 1), question("play:leaky error;"+text, false), question("play:leaky stream;"+text, true),
	}
	w.up.play("leaky error", says("HTTP/1.1 400 Bad\r\nconnection: close\r\nx-y: "+marker+"answer\r\n\r\n"+`{"type":"error","error":{"type":"`+marker+`type","message":"`+text+`"}}`))
	w.up.play("leaky stream", says(eventHead+strings.Replace(events, "hello", text, 1)[:400]))
	for _, body := range broken {
		list = append(list, w.request(http.MethodPost, "/openai/v1/chat/completions?"+marker+"query", body))
	}
	list = append(list,
		w.request(http.MethodGet, "/openai/v1/models?"+marker+"query", ""), w.request(http.MethodGet, "/v1/elsewhere?"+marker+"query", ""),
		w.request(http.MethodDelete, "/openai/v1/chat/completions?"+marker+"query", ""), w.request(http.MethodPost, "/openai/v1/embeddings?"+marker+"query", all))
	return list
}

func (w *world) request(method, path, body string) *http.Request {
	r, err := http.NewRequest(method, w.envoy.URL+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the paths above are fine
	}
	r.Header.Set("authorization", "Bearer "+clientKey)
	for _, name := range []string{"cookie", "user-agent", "referer", "x-ezat-session", "openai-organization", "x-forwarded-for", "x-mine", "traceparent"} {
		r.Header.Set(name, marker+"header")
	}
	return r
}

func (w *world) send(t *testing.T, r *http.Request) (reply, error) {
	response, err := w.client.Do(r.WithContext(t.Context()))
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(body)}, err
}

// wantSilent: no log has the marker, and nothing that the administration shows.
func (w *world) wantSilent(t *testing.T) {
	silent := func(what, text string) {
		if i := strings.Index(strings.ToLower(text), marker); i >= 0 {
			t.Errorf("%s has what a client sent: %q", what, text[max(0, i-200):min(len(text), i+200)])
		}
	}
	silent("the log", w.envoy.Log())
	access, err := w.envoy.AccessLog()
	if err != nil {
		t.Fatal(err)
	}
	images, err := w.envoy.ImageLog()
	if err != nil {
		t.Fatal(err)
	}
	if len(access) < 100 || len(images) < 5 {
		t.Errorf("%d lines in the access log, %d of images: something is not logged", len(access), len(images))
	}
	for _, a := range access {
		// The model that was asked for is recorded, and in one case above it is the marker.
		silent("the access log", strings.ReplaceAll(a.Line, `"model":"anthropic/`+marker+`text"`, ""))
	}
	for _, a := range images {
		silent("the log of images", a.Line)
	}
	for _, page := range []string{"/stats", "/stats/prometheus", "/stats?format=json", "/config_dump?include_eds", "/clusters", "/clusters?format=json", "/listeners", "/server_info", "/certs", "/runtime", "/init_dump", "/contention"} {
		silent(page, w.adminPage(t, page))
	}
}

func (w *world) adminPage(t *testing.T, path string) string {
	t.Helper()
	response, err := http.Get(w.envoy.Admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || len(text) == 0 {
		t.Errorf("%s: %s, %d bytes, %v", path, response.Status, len(text), err)
	}
	return string(text)
}

// wantClosedSet: metrics of the module have names of the list, and there are few.
func (w *world) wantClosedSet(t *testing.T) {
	count := 0
	for line := range strings.Lines(w.adminPage(t, "/stats")) {
		name, _, _ := strings.Cut(line, ": ")
		if !strings.HasPrefix(name, "wasmcustom.") {
			continue
		}
		count++
		if !ours.MatchString(name) {
			t.Errorf("a metric is called %q", name)
		}
	}
	if count < 10 || count > 60 {
		t.Errorf("the module has %d metrics", count)
	}
}

// wantNothingOfClients: image servers see what they have to see.
func (w *world) wantNothingOfClients(t *testing.T) {
	fine := []string{"Accept", "Accept-Encoding", "User-Agent"}
	for _, r := range w.images.requests() {
		for name, values := range r.Header {
			if !slices.Contains(fine, name) || strings.Contains(fmt.Sprint(values), marker) {
				t.Errorf("an image server sees %s: %s", name, values)
			}
		}
	}
}
