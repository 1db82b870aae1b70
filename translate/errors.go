package translate

import "ezat.io/chat-completions/translate/internal/jsontext"

// Error is a refusal of ours, a fault of the upstream, or our own bug, in the
// one shape that clients know: OpenAI's error envelope (contract, "Errors").
type Error struct {
	// Status is the HTTP status of the answer: one of the contract's table.
	Status int
	// Message is the text for the client. Refusals name the field first, with
	// the path that the contract's table uses: `messages[0].content[1]: …`.
	Message string
	// Type, Param and Code are OpenAI's; an empty Param or Code is sent as null.
	Type, Param, Code string
	// Field is the top-level request field that a refusal is about, from a fixed
	// set of names, for the counter ezat.refusals.<field>. Empty for faults of
	// the upstream.
	Field string
}

// Error makes *Error usable as an error in tests and logs of the host.
func (e *Error) Error() string { return e.Message }

// errorRow is a row of the contract's error table, with a short text of ours
// for answers that bring none.
type errorRow struct {
	status           int
	kind, code, text string
}

var errorRows = [...]errorRow{
	{400, "invalid_request_error", "", "The request was refused."},
	{401, "invalid_request_error", "invalid_api_key", "The API key is missing or not valid."},
	{402, "insufficient_quota", "insufficient_quota", "The balance is used up, or a spend limit is reached."},
	{403, "permission_error", "", "The request is not permitted."},
	{404, "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."},
	{413, "invalid_request_error", "request_too_large", "The request is too large."},
	{429, "rate_limit_error", "rate_limit_exceeded", "Too many requests. Wait before you try again."},
	{500, "server_error", "", "The upstream failed to answer the request."},
	{503, "server_error", "overloaded", "There is no capacity right now. Try again later."},
	{504, "server_error", "timeout", "The answer took too long."},
}

// rowOf finds the row for an upstream's status (decision 40): those of the table
// keep theirs, 529 is 503, other 4xx are 400, everything else is 500.
func rowOf(status int) *errorRow {
	switch {
	case status == 529:
		status = 503
	case status < 400 || status > 499:
		status = max(status, 500) // 1xx to 3xx are no answers to a request
	}
	fallback := 500
	if status < 500 {
		fallback = 400
	}
	var other *errorRow
	for i := range errorRows {
		switch errorRows[i].status {
		case status:
			return &errorRows[i]
		case fallback:
			other = &errorRows[i]
		}
	}
	return other
}

// error makes the answer of a row; without a message the row's own text is sent.
func (row *errorRow) error(message string) *Error {
	if message == "" {
		message = row.text
	}
	return &Error{Status: row.status, Message: message, Type: row.kind, Code: row.code}
}

// UpstreamError translates an HTTP error of the upstream, or of the proxy itself
// (a body that is not the upstream's JSON). The status decides the row of the
// contract's table; the upstream's text passes through (decisions 39 and 40).
func (r *Reply) UpstreamError(status int, body []byte) *Error {
	return r.upstreamError(status, bodyMessage(body))
}

func (r *Reply) upstreamError(status int, message string) *Error {
	if r.GatewayKey && (status == 401 || status == 403) {
		// The client has no part in the gateway's own key (decision 39).
		return rowOf(500).error("")
	}
	row := rowOf(status)
	if row.status == 404 && r.Model != "" {
		return modelNotFound(r.Model)
	}
	return row.error(message)
}

// modelNotFound is the 404 for a model, with the name that the client sent
// (contract, "Errors"; decision 39).
func modelNotFound(name string) *Error {
	e := rowOf(404).error("The model `" + clip(name, modelNameBytesMax) + "` does not exist or you do not have access to it.")
	e.Param = "model"
	return e
}

// eventError translates the error of a stream's error event: its type stands for
// the status that it would have had (reference on Anthropic's API, errors;
// decision 37).
func (r *Reply) eventError(v jsontext.Value) *Error {
	status := 500
	if kind := v.Get("type"); kind.Kind() == jsontext.String {
		status = statusOf(kind.Bytes())
	}
	return r.upstreamError(status, messageOf(v))
}

// statusOf is the HTTP status of an upstream's error type.
func statusOf(kind []byte) int {
	switch string(kind) {
	case "invalid_request_error":
		return 400
	case "authentication_error":
		return 401
	case "billing_error":
		return 402
	case "permission_error":
		return 403
	case "not_found_error":
		return 404
	case "conflict_error":
		return 409
	case "request_too_large":
		return 413
	case "rate_limit_error":
		return 429
	case "timeout_error":
		return 504
	case "overloaded_error":
		return 529
	}
	return 500
}

// bodyMessage is the text of an upstream's error body, "" where the body is not
// the upstream's JSON.
func bodyMessage(body []byte) string {
	if len(body) > errorBodyBytesMax {
		return ""
	}
	var doc jsontext.Doc
	if err := doc.Scan(body, jsontext.Limits{Depth: nestingLevelsMax, Values: errorValuesMax}); err != nil {
		return ""
	}
	return messageOf(doc.Root().Get("error"))
}

// messageOf is the text of an error object, bounded.
func messageOf(v jsontext.Value) string {
	message := v.Get("message")
	if message.Kind() != jsontext.String {
		return ""
	}
	return clip(message.Text(), errorMessageBytesMax)
}

// Errors that the edge finds. Those of the first group are refusals and count
// under their field.

// MissingKey: no bearer key came (operator's contract, "Headers").
func MissingKey() *Error {
	e := rowOf(401).error("authorization: is missing; send your API key as `Authorization: Bearer KEY`")
	e.Field = "authorization"
	return e
}

// TooLarge: the body is over BodyBytesMax (contract, "Errors": 413; decision 1).
func TooLarge() *Error {
	e := rowOf(413).error("request body: is over 32 MB")
	e.Field = "request_body"
	return e
}

// EmptyBody: the request has no body (decision 1).
func EmptyBody() *Error {
	e := refusal("request body: is empty")
	e.Field = "request_body"
	return e
}

// UnsupportedEncoding: the body has a content-encoding (decision 9).
func UnsupportedEncoding() *Error {
	e := refusal("content-encoding: is not supported")
	e.Field = "content_encoding"
	return e
}

// NoRoute: a path that the filter does not serve (operator's contract, "Paths").
func NoRoute() *Error {
	e := refusal("path: is not known")
	e.Status, e.Field = 404, "path"
	return e
}

// WrongMethod: a path that the filter serves, with another method (operator's
// contract, "Paths"). The answer needs an allow header.
func WrongMethod() *Error {
	e := refusal("method: is not allowed for this path")
	e.Status, e.Field = 405, "method"
	return e
}

// BadUpstream: an answer of the upstream that cannot be read (decision 40: "A
// 200 that is not a message is a 500").
func BadUpstream() *Error { return rowOf(500).error("The upstream's answer could not be read.") }

// Internal is a fault of our own.
func Internal() *Error { return rowOf(500).error("The request could not be processed.") }

// AppendEnvelope appends an error body (contract, "Errors").
func AppendEnvelope(dst []byte, e *Error) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = jsontext.AppendQuoted(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = jsontext.AppendQuoted(dst, e.Type)
	dst = append(dst, `,"param":`...)
	dst = appendNullable(dst, e.Param)
	dst = append(dst, `,"code":`...)
	dst = appendNullable(dst, e.Code)
	return append(dst, `}}`...)
}

// AppendEvent appends the end of a stream that failed: the error event, then
// [DONE] (contract, "Streaming"; decision 36).
func AppendEvent(dst []byte, e *Error) []byte {
	dst = append(dst, `data: `...)
	dst = AppendEnvelope(dst, e)
	dst = append(dst, "\n\n"...)
	return append(dst, streamEnd...)
}

// streamEnd is the last event of every stream.
const streamEnd = "data: [DONE]\n\n"

// appendNullable appends a string, null where it is empty.
func appendNullable(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, `null`...)
	}
	return jsontext.AppendQuoted(dst, text)
}
