package main

import "ezat.io/chat-completions/translate"

// Every limit of the edge, its unit last in the name. The core's own are in
// translate/limits.go.
const (
	// requestBodyBytesMax is "The whole request body can be up to 32 MB" of the
	// contract; decision 1 gives the number, which passes itself.
	requestBodyBytesMax = translate.BodyBytesMax

	// answerBodyBytesMax bounds a whole answer, a model and one page of the
	// model list. The contract names no limit: nothing that the upstream may
	// answer comes near, and a longer one is no message (decision 40).
	answerBodyBytesMax = 33_554_432

	// smallBodyBytesMax is the largest body whose garbage waits for that of others,
	// and answerFreeBytesMax the largest answer whose garbage is left to Go's
	// collector. Of larger ones answerSpentTimes their size is the most that one can
	// take: as many values as bytes.
	smallBodyBytesMax  = 1_048_576
	answerFreeBytesMax = 16_384
	answerSpentTimes   = 16

	// errorBodyBytesMax bounds an upstream error that is still read for its
	// message; of a longer one only the status counts (decision 40).
	errorBodyBytesMax = 1_048_576

	// wholeAnswerTimeoutMs is the contract's row 504, "A non-streaming request
	// took longer than 590 seconds", and decision 45.
	wholeAnswerTimeout = "590000" // milliseconds

	// imageTimeoutMs bounds one download with all its redirects, of which there
	// may be imageRedirectsMax (contract, "Images and PDFs"). The other limits of
	// that section are the core's.
	imageTimeoutMs    = 15_000
	imageRedirectsMax = 3

	// imageDownloadsShared is how many downloads may be under way in a VM before a
	// request that has one of its own waits with the next, and imageDownloadsMax
	// how many in all. Envoy holds up to 10 MB for each.
	imageDownloadsShared = 24
	imageDownloadsMax    = 128

	// imageWaitMs bounds the time from a whole request to the beginning of its last
	// download. Whether it is over is looked at each imageTickMs.
	imageWaitMs = 15_000
	imageTickMs = 250

	// imageGarbageBytesMax is how much of old images may wait for the garbage
	// collector: as much as one request may download.
	imageGarbageBytesMax = translate.ImagesBytesMax

	// unfinishedBytesMax bounds everything unfinished in one VM together (decision
	// 54; see ledger.go), images included. A VM has 1 GiB: the rest is for one body
	// or answer of the largest kind and what becomes of it, and for garbage.
	unfinishedBytesMax = 402_653_184
	// heavyBytes is the weight from which an exchange is looked at when room is
	// needed; freshBytesMax is how much large memory is taken between two runs of
	// the garbage collector at most.
	heavyBytes    = 65_536
	freshBytesMax = 16_777_216
	// feedBytesMax is how much of a stream is translated at once.
	feedBytesMax = 262_144

	// stackBytesMax bounds Go's stack, so that a recursion without end is a fault that
	// Go sees, and answers for (abi_runtime.go): hosts end it by themselves when their
	// own stack is full, which V8's is after 984 KB. The whole corpus, and bodies of
	// 32 MB, do with a quarter of this.
	stackBytesMax = 131_072

	// fatalTextBytesMax bounds what is logged of the end of a VM, and
	// fatalHeadersBytesMax has room for the headers of the reply to its streams.
	fatalTextBytesMax    = 256
	fatalHeadersBytesMax = 256 + 2*requestIDBytesMax

	// modelPageEntries is the page size of operator.md, "Paths": the most that
	// the upstream gives at once.
	modelPageEntries = 1000

	// modelPageTimeoutMs bounds the callout for one further page of the list.
	modelPageTimeoutMs = 30_000

	// modelNameBytesMax bounds the id in `GET {route_prefix}/models/{id}`.
	// Longer ones do not exist: 404.
	modelNameBytesMax = 256

	// requestIDBytesMax bounds the request-id that is taken from the upstream
	// or from the host. A longer one is not used.
	requestIDBytesMax = 128

	// configBytesMax and configDepthLevels bound the plugin configuration, and
	// configFaultsMax the number of faults that are logged.
	configBytesMax    = 4_194_304
	configDepthLevels = 16
	configFaultsMax   = 100

	// headerValueBytesMax bounds names in the configuration that end up in a
	// header or in a host call.
	headerValueBytesMax = 256

	// scratchKeepBytesMax is the largest output buffer that is kept for the
	// next answer.
	scratchKeepBytesMax = 1_048_576
)
