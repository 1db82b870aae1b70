package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// APIError is a refusal as the Messages API words it. Wording is realistic
// but not promised by the API, so nothing may match on Message; Status and
// Type are what clients go by.
type APIError struct {
	Status  int    // HTTP status
	Type    string // error.type of the envelope
	Message string // error.message of the envelope
}

func (e *APIError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Type, e.Message)
}

// Body returns the error envelope, one JSON object without a line feed.
func (e *APIError) Body(requestID string) []byte {
	dst := []byte(`{"type":"error","error":{"type":`)
	dst = appendString(dst, e.Type)
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, e.Message)
	dst = append(dst, `},"request_id":`...)
	dst = appendString(dst, requestID)
	return append(dst, '}')
}

// Event returns the error as the event that ends a stream.
func (e *APIError) Event(requestID string) []byte {
	event := append([]byte("event: error\ndata: "), e.Body(requestID)...)
	return append(event, "\n\n"...)
}

// invalid makes the 400 that nearly every broken rule ends in.
func invalid(format string, args ...any) *APIError {
	return &APIError{http.StatusBadRequest, "invalid_request_error", fmt.Sprintf(format, args...)}
}

func unauthorized(message string) *APIError {
	return &APIError{http.StatusUnauthorized, "authentication_error", message}
}

func notFound(message string) *APIError {
	return &APIError{http.StatusNotFound, "not_found_error", message}
}

func tooLarge() *APIError {
	return &APIError{http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum size"}
}

// appendString appends s as a JSON string without the HTML escapes that
// encoding/json adds by default; the live API does not add them either.
func appendString(dst []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		// Encoding a string cannot fail: invalid UTF-8 is replaced.
		panic(err)
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})...)
}
