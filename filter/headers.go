package main

import (
	"slices"
	"strconv"
	"strings"

	"ezat.io/chat-completions/translate"
)

// Which headers pass, both ways. operator.md, "Headers", names what must not
// pass; what is added here to its list says why. Everything else passes: other
// filters of the operator put headers of theirs on a request, for routing,
// tracing or limits.

// dropsUpstream tells whether a header of the client's never reaches the upstream.
func dropsUpstream(name string) bool {
	return slices.Contains(droppedUpstream[:], name) || hasPrefix(name, droppedUpstreamPrefixes[:]...)
}

// Tables: as a switch over strings they would be several times their size in
// the module.
var droppedUpstream = [...]string{
	// The client's credentials, whatever they are called: the one that goes
	// up is set anew. Cookies belong to the operator's domain.
	"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie",
	// They describe the old body, or an encoding of the answer that could
	// not be read.
	"content-length", "content-encoding", "content-type", "content-md5", "content-digest",
	"repr-digest", "digest", "accept-encoding",
	// With one of these the upstream could answer a GET without the body, or
	// with a part of it.
	"range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
	// A browser's: the upstream refuses keys in requests that come from web
	// pages, and the page is the operator's affair.
	"origin", "referer",
	// The filter says itself how long an answer may take (decision 45).
	timeoutHeader, "x-envoy-upstream-rq-per-try-timeout-ms",
}

// anthropic-*: a version or beta of the client's choice changes the meaning of
// the translated request, which is the filter's. sec-*: see origin.
var droppedUpstreamPrefixes = [...]string{"openai-", "x-stainless-", "x-ezat-", "anthropic-", "sec-", "access-control-"}

// dropsClient tells whether a header of the upstream's never reaches the client.
func dropsClient(name string) bool {
	return slices.Contains(droppedClient[:], name) || hasPrefix(name, "access-control-")
}

var droppedClient = [...]string{
	// operator.md: the upstream's organization headers.
	"anthropic-organization-id", "anthropic-workspace-id", "openai-organization", "openai-project",
	// They describe the old body.
	"content-length", "content-encoding", "content-md5", "content-digest", "repr-digest", "digest",
	"etag", "last-modified", "accept-ranges", "content-range", "content-disposition", "trailer",
	// They would speak for the operator's domain: cookies of the upstream's,
	// transport and reporting rules, challenges, redirects.
	"set-cookie", "strict-transport-security", "alt-svc", "nel", "report-to", "reporting-endpoints",
	"content-security-policy", "www-authenticate", "location",
}

func hasPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

const (
	// timeoutHeader bounds one request in Envoy's router; 0 takes the bound away.
	timeoutHeader = "x-envoy-upstream-rq-timeout-ms"
	sessionHeader = "x-ezat-session"

	jsonType   = "application/json"
	streamType = "text/event-stream; charset=utf-8"
)

// lookup is the first value of a header in a list of pairs.
func lookup(pairs [][2]string, name string) string {
	for _, p := range pairs {
		if lower(p[0]) == name {
			return p[1]
		}
	}
	return ""
}

// lower is strings.ToLower without its tables: names of headers are ASCII, and
// Envoy's are lower-case already.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// bearer is the key of an authorization header, "" when there is none. Keys
// with white space inside are none.
func bearer(authorization string) string {
	scheme, key, ok := strings.Cut(strings.TrimSpace(authorization), " ")
	if !ok || lower(scheme) != "bearer" {
		return ""
	}
	key = strings.TrimSpace(key)
	if strings.ContainsAny(key, " \t") {
		return ""
	}
	return key
}

// isIdentity tells whether a content-encoding means that the bytes are plain.
func isIdentity(encoding string) bool {
	e := lower(strings.TrimSpace(encoding))
	return e == "" || e == "identity"
}

// isEventStream reads a content-type.
func isEventStream(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	return lower(strings.TrimSpace(t)) == "text/event-stream"
}

// contentLength is the value of the header, -1 when it is absent or no number.
// More digits than fit are more bytes than any limit.
func contentLength(pairs [][2]string) int64 {
	v := lookup(pairs, "content-length")
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	switch {
	case err == nil && n >= 0:
		return n
	case v != "" && strings.Trim(v, "0123456789") == "":
		return 1<<63 - 1
	}
	return -1
}

// setUpstreamHeaders puts the upstream's headers in the place of the client's:
// the filter's own, more, and those of the client's that pass.
func (x *exchange) setUpstreamHeaders(path string, more ...[2]string) error {
	c := &x.plugin.config
	x.authority = lookup(x.requestHeaders, ":authority")
	if c.authority != "" {
		x.authority = c.authority
	}
	out := append(x.plugin.takePairs(), [2]string{":path", path})
	if x.authority != "" {
		out = append(out, [2]string{":authority", x.authority})
	}
	out = append(out, x.credentialHeaders()...)
	out = append(out, [2]string{"anthropic-version", c.version}, [2]string{"accept-encoding", "identity"})
	out = append(out, more...)
	out = appendOthers(out, x.requestHeaders, dropsUpstream)
	err := x.host.SetHeaders(RequestHeaders, out)
	x.plugin.givePairs(out)
	return err
}

// setClientHeaders puts the client's headers in the place of the upstream's:
// the filter's own, more, and those of the upstream's that pass.
func (x *exchange) setClientHeaders(status int, more ...[2]string) error {
	out := append(x.plugin.takePairs(), [2]string{":status", strconv.Itoa(status)})
	out = append(x.appendOwnHeaders(out, x.answerHeaders), more...)
	out = appendOthers(out, x.answerHeaders, dropsClient)
	err := x.host.SetHeaders(ResponseHeaders, out)
	x.plugin.givePairs(out)
	return err
}

// appendOthers appends the pairs whose names are not in out yet and that are not
// to be dropped.
func appendOthers(out, pairs [][2]string, drops func(name string) bool) [][2]string {
	own := out
	for _, p := range pairs {
		name := lower(p[0])
		if !slices.ContainsFunc(own, func(o [2]string) bool { return o[0] == name }) && !drops(name) {
			out = append(out, p)
		}
	}
	return out
}

// credentialHeaders are the headers that carry the client's key up.
func (x *exchange) credentialHeaders() [][2]string {
	switch x.plugin.config.credentials {
	case clientKey:
		return [][2]string{{"x-api-key", x.key}}
	case bearerKey:
		return [][2]string{{"authorization", "Bearer " + x.key}}
	}
	return nil
}

// appendOwnHeaders appends the headers that the filter puts on every answer.
// pairs are those of the upstream's answer, if any.
func (x *exchange) appendOwnHeaders(out, pairs [][2]string) [][2]string {
	if x.requestID == "" {
		x.nameRequest("")
	}
	out = append(out, [2]string{"request-id", x.requestID}, [2]string{"x-request-id", x.requestID})
	if slices.ContainsFunc(pairs, isRateLimit) {
		out = append(out, rateLimits(pairs, x.host.Now()/1_000_000_000)...)
	}
	return out
}

// replyHeaders are the headers of a reply of ours. pairs are those of the
// upstream's answer that it stands for, if any.
func (x *exchange) replyHeaders(pairs [][2]string) [][2]string {
	headers := [][2]string{{"content-type", jsonType}}
	for _, p := range pairs {
		name := lower(p[0])
		if hasPrefix(name, "retry-after", "x-should-retry", "anthropic-ratelimit-") {
			headers = append(headers, [2]string{name, p[1]})
		}
	}
	return x.appendOwnHeaders(headers, pairs)
}

// isRequestID tells whether a value may become the id of an answer: it stands
// in headers and, unescaped, in JSON.
func isRequestID(s string) bool {
	if s == "" || len(s) > requestIDBytesMax {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && strings.IndexByte("-_.:~+/=", c) < 0 {
			return false
		}
	}
	return true
}

// nameRequest settles the request id: the upstream's, else Envoy's, else one
// of our own from what tells this stream from all others.
func (x *exchange) nameRequest(upstream string) {
	if isRequestID(upstream) {
		x.requestID = upstream
		return
	}
	if x.requestID != "" {
		return
	}
	x.requestID = "req_" + strconv.FormatInt(x.began, 16) + "_" +
		strconv.FormatInt(x.numberProperty("connection", "id"), 16) + "_" + strconv.FormatUint(uint64(x.id), 16)
}

// numberProperty is a property that is a number: eight bytes, the lowest first.
// It is 0 when the host has none.
func (x *exchange) numberProperty(path ...string) int64 {
	value, _ := x.host.Property(path...)
	if len(value) != 8 {
		return 0
	}
	var n uint64
	for i := range len(value) {
		n |= uint64(value[i]) << (8 * i)
	}
	return int64(n)
}

// envelope is an error as the client's body.
func envelope(e *translate.Error) []byte {
	return translate.AppendEnvelope(nil, e)
}
