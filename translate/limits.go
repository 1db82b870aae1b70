package translate

// Every limit of the core is in this file, unit last in the name. First the request:
const (
	// BodyBytesMax is the largest request body (contract, "Images and PDFs":
	// "The whole request body can be up to 32 MB"; decision 1).
	BodyBytesMax = 33_554_432

	// nestingLevelsMax bounds the depth of a body and of a call's arguments
	// (decision 5).
	nestingLevelsMax = 512

	// bodyValuesMax bounds the JSON values of a body, those in the arguments of
	// its calls included, membersMax the members of one object that the filter
	// reads (decision 46).
	bodyValuesMax = 500_000
	membersMax    = 10_000

	// idBytesMax bounds a call id upstream (decision 15).
	idBytesMax = 64

	// cacheKeyCharactersMax bounds prompt_cache_key (contract, "Prompt caching").
	cacheKeyCharactersMax = 256

	// outputTokensDefault is the limit sent when the client sends none
	// (contract, "Output length and format").
	outputTokensDefault = 32_000

	// imageURLsMax bounds the http(s) image URLs of a request (contract, "Images
	// and PDFs").
	imageURLsMax = 20

	// ImageBytesMax bounds one downloaded image, ImagesBytesMax those of a request
	// (contract, "Images and PDFs": 10 MB and 32 MB).
	ImageBytesMax  = 10 << 20
	ImagesBytesMax = 32 << 20

	// urlBytesMax bounds an image URL, hostBytesMax and labelBytesMax its host
	// (RFC 1035, 2.3.4).
	urlBytesMax   = 8192
	hostBytesMax  = 253
	labelBytesMax = 63

	// dataURLHeadBytesMax bounds what stands before the comma of a data URL.
	dataURLHeadBytesMax = 1 << 10

	// echoBytesMax bounds what an error text repeats of the client's own words.
	echoBytesMax = 64

	// pieceBytes is the size from which a span of the body is handed on by
	// itself instead of being joined with its neighbours: below it a copy in the
	// guest costs less than another host call.
	pieceBytes = 8 << 10
)

// The limits of the answer direction. All bound what a hostile upstream can cost.
const (
	// eventBytesMax bounds one event of a stream (decision 36).
	eventBytesMax = 16 << 20

	// quickEventBytesMax bounds the events that are read in place. Larger ones
	// go the general way, which keeps to eventBytesMax.
	quickEventBytesMax = 1 << 20

	// answerValuesMax bounds the JSON values of an answer or of one event.
	answerValuesMax = 500_000

	// largeAnswerBytes is the answer from which on the memory for it is measured
	// before it is made.
	largeAnswerBytes = 64 << 10

	// openBlocksMax bounds the content blocks that a stream has open at once.
	openBlocksMax = 256

	// keepEventBytesMax is the largest event whose index is used again: a large
	// one must not hold its memory for the rest of a long stream.
	keepEventBytesMax = 4 << 10

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

	// modelNameBytesMax bounds a model's name, in errors, in records, and as it is
	// spelled in JSON, which each chunk repeats.
	modelNameBytesMax = 512

	// modelPagesMax and modelsMax bound the model list, modelIDBytesMax an id or
	// a cursor in it.
	modelPagesMax   = 20
	modelsMax       = 20_000
	modelIDBytesMax = 512
)
