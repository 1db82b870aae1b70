package translate

// Reply is the little that the answer needs to know of its request once the
// body is gone. It owns its memory.
type Reply struct {
	// Model is the name as the client sent it, decoded.
	Model string
	// ModelJSON is the same as the client's JSON string, quotes included.
	ModelJSON []byte
	// Stream and IncludeUsage are what the client asked for.
	Stream, IncludeUsage bool
	// GatewayKey: the key sent upstream is the gateway's own, so a refused key is
	// not the client's fault, and no word of it reaches the client (decision 39).
	GatewayKey bool
}

// Answer is what the core may not find out itself about an answer.
type Answer struct {
	// RequestID is the value of the request-id header; the answer's id is
	// chatcmpl-<RequestID>.
	RequestID string
	// Created is when the answer began, in Unix seconds.
	Created int64
}
