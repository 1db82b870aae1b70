package translate

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"ezat.io/chat-completions/translate/internal/hash"
	"ezat.io/chat-completions/translate/internal/jsontext"
)

// Request is what the client said, checked. It holds spans of the body, not
// copies, and is good as long as the body is.
type Request struct {
	parser *Parser

	modelName    string
	modelJSON    string // as it was spelled; "" for a name that no model can have
	modelLong    bool   // the name, or its spelling, is one that no model can have
	stream       bool
	includeUsage bool

	effort      string         // reasoning_effort, "" when not sent
	schema      jsontext.Value // of response_format json_schema
	temperature number
	topP        number
	maxTokens   []byte         // the client's limit as digits, nil when not sent
	stop        jsontext.Value // absent, null, a string or strings
	cacheKey    string         // prompt_cache_key

	system []block
	turns  []turn
	calls  []call // all of the conversation
	tools  []tool
	choice toolChoice
	marked bool // the client set cache breakpoints of its own

	fetches []Fetch
}

// number is a JSON number: its spelling and, near enough to compare, its value.
type number struct {
	raw   []byte // nil when not sent
	value float64
}

// The top-level fields that the filter reads, in the order in which faults are
// looked for (decision 6): model, the contract's refused table, then the other
// fields as its page treats them, then messages and tools.
const (
	fieldModel = iota
	fieldN
	fieldLogprobs
	fieldTopLogprobs
	fieldLogitBias
	fieldAudio
	fieldModalities
	fieldWebSearchOptions
	fieldFunctions
	fieldFunctionCall
	fieldResponseFormat
	fieldReasoningEffort
	fieldStream
	fieldStreamOptions
	fieldTemperature
	fieldTopP
	fieldMaxCompletionTokens
	fieldMaxTokens
	fieldStop
	fieldPromptCacheKey
	fieldMessages
	fieldTools
	fieldToolChoice
	fieldParallelToolCalls
	fieldCount
)

var fieldNames = [fieldCount]string{
	fieldModel:               "model",
	fieldN:                   "n",
	fieldLogprobs:            "logprobs",
	fieldTopLogprobs:         "top_logprobs",
	fieldLogitBias:           "logit_bias",
	fieldAudio:               "audio",
	fieldModalities:          "modalities",
	fieldWebSearchOptions:    "web_search_options",
	fieldFunctions:           "functions",
	fieldFunctionCall:        "function_call",
	fieldResponseFormat:      "response_format",
	fieldReasoningEffort:     "reasoning_effort",
	fieldStream:              "stream",
	fieldStreamOptions:       "stream_options",
	fieldTemperature:         "temperature",
	fieldTopP:                "top_p",
	fieldMaxCompletionTokens: "max_completion_tokens",
	fieldMaxTokens:           "max_tokens",
	fieldStop:                "stop",
	fieldPromptCacheKey:      "prompt_cache_key",
	fieldMessages:            "messages",
	fieldTools:               "tools",
	fieldToolChoice:          "tool_choice",
	fieldParallelToolCalls:   "parallel_tool_calls",
}

var (
	fieldKeys        = newKeys(fieldNames[:]...)
	formatKeys       = newKeys("type", "json_schema")
	schemaKeys       = newKeys("schema")
	streamOptionKeys = newKeys("include_usage")
)

// Parser reads requests. It keeps the memory of its index from one request to
// the next: a Request is good until the Parser reads another. The zero Parser
// is ready.
type Parser struct {
	// Key is the secret of the tables that find repeated keys and ids; nothing that
	// comes out depends on it. With the zero key a client can make a body slow.
	Key [2]uint64
	// Images says which image URLs can be fetched; the zero policy refuses all.
	Images ImagePolicy

	doc  jsontext.Doc
	args jsontext.Doc // the arguments of one call
	out  []byte       // where small pieces are joined
	kept kept
	read int // bytes of the last body

	used    bool // since the last Release
	request Request
	plan    Plan
	fields  [fieldCount]jsontext.Value // of the body, while it is parsed
}

// Parse reads and checks a Chat Completions body with a Parser of its own. The
// body must stay unchanged while the Request, or the Plan made from it, is in
// use. Parse itself may mend halves of surrogate pairs in it (decision 8). The fault reported is the first in the order of decision 6; every fault
// is a 400 of the contract's table. The Request comes beside a fault too, unless
// the body is no object: then only its Reply is of use, for the record.
func Parse(body []byte) (*Request, *Error) { return new(Parser).Parse(body) }

// Parse is like the function Parse, in the Parser's memory.
func (p *Parser) Parse(body []byte) (*Request, *Error) {
	if p.used {
		p.Release()
	}
	p.used = true
	if f := p.scan(body); f != nil {
		return nil, f.in("request body").refused()
	}
	fields := &p.fields
	*fields = [fieldCount]jsontext.Value{}
	if f := members(p.doc.Root(), fieldKeys, fields[:]); f != nil {
		if f.path == "" {
			f = f.in("request body")
		}
		return nil, f.refused()
	}
	p.kept.begin()
	p.request = Request{parser: p, turns: p.kept.turns[:0]}
	r := &p.request
	r.glance(fields)
	if f := r.readSmall(fields); f != nil {
		return r, f.refused()
	}
	conversation := conversation{parser: p, request: r, valuesLeft: bodyValuesMax - p.doc.Values()}
	conversation.calls.from(&p.kept, (*hash.Key)(&p.Key))
	f := conversation.read(fields[fieldMessages])
	if r.calls = conversation.calls.list; f != nil {
		return r, f.in("messages").refused()
	}
	if f := r.readTools(fields); f != nil {
		return r, f.refused()
	}
	return r, nil
}

// Release lets go of the Request that was read last, and of the Plan made from
// it: of what a huge one has needed nothing may stay until the next is read.
func (p *Parser) Release() {
	p.doc.Release()
	p.args.Release()
	p.kept.release(p.request.turns, p.request.calls)
	p.request, p.plan = Request{}, Plan{}
	p.used = false
}

// Spent is about how many bytes of memory reading the last body has taken beyond
// what is used again for the next: garbage, once it is released.
func (p *Parser) Spent() int {
	if values := p.doc.Values(); values > valuesKept {
		return p.read + bytesPerValue*(values-valuesKept)
	}
	return p.read
}

// readSmall reads all fields but messages and tools, in order.
func (r *Request) readSmall(fields *[fieldCount]jsontext.Value) *fault {
	f := checkModel(fields)
	if f == nil {
		f = refuseFields(fields)
	}
	if f == nil {
		f = r.readOutput(fields)
	}
	if f == nil {
		f = r.readStreaming(fields)
	}
	if f == nil {
		f = r.readSampling(fields)
	}
	if f == nil {
		f = r.readLimits(fields)
	}
	if f == nil {
		f = r.readCacheKey(fields)
	}
	return f
}

// glance reads what the record of a refused request names, if it is readable. Of a
// long name it keeps no more than an error text shows.
func (r *Request) glance(fields *[fieldCount]jsontext.Value) {
	if v := fields[fieldModel]; v.Kind() == jsontext.String {
		if r.modelLong = len(v.Inner()) > modelNameBytesMax; r.modelLong {
			r.modelName = string(jsontext.AppendFront(nil, v.Inner(), modelNameBytesMax+1))
		} else {
			r.modelJSON = string(span(v))
			if r.modelName = r.modelJSON[1 : len(r.modelJSON)-1]; v.Escaped() {
				r.modelName = v.Text()
			}
		}
	}
	r.stream = fields[fieldStream].Kind() == jsontext.True
}

// Reply is what the answer needs, as far as the request was read.
func (r *Request) Reply() Reply {
	return Reply{Model: r.modelName, ModelJSON: r.modelJSON, Stream: r.stream, IncludeUsage: r.includeUsage}
}

// scan indexes the body and sees that it is an object (decisions 1, 5, 46).
func (p *Parser) scan(body []byte) *fault {
	if len(body) == 0 {
		return bad("is empty")
	}
	p.doc.Key, p.read = p.Key, len(body)
	if err := p.doc.Scan(body, jsontext.Limits{Depth: nestingLevelsMax, Values: bodyValuesMax, Mend: true}); err != nil {
		return bad(scanText(err))
	}
	if p.doc.Root().Kind() != jsontext.Object {
		return bad("must be a JSON object")
	}
	return nil
}

// scanText says what is wrong with a JSON text.
func scanText(err *jsontext.Error) string {
	switch err.Reason {
	case jsontext.NotUTF8:
		return "is not valid UTF-8 at byte " + strconv.Itoa(err.Offset)
	case jsontext.TooDeep:
		return "is nested deeper than " + strconv.Itoa(nestingLevelsMax) + " levels"
	case jsontext.TooMany:
		return "has more than " + strconv.Itoa(bodyValuesMax) + " values"
	case jsontext.Truncated:
		return "is not valid JSON: it ends too early"
	}
	return "is not valid JSON at byte " + strconv.Itoa(err.Offset)
}

func checkModel(fields *[fieldCount]jsontext.Value) *fault {
	v := fields[fieldModel]
	if !v.Sent() {
		return bad("is required").in("model")
	}
	if f := str(v); f != nil {
		return f.in("model")
	}
	if v.Empty() {
		return bad("must not be empty").in("model")
	}
	return nil
}

// refuseFields is the contract's table of refused fields, as far as a field is
// refused for being there or for its value alone.
func refuseFields(fields *[fieldCount]jsontext.Value) *fault {
	for _, check := range [...]struct {
		field int
		check func(jsontext.Value) *fault
	}{
		{fieldN, checkN},
		{fieldLogprobs, checkLogprobs},
		{fieldTopLogprobs, func(jsontext.Value) *fault { return bad("log probabilities are not available") }},
		{fieldLogitBias, checkLogitBias},
	} {
		if v := fields[check.field]; v.Sent() {
			if f := check.check(v); f != nil {
				return f.in(fieldNames[check.field])
			}
		}
	}
	if fields[fieldAudio].Sent() || fields[fieldModalities].Sent() && !textOnly(fields[fieldModalities]) {
		return bad("only text output is supported").in("modalities")
	}
	if fields[fieldWebSearchOptions].Sent() {
		return bad("is not supported").in("web_search_options")
	}
	if fields[fieldFunctions].Sent() || fields[fieldFunctionCall].Sent() {
		return bad("the legacy functions API is not supported; use tools").in("functions")
	}
	return nil
}

func checkN(v jsontext.Value) *fault {
	if v.Kind() != jsontext.Number {
		return bad("must be a whole number")
	}
	if floatOf(v.Raw()) != 1 {
		return bad("only 1 choice per request is supported")
	}
	return nil
}

func checkLogprobs(v jsontext.Value) *fault {
	on, f := flag(v)
	if f == nil && on {
		f = bad("log probabilities are not available")
	}
	return f
}

func checkLogitBias(v jsontext.Value) *fault {
	if f := object(v); f != nil {
		return f
	}
	if !v.Empty() {
		return bad("is not supported")
	}
	return nil
}

// textOnly tells whether modalities is ["text"], its one neutral value.
func textOnly(v jsontext.Value) bool {
	if v.Kind() != jsontext.Array {
		return false
	}
	it := v.Items()
	return it.Next() && it.Value().Is("text") && !it.Next()
}

var efforts = [...]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// readOutput reads response_format and reasoning_effort, which stand in the
// refused table with some of their values.
func (r *Request) readOutput(fields *[fieldCount]jsontext.Value) *fault {
	if f := r.readFormat(fields[fieldResponseFormat]); f != nil {
		return f.in("response_format")
	}
	v := fields[fieldReasoningEffort]
	if !v.Sent() {
		return nil
	}
	for _, effort := range efforts {
		if v.Is(effort) {
			r.effort = effort
			return nil
		}
	}
	return bad("use one of none, minimal, low, medium, high, xhigh, max").in("reasoning_effort")
}

// readFormat reads response_format (contract, "Output length and format";
// decision 21).
func (r *Request) readFormat(v jsontext.Value) *fault {
	var format [2]jsontext.Value
	if f := subobject(v, formatKeys, format[:]); f != nil || !v.Sent() {
		return f
	}
	switch kind := format[0]; {
	case kind.Is("text"):
		return nil
	case kind.Is("json_object"):
		return bad(`type "json_object" is not supported; use "json_schema" with a schema (objects need "additionalProperties": false)`)
	case !kind.Is("json_schema"):
		return bad(`type must be "text" or "json_schema"`)
	}
	var schema [1]jsontext.Value
	if !format[1].Sent() {
		return bad("is required").in("json_schema")
	}
	if f := subobject(format[1], schemaKeys, schema[:]); f != nil {
		return f.in("json_schema")
	}
	if !schema[0].Sent() {
		return bad("is required").in("schema").in("json_schema")
	}
	if f := object(schema[0]); f != nil {
		return f.in("schema").in("json_schema")
	}
	r.schema = schema[0]
	return nil
}

// readStreaming reads stream and stream_options (contract, "Streaming").
func (r *Request) readStreaming(fields *[fieldCount]jsontext.Value) *fault {
	var f *fault
	if r.stream, f = flag(fields[fieldStream]); f != nil {
		return f.in("stream")
	}
	var options [1]jsontext.Value
	if f := subobject(fields[fieldStreamOptions], streamOptionKeys, options[:]); f != nil {
		return f.in("stream_options")
	}
	if r.includeUsage, f = flag(options[0]); f != nil {
		return f.in("include_usage").in("stream_options")
	}
	return nil
}

// readSampling reads temperature and top_p (contract, "Sampling parameters").
func (r *Request) readSampling(fields *[fieldCount]jsontext.Value) *fault {
	var f *fault
	if r.temperature, f = numberOf(fields[fieldTemperature]); f != nil {
		return f.in("temperature")
	}
	if r.topP, f = numberOf(fields[fieldTopP]); f != nil {
		return f.in("top_p")
	}
	return nil
}

// readLimits reads the token limits and stop (contract, "Output length and
// format"). Both limits are checked, whichever wins.
func (r *Request) readLimits(fields *[fieldCount]jsontext.Value) *fault {
	for _, field := range [...]int{fieldMaxCompletionTokens, fieldMaxTokens} {
		limit, f := tokens(fields[field])
		if f != nil {
			return f.in(fieldNames[field])
		}
		if r.maxTokens == nil {
			r.maxTokens = limit
		}
	}
	if f := r.readStop(fields[fieldStop]); f != nil {
		return f.in("stop")
	}
	return nil
}

// readStop reads stop: a string or strings, empty ones left out (decision 20).
func (r *Request) readStop(v jsontext.Value) *fault {
	switch v.Kind() {
	case jsontext.Absent, jsontext.Null:
		return nil
	case jsontext.String:
		r.stop = v
		return checkStop(v)
	case jsontext.Array:
		for it := v.Items(); it.Next(); {
			if it.Value().Kind() != jsontext.String {
				return bad("must be a string or an array of strings")
			}
			if f := checkStop(it.Value()); f != nil {
				return f
			}
		}
		r.stop = v
		return nil
	}
	return bad("must be a string or an array of strings")
}

func checkStop(v jsontext.Value) *fault {
	if !v.Empty() && blank(v.Inner()) {
		return bad("a stop string must have more than white space in it")
	}
	return nil
}

func (r *Request) readCacheKey(fields *[fieldCount]jsontext.Value) *fault {
	v := fields[fieldPromptCacheKey]
	if !v.Sent() {
		return nil
	}
	if f := str(v); f != nil {
		return f.in("prompt_cache_key")
	}
	const longestCharacter = 12 // bytes, of a surrogate pair
	if len(v.Inner()) <= longestCharacter*cacheKeyCharactersMax {
		r.cacheKey = v.Text()
	}
	if r.cacheKey == "" && !v.Empty() || utf8.RuneCountInString(r.cacheKey) > cacheKeyCharactersMax {
		r.cacheKey = ""
		return bad("must have at most " + strconv.Itoa(cacheKeyCharactersMax) + " characters").in("prompt_cache_key")
	}
	return nil
}

// floatOf is the value of a JSON number, infinite when it is too large.
func floatOf(raw []byte) float64 {
	if len(raw) > numberDigitsMax {
		raw = shortened(raw)
	}
	value, _ := strconv.ParseFloat(string(raw), 64) // the only error is ErrRange, and then ±Inf or 0 is what is wanted
	return value
}

// numberDigitsMax is how many digits of a number say what it is worth: strconv looks
// at 800 and at whether others follow, but walks over all of them slowly.
const numberDigitsMax = 1000

// shortened is a number of about the same value in few bytes: 0.DIGITSeEXPONENT.
func shortened(raw []byte) []byte {
	mantissa, exponent := raw, 0
	if e := max(bytes.IndexByte(raw, 'e'), bytes.IndexByte(raw, 'E')); e >= 0 {
		mantissa = raw[:e]
		exponent = exponentOf(raw[e+1:])
	}
	short := make([]byte, 0, numberDigitsMax+32)
	if mantissa[0] == '-' {
		short, mantissa = append(short, '-'), mantissa[1:]
	}
	short = append(short, "0."...)
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	exponent += len(whole)
	if whole[0] == '0' {
		digits := bytes.TrimLeft(fraction, "0")
		exponent = exponent - 1 - (len(fraction) - len(digits))
		whole, fraction = nil, digits
	}
	short = append(short, whole[:min(len(whole), numberDigitsMax)]...)
	short = append(short, fraction[:min(len(fraction), numberDigitsMax-min(len(whole), numberDigitsMax))]...)
	short = append(short, "0e"...)
	return strconv.AppendInt(short, int64(exponent), 10)
}

// exponentOf is the value of an exponent, bounded far beyond what a body's digits
// could make up for.
func exponentOf(text []byte) int {
	const most = 1_000_000_000
	negative := text[0] == '-'
	if text[0] == '-' || text[0] == '+' {
		text = text[1:]
	}
	text = bytes.TrimLeft(text, "0")
	value := most
	if len(text) < len("1000000000") {
		value = 0
		for _, c := range text {
			value = 10*value + int(c-'0')
		}
	}
	if negative {
		return -value
	}
	return value
}

func numberOf(v jsontext.Value) (number, *fault) {
	if !v.Sent() {
		return number{}, nil
	}
	if v.Kind() != jsontext.Number {
		return number{}, bad("must be a number")
	}
	return number{v.Raw(), floatOf(v.Raw())}, nil
}

// tokens reads a token limit: a whole number of at least 1 (decision 3). The
// limit comes back as digits, however it was spelled.
func tokens(v jsontext.Value) ([]byte, *fault) {
	if !v.Sent() {
		return nil, nil
	}
	const text = "must be a whole number of at least 1"
	if v.Kind() != jsontext.Number {
		return nil, bad(text)
	}
	raw := v.Raw()
	if plainDigits(raw) {
		if raw[0] == '0' {
			return nil, bad(text)
		}
		return raw, nil
	}
	value := floatOf(raw)
	if value < 1 || value != math.Trunc(value) || value > 1<<53 {
		return nil, bad(text)
	}
	return strconv.AppendInt(nil, int64(value), 10), nil
}

func plainDigits(raw []byte) bool {
	for _, c := range raw {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
