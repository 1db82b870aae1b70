package standin

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// serve starts a Server on a free port.
func serve(t *testing.T, options Options) (*Server, string) {
	t.Helper()
	s := New(options)
	listener := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		listener.Close()
	})
	return s, listener.URL
}

func send(t *testing.T, method, url, body string, header http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestServesMessages(t *testing.T) {
	s, url := serve(t, Options{})
	resp := send(t, "POST", url+"/v1/messages?beta=true", with(""), goodHeader())
	body := text(t, resp)
	if resp.StatusCode != 200 || resp.Header.Get("content-type") != "application/json" || gjson.Get(body, "type").Str != "message" {
		t.Errorf("%s %v\n%s", resp.Status, resp.Header, body)
	}
	if resp.ContentLength != int64(len(body)) {
		t.Errorf("content-length %d for %d bytes", resp.ContentLength, len(body))
	}
	recorded := s.Requests()
	if len(recorded) != 1 {
		t.Fatalf("%d requests recorded", len(recorded))
	}
	rec := recorded[0]
	if rec.Path != "/v1/messages?beta=true" || string(rec.Body) != with("") || rec.Refusal != nil || rec.Header.Get("x-api-key") != "key" ||
		rec.RequestID != resp.Header.Get("request-id") || rec.ContentLength != int64(len(rec.Body)) {
		t.Errorf("recorded %+v", rec)
	}
}

func TestRequestIDsDiffer(t *testing.T) {
	_, url := serve(t, Options{})
	seen := map[string]bool{}
	for range 20 {
		id := send(t, "POST", url+"/v1/messages", with(""), goodHeader()).Header.Get("request-id")
		if !strings.HasPrefix(id, "req_011C") || len(id) != 28 || seen[id] {
			t.Errorf("request-id %q", id)
		}
		seen[id] = true
	}
}

func TestRefusesOverHTTP(t *testing.T) {
	_, url := serve(t, Options{Keys: []string{"key"}})
	keyed := func(name, value string) http.Header {
		header := goodHeader()
		header.Del("x-api-key")
		header.Set(name, value)
		return header
	}
	for _, test := range []struct {
		name, method, path, body string
		header                   http.Header
		status                   int
		kind, says               string
	}{
		{"refused body", "POST", "/v1/messages", with(`"n":1`), goodHeader(), 400, "invalid_request_error", "n: Extra inputs are not permitted"},
		{"unknown model", "POST", "/v1/messages", with(`"model":"gpt-9"`), goodHeader(), 404, "not_found_error", "model: gpt-9"},
		{"wrong key", "POST", "/v1/messages", with(""), keyed("x-api-key", "other"), 401, "authentication_error", "invalid x-api-key"},
		{"wrong bearer", "POST", "/v1/messages", with(""), keyed("authorization", "Bearer other"), 401, "authentication_error", "Invalid bearer token"},
		{"no key", "POST", "/v1/messages", with(""), keyed("x-other", ""), 401, "authentication_error", "x-api-key header is required"},
		{"method", "GET", "/v1/messages", "", goodHeader(), 405, "invalid_request_error", "Method Not Allowed"},
		{"path", "POST", "/v1/complete", "", goodHeader(), 404, "not_found_error", "Not Found"},
		{"too large", "POST", "/v1/messages", strings.Repeat(" ", bodyBytesMax+1), goodHeader(), 413, "request_too_large", "Request exceeds the maximum size"},
		{"models without version", "GET", "/v1/models", "", http.Header{"X-Api-Key": {"key"}}, 400, "invalid_request_error", "anthropic-version: header is required"},
		{"one model, unknown", "GET", "/v1/models/gpt-9", "", goodHeader(), 404, "not_found_error", "model: gpt-9"},
		{"limit", "GET", "/v1/models?limit=0", "", goodHeader(), 400, "invalid_request_error", "limit: "},
		{"limit no number", "GET", "/v1/models?limit=x", "", goodHeader(), 400, "invalid_request_error", "limit: "},
		{"cursor", "GET", "/v1/models?after_id=x", "", goodHeader(), 400, "invalid_request_error", "'x' not found"},
		{"two cursors", "GET", "/v1/models?after_id=x&before_id=y", "", goodHeader(), 400, "invalid_request_error", "before_id: "},
	} {
		resp := send(t, test.method, url+test.path, test.body, test.header)
		body := gjson.Parse(text(t, resp))
		if resp.StatusCode != test.status || body.Get("type").Str != "error" || body.Get("error.type").Str != test.kind ||
			!strings.Contains(body.Get("error.message").Str, test.says) {
			t.Errorf("%s: %s %s", test.name, resp.Status, body.Raw)
		}
		if id := resp.Header.Get("request-id"); id == "" || body.Get("request_id").Str != id {
			t.Errorf("%s: request ids %q and %q", test.name, id, body.Get("request_id").Str)
		}
		if (resp.Header.Get("allow") != "") != (test.status == 405) {
			t.Errorf("%s: allow: %q", test.name, resp.Header.Get("allow"))
		}
	}
}

func TestListsModels(t *testing.T) {
	_, url := serve(t, Options{PageMax: 7})
	var ids []string
	path := "/v1/models?limit=1000"
	for pages := 1; ; pages++ {
		page := gjson.Parse(text(t, send(t, "GET", url+path, "", goodHeader())))
		for _, m := range page.Get("data").Array() {
			ids = append(ids, m.Get("id").Str)
			one := gjson.Parse(text(t, send(t, "GET", url+"/v1/models/"+m.Get("id").Str, "", goodHeader())))
			if one.Raw != m.Raw {
				t.Errorf("one model %s\nin the list %s", one.Raw, m.Raw)
			}
		}
		if page.Get("first_id").Str == "" || page.Get("last_id").Str != ids[len(ids)-1] {
			t.Errorf("cursors of page %d: %s", pages, page.Raw)
		}
		if !page.Get("has_more").Bool() {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		path = "/v1/models?limit=1000&after_id=" + page.Get("last_id").Str
	}
	for i, m := range models {
		if i >= len(ids) || ids[i] != m.id {
			t.Fatalf("listed %v", ids)
		}
	}
	before := gjson.Parse(text(t, send(t, "GET", url+"/v1/models?limit=2&before_id="+ids[5], "", goodHeader())))
	if before.Get("data.0.id").Str != ids[3] || before.Get("data.#").Int() != 2 || !before.Get("has_more").Bool() {
		t.Errorf("before_id: %s", before.Get("data.#.id").Raw)
	}
	beyond := gjson.Parse(text(t, send(t, "GET", url+"/v1/models?after_id="+ids[len(ids)-1], "", goodHeader())))
	if beyond.Raw != `{"data":[],"has_more":false,"first_id":null,"last_id":null}` {
		t.Errorf("after the last: %s", beyond.Raw)
	}
}

func TestScript(t *testing.T) {
	s, url := serve(t, Options{})
	s.Script(func(r *Recorded) *Response {
		if r.Refusal != nil {
			return nil
		}
		reply := JSON(529, []byte(`{"x":1}`))
		reply.Header.Set("retry-after", "7")
		reply.Header["Anthropic-Organization-Id"] = nil
		return reply
	})
	resp := send(t, "POST", url+"/v1/messages", with(""), goodHeader())
	if body := text(t, resp); resp.StatusCode != 529 || body != `{"x":1}` || resp.Header.Get("retry-after") != "7" || resp.Header.Get("anthropic-organization-id") != "" || resp.Header.Get("request-id") == "" {
		t.Errorf("scripted: %s %v %s", resp.Status, resp.Header, body)
	}
	if resp := send(t, "POST", url+"/v1/messages", with(`"n":1`), goodHeader()); resp.StatusCode != 400 {
		t.Errorf("a nil reply means the API's own: %s", resp.Status)
	}
	s.Relax(RulePrefill)
	s.Reset()
	if resp := send(t, "POST", url+"/v1/messages", with(""), goodHeader()); resp.StatusCode != 200 || len(s.Requests()) != 1 {
		t.Errorf("after Reset: %s, %d requests", resp.Status, len(s.Requests()))
	}
	if resp := send(t, "POST", url+"/v1/messages", talk(user(`"a"`), assistant(`"b"`)), goodHeader()); resp.StatusCode != 400 {
		t.Errorf("a rule is still relaxed after Reset: %s", resp.Status)
	}
	s.Relax(RulePrefill)
	if resp := send(t, "POST", url+"/v1/messages", talk(user(`"a"`), assistant(`"b"`)), goodHeader()); resp.StatusCode != 200 {
		t.Errorf("relaxed: %s", resp.Status)
	}
}

// TestPiecesAreSentAtOnce reads each piece before the next one is let go.
func TestPiecesAreSentAtOnce(t *testing.T) {
	s, url := serve(t, Options{})
	let := make(chan struct{})
	s.Script(func(*Recorded) *Response {
		reply := SSE([]byte("one"), []byte("two"), []byte("three"))
		for i := range reply.Pieces {
			reply.Pieces[i].Wait = let
		}
		reply.Trailer = http.Header{"X-Trailer": {"end"}}
		return reply
	})
	resp := send(t, "POST", url+"/v1/messages", with(""), goodHeader())
	for _, want := range []string{"one", "two", "three"} {
		let <- struct{}{}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("read %q, %v; want %q", got, err, want)
		}
	}
	if rest := text(t, resp); rest != "" || resp.Trailer.Get("x-trailer") != "end" {
		t.Errorf("rest %q, trailer %v", rest, resp.Trailer)
	}
}

func TestCutConnections(t *testing.T) {
	s, url := serve(t, Options{})
	for name, reply := range map[string]*Response{
		"before the head": {Cut: true},
		"in a stream":     {Pieces: []Piece{{Data: []byte("data: 1\n\n"), Pause: time.Millisecond}}, Cut: true},
		"in a body":       {Header: http.Header{"Content-Length": {"100"}}, Body: []byte("{"), Cut: true},
	} {
		s.Script(func(*Recorded) *Response { return reply })
		req, err := http.NewRequest("POST", url+"/v1/messages", strings.NewReader(with("")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = goodHeader()
		resp, err := http.DefaultClient.Do(req)
		if name == "before the head" {
			if err == nil {
				t.Errorf("%s: %s", name, resp.Status)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if raw, err := io.ReadAll(resp.Body); err == nil || len(raw) == 0 {
			t.Errorf("%s: read %q without an error", name, raw)
		}
		resp.Body.Close()
	}
}

func TestSilence(t *testing.T) {
	s, url := serve(t, Options{})
	s.Script(func(*Recorded) *Response { return &Response{Silent: true} })
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/messages", strings.NewReader(with("")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = goodHeader()
	done := make(chan error)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	for len(s.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	leave()
	if err := <-done; err == nil {
		t.Error("a silent server answered")
	}
}

func TestCloseEndsWaits(t *testing.T) {
	s := New(Options{})
	listener := httptest.NewServer(s)
	s.Script(func(*Recorded) *Response {
		return &Response{Pieces: []Piece{{Data: []byte("a")}, {Wait: make(chan struct{})}}}
	})
	resp := send(t, "POST", listener.URL+"/v1/messages", with(""), goodHeader())
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the answer ended well although it was waiting")
	}
	listener.Close() // hangs if a handler still waits
}

func TestRecordsAreBounded(t *testing.T) {
	s, url := serve(t, Options{RecordsMax: 3})
	for range 5 {
		send(t, "POST", url+"/v1/messages", with(""), goodHeader())
	}
	records := s.Requests()
	if len(records) != 3 || records[2].RequestID == records[1].RequestID || s.recorded != 3*len(with("")) {
		t.Errorf("%d records, %d bytes", len(records), s.recorded)
	}
	s.options.RecordsMax = 0
	for range 20 {
		s.record(&Recorded{Body: make([]byte, bodyBytesMax)})
	}
	if s.recorded > recordedBytesMax || len(s.records) != 8 {
		t.Errorf("%d bytes in %d records", s.recorded, len(s.records))
	}
}

func TestConcurrentRequests(t *testing.T) {
	s, url := serve(t, Options{RecordsMax: 4})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 10 {
				resp := send(t, "POST", url+"/v1/messages", with(`"stream":true`), goodHeader())
				if body := text(t, resp); !strings.HasSuffix(strings.TrimRight(body, "\n"), "}") {
					t.Errorf("%s %q", resp.Status, body)
				}
				s.Requests()
			}
		})
	}
	wait.Wait()
}

// TestStreamOnTheWire holds a stream against the reference's wire details.
func TestStreamOnTheWire(t *testing.T) {
	_, url := serve(t, Options{EventDelay: time.Millisecond})
	members := tools(weatherTool) + `,"stream":true,"thinking":{"type":"adaptive","display":"summarized"},` + says("Use get_weather for Oslo")
	resp := send(t, "POST", url+"/v1/messages", with(members), goodHeader())
	if resp.Header.Get("content-type") != "text/event-stream; charset=utf-8" || resp.Header.Get("request-id") == "" || resp.ContentLength != -1 {
		t.Errorf("head: %v", resp.Header)
	}
	var names []string
	var partial []string
	padded := 0
	scanner := bufio.NewScanner(resp.Body)
	scanner.Split(splitEvents)
	for scanner.Scan() {
		lines := strings.Split(scanner.Text(), "\n")
		name, isEvent := strings.CutPrefix(lines[0], "event: ")
		data, isData := strings.CutPrefix(lines[1], "data: ")
		if len(lines) != 2 || !isEvent || !isData || gjson.Get(data, "type").Str != name {
			t.Fatalf("odd event %q", scanner.Text())
		}
		names = append(names, name)
		if strings.HasSuffix(data, " ") || strings.Contains(data, " }") {
			padded++
		}
		if json := gjson.Get(data, "delta.partial_json"); json.Exists() {
			partial = append(partial, json.Str)
		}
	}
	want := "message_start content_block_start ping content_block_delta"
	if got := strings.Join(names, " "); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "content_block_stop message_delta message_stop") {
		t.Errorf("events: %s", got)
	}
	if padded == 0 || padded == len(names) {
		t.Errorf("%d of %d events are padded", padded, len(names))
	}
	if len(partial) < 3 || partial[0] != "" || strings.Join(partial, "") != `{"city": "Oslo"}` {
		t.Errorf("partial input: %q", partial)
	}
}

func splitEvents(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.Index(data, []byte("\n\n")); i >= 0 {
		return i + 2, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

func TestEvents(t *testing.T) {
	for body, want := range map[string]int{"": 0, "a": 1, "a\n\n": 1, "a\n\nb": 2, "a\n\nb\n\n": 2} {
		pieces := Events([]byte(body))
		if len(pieces) != want || string(bytes.Join(pieces, nil)) != body {
			t.Errorf("%q: %q", body, pieces)
		}
	}
}

func TestFaultsOnRequest(t *testing.T) {
	s, url := serve(t, Options{})
	ask := func(word string, members string) *http.Response {
		return send(t, "POST", url+"/v1/messages", with(says("Count from 1 to 9 "+word)+comma(members)), goodHeader())
	}
	for word, status := range map[string]int{WordRateLimited: 429, WordOverloaded: 529, WordFailMidway: 500} {
		resp := ask(word, "")
		body := gjson.Parse(text(t, resp))
		if resp.StatusCode != status || body.Get("type").Str != "error" || (resp.Header.Get("retry-after") != "") != (status == 429) {
			t.Errorf("%s: %s %v %s", word, resp.Status, resp.Header, body.Raw)
		}
	}
	if body := text(t, ask(WordFailMidway, `"stream":true`)); !strings.Contains(body, "content_block_start") || !strings.Contains(body, "event: error\ndata: {") || strings.Contains(body, "message_stop") {
		t.Errorf("failing midway: %s", body)
	}
	if body := text(t, ask(WordCutMidway, `"stream":true`)); !strings.Contains(body, "content_block_start") || strings.Contains(body, "message_stop") {
		t.Errorf("ending midway: %s", body)
	}
	if raw, err := io.ReadAll(ask(WordCutMidway, "").Body); err == nil || len(raw) == 0 {
		t.Errorf("a cut body: %q, %v", raw, err)
	}
	for _, rec := range s.Requests() {
		if rec.Refusal != nil {
			t.Errorf("a fault counts as a refusal: %v", rec.Refusal)
		}
	}
}
