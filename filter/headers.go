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
	return droppedUpstream.has(name) || hasPrefix(name, droppedUpstreamPrefixes[:]...)
}

// nameSet is a set of header names, by their length: most names are compared with
// two or three others. (As a switch over strings the tables would be several times
// their size in the module.)
type nameSet [40][]string

func newNameSet(names ...string) (s nameSet) {
	for _, name := range names {
		s[len(name)] = append(s[len(name)], name)
	}
	return s
}

func (s *nameSet) has(name string) bool {
	return len(name) < len(s) && slices.Contains(s[len(name)], name)
}

var droppedUpstream = newNameSet(
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
	// Another path, method, host or address than those that this request goes up
	// with: a gateway upstream may obey such a word, and the client has none in it.
	"x-original-url", "x-original-uri", "x-original-host", "x-original-method", "x-rewrite-url", "x-rewrite-uri",
	"x-forwarded-host", "x-forwarded-server", "x-forwarded-port", "x-forwarded-prefix", "x-forwarded-scheme",
	"x-forwarded-path", "x-forwarded-uri", "x-forwarded-method", "x-forwarded-protocol", "x-forwarded-ssl",
	"x-host", "x-http-host-override", "x-http-method-override", "x-http-method", "x-method-override",
	"x-envoy-original-dst-host", "x-envoy-original-url",
	// The egress for images speaks with these.
	"x-image-scheme", "x-egress-details", "x-egress-flags",
)

// anthropic-*: a version or beta of the client's choice changes the meaning of
// the translated request, which is the filter's. sec-*: see origin.
var droppedUpstreamPrefixes = [...]string{"openai-", "x-stainless-", "x-ezat-", "anthropic-", "sec-", "access-control-"}

// dropsClient tells whether a header of the upstream's never reaches the client.
func dropsClient(name string) bool {
	return droppedClient.has(name) || hasPrefix(name, "access-control-", "x-envoy-")
}

var droppedClient = newNameSet(
	// operator.md: the upstream's organization headers.
	"anthropic-organization-id", "anthropic-workspace-id", "openai-organization", "openai-project",
	// They describe the old body.
	"content-length", "content-encoding", "content-md5", "content-digest", "repr-digest", "digest",
	"etag", "last-modified", "accept-ranges", "content-range", "content-disposition", "trailer",
	// They would speak for the operator's domain: cookies of the upstream's,
	// transport and reporting rules, challenges, redirects.
	"set-cookie", "strict-transport-security", "alt-svc", "nel", "report-to", "reporting-endpoints",
	"content-security-policy", "www-authenticate", "location",
	// What stands between the gateway and the model is nobody's business; x-envoy-*,
	// which goes the same way, is also what an Envoy behind this one says of itself.
	"via",
)

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
	for i := range pairs {
		if pairs[i][0] == name {
			return pairs[i][1]
		}
	}
	return ""
}

// lower is strings.ToLower without its tables, for ASCII.
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

// equalFold tells whether s is the lower-case word, in any case, without a copy.
func equalFold(s, word string) bool {
	if len(s) != len(word) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// bearer is the key of an authorization header, "" when there is none. Keys
// with white space inside are none.
func bearer(authorization string) string {
	scheme, key, ok := strings.Cut(strings.TrimSpace(authorization), " ")
	if !ok || !equalFold(scheme, "bearer") {
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
	e := strings.TrimSpace(encoding)
	return e == "" || equalFold(e, "identity")
}

// isEventStream reads a content-type.
func isEventStream(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	return equalFold(strings.TrimSpace(t), "text/event-stream")
}

// contentLength is the value of the header, -1 when it is absent or no number.
// More digits than fit are more bytes than any limit.
func contentLength(pairs [][2]string) int64 {
	v := lookup(pairs, "content-length")
	if v == "" {
		return -1
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	switch {
	case err == nil && n >= 0:
		return n
	case strings.Trim(v, "0123456789") == "":
		return 1<<63 - 1
	}
	return -1
}

// edits changes a header map into another one, with as few calls as that takes:
// each costs as much as some thousand instructions. It keeps the first failure: a
// header that the host would not remove must not go up.
type edits struct {
	host Host
	m    Map
	old  [][2]string // the map as it came
	err  error

	own  [ownHeadersMax]string // names that have been set
	owns int
}

// ownHeadersMax is the most headers that the filter itself sets on one map.
const ownHeadersMax = 16

func (e *edits) set(name, value string) {
	e.own[e.owns] = name
	e.owns++
	if e.err == nil && !e.has(name, value) {
		e.err = e.host.SetHeader(e.m, name, value)
	}
}

// has tells whether a header is there already, with this value and no other.
func (e *edits) has(name, value string) bool {
	found := false
	for i := range e.old {
		if p := &e.old[i]; p[0] == name {
			if found || p[1] != value {
				return false
			}
			found = true
		}
	}
	return found
}

// remove removes what is to be dropped, but for what has been set.
func (e *edits) remove(drops func(name string) bool) {
	for i := range e.old {
		name := e.old[i][0]
		if e.err == nil && drops(name) && !slices.Contains(e.own[:e.owns], name) {
			e.err = e.host.RemoveHeader(e.m, name)
		}
	}
}

// upstreamHeaders begins to turn the client's headers into the upstream's.
func (x *exchange) upstreamHeaders(path string) edits {
	c := &x.plugin.config
	e := edits{host: x.host, m: RequestHeaders, old: x.requestHeaders}
	e.set(":path", path)
	if c.authority != "" {
		e.set(":authority", c.authority)
	}
	if name, value := x.credentialHeader(x.key); name != "" {
		e.set(name, value)
	}
	e.set("anthropic-version", c.version)
	e.set("accept-encoding", "identity")
	return e
}

// setClientHeaders turns the upstream's headers into the client's. length is that
// of the body, or below zero where it is not known.
func (x *exchange) setClientHeaders(status int, contentType string, length int) error {
	x.nameRequest("")
	pairs := x.clientPairs()
	e := edits{host: x.host, m: ResponseHeaders, old: pairs}
	e.set(":status", decimal(status))
	e.set("content-type", contentType)
	if length >= 0 {
		e.set("content-length", strconv.Itoa(length))
	}
	e.set("request-id", x.requestID)
	e.set("x-request-id", x.requestID)
	for _, p := range x.rateLimits(pairs) {
		e.set(p[0], p[1])
	}
	e.remove(dropsClient)
	return e.err
}

// clientPairs are the answer's headers as they are now: other filters may have
// changed them while ours held them.
func (x *exchange) clientPairs() [][2]string {
	if x.answerHeaders != nil {
		return x.answerHeaders
	}
	return x.host.Headers(ResponseHeaders)
}

// decimal writes a status. The one of every day needs no memory.
func decimal(status int) string {
	if status == 200 {
		return "200"
	}
	return strconv.Itoa(status)
}

// credentialHeader is the header that carries the client's key up, "" for none.
func (x *exchange) credentialHeader(key string) (name, value string) {
	switch x.plugin.config.credentials {
	case clientKey:
		return "x-api-key", key
	case bearerKey:
		return "authorization", "Bearer " + key
	}
	return "", ""
}

// rateLimits are the upstream's limits in OpenAI's names.
func (x *exchange) rateLimits(pairs [][2]string) [][2]string {
	if !slices.ContainsFunc(pairs, isRateLimit) {
		return nil
	}
	return rateLimits(pairs, x.host.Now()/1_000_000_000)
}

// replyHeaders are the headers of a reply of ours. pairs are those of the
// upstream's answer that it stands for, if any.
func (x *exchange) replyHeaders(pairs [][2]string) [][2]string {
	x.nameRequest("")
	headers := [][2]string{{"content-type", jsonType}}
	for _, p := range pairs {
		if hasPrefix(p[0], "retry-after", "x-should-retry", rateLimitPrefix) {
			headers = append(headers, p)
		}
	}
	headers = append(headers, [2]string{"request-id", x.requestID}, [2]string{"x-request-id", x.requestID})
	return append(headers, x.rateLimits(pairs)...)
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
