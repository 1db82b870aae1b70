package translate

// The limits of the answer direction. All bound what a hostile upstream can cost.
const (
	// eventBytesMax bounds one event of a stream (decision 36).
	eventBytesMax = 16 << 20

	// quickEventBytesMax bounds the events that are read in place. Larger ones
	// go the general way, which keeps to eventBytesMax.
	quickEventBytesMax = 1 << 20

	// answerValuesMax bounds the JSON values of an answer or of one event.
	answerValuesMax = 2_000_000

	// openBlocksMax bounds the content blocks that a stream has open at once.
	openBlocksMax = 256

	// keepEventBytesMax is the largest event whose index is used again: a large
	// one must not hold its memory for the rest of a long stream.
	keepEventBytesMax = 16 << 10

	// tokensMax bounds a token count, so that sums stay below 2^53 and every
	// client reads them exactly.
	tokensMax = 1 << 50

	// textBytesPerToken is what output tokens are estimated by (operator's
	// contract, "What is recorded").
	textBytesPerToken = 4

	// errorBodyBytesMax and errorValuesMax bound an error body that is searched
	// for its message, errorMessageBytesMax the message.
	errorBodyBytesMax    = 1 << 20
	errorValuesMax       = 10_000
	errorMessageBytesMax = 4 << 10

	// modelNameBytesMax bounds a model's name in errors and records.
	modelNameBytesMax = 512

	// modelPagesMax and modelsMax bound the model list, modelIDBytesMax an id or
	// a cursor in it.
	modelPagesMax   = 20
	modelsMax       = 20_000
	modelIDBytesMax = 512
)
