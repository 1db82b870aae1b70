package translate

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestUpstreamErrorRows(t *testing.T) {
	const body = `{"type":"error","error":{"type":"whatever","message":"Why \u00e9\n"},"request_id":"req_1"}`
	rows := map[int]Error{
		400: {Status: 400, Type: "invalid_request_error"},
		401: {Status: 401, Type: "invalid_request_error", Code: "invalid_api_key"},
		402: {Status: 402, Type: "insufficient_quota", Code: "insufficient_quota"},
		403: {Status: 403, Type: "permission_error"},
		404: {Status: 404, Type: "invalid_request_error", Code: "model_not_found", Param: "model"},
		413: {Status: 413, Type: "invalid_request_error", Code: "request_too_large"},
		429: {Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded"},
		500: {Status: 500, Type: "server_error"},
		503: {Status: 503, Type: "server_error", Code: "overloaded"},
		504: {Status: 504, Type: "server_error", Code: "timeout"},
	}
	r := Reply{Model: "gpt-9"}
	for status := -1; status < 1100; status++ {
		row := status
		switch _, named := rows[status]; {
		case status == 529:
			row = 503
		case named:
		case status >= 400 && status <= 499:
			row = 400
		default:
			row = 500
		}
		want := rows[row]
		want.Message = "Why é\n"
		if row == 404 {
			want.Message = "The model `gpt-9` does not exist or you do not have access to it."
		}
		if got := r.UpstreamError(status, []byte(body)); *got != want {
			t.Errorf("%d: got %+v, want %+v", status, *got, want)
		}
		// A body that is not the upstream's JSON changes only the message.
		got := r.UpstreamError(status, []byte("no healthy upstream"))
		if row != 404 && (got.Message == "" || got.Message == want.Message || strings.Contains(got.Message, "healthy")) {
			t.Errorf("%d: plain text gives %q", status, got.Message)
		}
		if want.Message = got.Message; *got != want {
			t.Errorf("%d: plain text gives %+v, want %+v", status, *got, want)
		}
	}
}

func TestUpstreamErrorBodies(t *testing.T) {
	const ours = "The upstream failed to answer the request."
	long := strings.Repeat("é", errorMessageBytesMax)
	for _, c := range []struct{ name, body, want string }{
		{"the upstream's", `{"type":"error","error":{"details":null,"type":"api_error","message":"Why"}}`, "Why"},
		{"white space around", " \n{\"error\":{\"message\":\"Why\"}}\n", "Why"},
		{"half of a pair", `{"error":{"message":"a\ud83d"}}`, "a\uFFFD"},
		{"empty", ``, ours},
		{"HTML", `<html><body>502 Bad Gateway</body></html>`, ours},
		{"plain text", `upstream connect error`, ours},
		{"an array", `[{"error":{"message":"Why"}}]`, ours},
		{"no error", `{"message":"Why"}`, ours},
		{"an error that is a text", `{"error":"Why"}`, ours},
		{"a message that is none", `{"error":{"message":{"text":"Why"}}}`, ours},
		{"an empty message", `{"error":{"message":""}}`, ours},
		{"cut off", `{"error":{"message":"Why"}`, ours},
		{"not UTF-8", "{\"error\":{\"message\":\"Why\xff\"}}", ours},
		{"too deep", `{"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `,"error":{"message":"Why"}}`, ours},
		{"too many values", `{"x":[` + strings.Repeat("1,", errorValuesMax) + `1],"error":{"message":"Why"}}`, ours},
		{"too large", `{"x":"` + strings.Repeat("x", errorBodyBytesMax) + `","error":{"message":"Why"}}`, ours},
		{"long", `{"error":{"message":"` + long + `"}}`, long[:errorMessageBytesMax] + "…"},
		{"long, cut in a character", `{"error":{"message":"x` + long + `"}}`, ("x" + long)[:errorMessageBytesMax-1] + "…"},
	} {
		var r Reply
		if got := r.UpstreamError(500, []byte(c.body)); got.Message != c.want || !utf8.ValidString(got.Message) {
			t.Errorf("%s: got %.80q, want %.80q", c.name, got.Message, c.want)
		}
	}
}

// TestGatewayKey: the client sees no word of a key that is not its own
// (decision 39).
func TestGatewayKey(t *testing.T) {
	const body = `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`
	r := Reply{Model: "m", GatewayKey: true}
	for _, status := range []int{401, 403} {
		for _, body := range []string{body, "", "invalid x-api-key"} {
			got := AppendEnvelope(nil, r.UpstreamError(status, []byte(body)))
			if string(got) != `{"error":{"message":"The upstream failed to answer the request.","type":"server_error","param":null,"code":null}}` {
				t.Errorf("%d %q: %s", status, body, got)
			}
		}
	}
	if got := r.UpstreamError(429, []byte(body)); got.Status != 429 || got.Message != "invalid x-api-key" {
		t.Errorf("429: %+v", *got)
	}
	r.GatewayKey = false
	if got := r.UpstreamError(401, []byte(body)); got.Status != 401 || got.Message != "invalid x-api-key" || got.Code != "invalid_api_key" {
		t.Errorf("the client's own key: %+v", *got)
	}
}

func TestModelNotFound(t *testing.T) {
	var r Reply
	if got := r.UpstreamError(404, nil); got.Param != "" || got.Message == "" || strings.Contains(got.Message, "``") {
		t.Errorf("without a model: %+v", *got)
	}
	r.Model = strings.Repeat("é", modelNameBytesMax)
	got := r.UpstreamError(404, nil)
	if len(got.Message) > modelNameBytesMax+100 || !utf8.ValidString(got.Message) {
		t.Errorf("a long name gives %d bytes", len(got.Message))
	}
}

func TestEdgeErrors(t *testing.T) {
	for _, c := range []struct {
		got  *Error
		want Error // but for the message
	}{
		{MissingKey(), Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Field: "authorization"}},
		{TooLarge(), Error{Status: 413, Type: "invalid_request_error", Code: "request_too_large", Field: "request_body"}},
		{EmptyBody(), Error{Status: 400, Type: "invalid_request_error", Field: "request_body"}},
		{UnsupportedEncoding(), Error{Status: 400, Type: "invalid_request_error", Field: "content_encoding"}},
		{NoRoute(), Error{Status: 404, Type: "invalid_request_error", Field: "path"}},
		{WrongMethod(), Error{Status: 405, Type: "invalid_request_error", Field: "method"}},
		{BadUpstream(), Error{Status: 500, Type: "server_error"}},
		{Internal(), Error{Status: 500, Type: "server_error"}},
	} {
		c.want.Message = c.got.Message
		if *c.got != c.want || c.got.Message == "" || c.got.Error() != c.got.Message {
			t.Errorf("got %+v, want %+v", *c.got, c.want)
		}
	}
	if got := UnsupportedEncoding().Message; got != "content-encoding: is not supported" {
		t.Errorf("content-encoding: %q", got)
	}
}

func TestEnvelope(t *testing.T) {
	e := &Error{Message: "a\"b\nc é <&> \xff", Type: "t", Param: "p", Code: "c"}
	const want = `{"error":{"message":"a\"b\nc é <&> ` + "\uFFFD" + `","type":"t","param":"p","code":"c"}}`
	if got := AppendEnvelope([]byte("x"), e); string(got) != "x"+want || !json.Valid(got[1:]) {
		t.Errorf("got %s, want %s", got, want)
	}
	e.Param, e.Code = "", ""
	if got := string(AppendEvent(nil, e)); got != "data: "+strings.Replace(want, `"p","code":"c"`, `null,"code":null`, 1)+"\n\ndata: [DONE]\n\n" {
		t.Errorf("event %q", got)
	}
}

func FuzzUpstreamError(f *testing.F) {
	f.Add(529, []byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), true)
	f.Add(404, []byte(`[1]`), false)
	f.Fuzz(func(t *testing.T, status int, body []byte, own bool) {
		r := Reply{Model: "m", GatewayKey: own}
		e := r.UpstreamError(status, body)
		row := rowOf(e.Status)
		if row.status != e.Status || row.kind != e.Type || row.code != e.Code || e.Message == "" || !json.Valid(AppendEnvelope(nil, e)) {
			t.Fatalf("%d %q: %+v", status, body, *e)
		}
	})
}
