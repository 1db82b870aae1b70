// Package cases is the corpus of the product: one exchange per file, run by the
// core's tests, by the module in the harness, and by the module in real Envoy.
//
// A case is a txtar file <area>/<name>.txtar. On top stands what the case shows,
// in a sentence or two; then header lines; then the sections.
//
// # Header lines
//
//	rule: tools.strict decision.18    rows of rows.txt that the case proves; at least one
//	levels: core wasm (why not all)   levels that can show the case; default all three; fewer need the reason
//	config: {"caching":false}         the plugin's configuration; default the empty one
//	relax: prefill                    rules of the API that a strict stand-in must not apply here
//	cut: whole                        how the answer may be cut; default whole, events, bytes and random
//
// # Sections
//
//	request                 request line, then headers. Both optional: the defaults are POST
//	                        /openai/v1/chat/completions, the bearer key test-key, content-type
//	                        application/json and x-ezat-cache: off (so that automatic cache marks
//	                        do not appear in cases about other things). A header given replaces
//	                        the default of its name; `!name` takes the default away
//	request.json            the body; request.raw: byte exact, request.quoted: see below
//	download.request        what must be asked of an image server: the request line, authority and
//	                        x-image-scheme, then headers as below. Without any download.request
//	                        section no image may be asked for
//	download                status and headers of the image server's answer; default 200
//	download.raw            the file; .quoted likewise
//	upstream.request        what must go up: optionally the request line, then headers that must
//	                        be there (`name: value`, `name: *` for any value) or must not (`!name`)
//	upstream.request.json   the body that must go up (.raw: byte exact). Without any
//	                        upstream.request section the upstream must not be called
//	upstream                status and headers of the upstream's answer; default 200, the
//	                        content-type of the kind, request-id: req_test01
//	upstream.json           the upstream's answer; .sse, .raw, .quoted likewise. Without one the
//	                        upstream answers the plain answer of this package, whole or as a
//	                        stream, and the client must get its translation
//	client                  status and headers that the client must (or must not) see; default 200
//	client.json             the client's answer; .sse and .raw likewise
//	usage.json              the recorded line of usage
//
// Further calls to the upstream (pages of the model list) have sections named
// upstream-2.request, upstream-2.json, upstream-3.json and so on. Further downloads
// and the hops of redirects likewise; they may come in any order. A case with
// downloads names the cluster "anthropic" for them in its config, because at the wasm
// and Envoy levels the stand-in plays the image servers, too.
//
// A .json section is sent without the line feed that ends the section and compared
// compacted, but otherwise byte by byte: the order of keys and the spelling of
// strings and numbers count. A .sse section is sent and compared as it stands. A
// .raw section loses the line feed at its end, so that a body may end anywhere. A
// .quoted section holds one Go string literal a line, joined without separator: for
// bytes that do not survive in a text file.
//
// $REQUEST_ID in an expected answer stands for the value of the answer's request-id
// header. The time of an answer is Created at the core and wasm levels, where the
// clock is fixed; at the Envoy level it must be a plausible time.
//
// # Levels
//
// A level is a function from a Case to an Outcome. Case.Compare says what differs
// from what the case wants. The core knows no headers, so there only x-ezat-session
// is compared; at the other levels the house rules for headers (operator's page,
// "Headers") are checked for every case besides what the case says.
//
// UPDATE=1 in the environment lets the core's runner rewrite the expectations from
// what the core does; the difference must be read before it is committed. A message
// that ends in $REST is a promise about its beginning only: UPDATE fills in the rest
// when the beginning fits, and an unfilled one fails at every level.
//
// # Rows
//
// rows.txt lists every row of the contract, of the operator's page and of the
// decisions. Each needs a case that names it, or a Go test as evidence where no
// exchange can show it, or a place on rows_to_come.txt, which only shrinks.
// COVERAGE.md is the table that follows from all this.
package cases
