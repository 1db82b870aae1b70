package translate

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

// modelNotFound is the contract's 404 with the name that the client sent
// (decision 39).
func modelNotFound(name string) *Error {
	return &Error{
		Status:  404,
		Message: "The model `" + name + "` does not exist or you do not have access to it.",
		Type:    "invalid_request_error",
		Param:   "model",
		Code:    "model_not_found",
	}
}
