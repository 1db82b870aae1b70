package main

// Action is what a phase tells the host: go on, or hold.
type Action uint32

const (
	// Continue lets headers, or the bytes of this callback, go on.
	Continue Action = iota
	// Pause holds them. In a body phase the host buffers, and the next callback
	// sees all bytes so far.
	Pause
)

// Map names one of the host's header maps, by the ABI's numbers.
type Map int

const (
	RequestHeaders Map = iota
	RequestTrailers
	ResponseHeaders
	ResponseTrailers
)

// Body names one of the host's body buffers.
type Body int

const (
	RequestBody Body = iota
	ResponseBody
	// CalloutBody is that of the answer to a callout. It can only be read, and
	// only during the callout's callback.
	CalloutBody
)

// Level is the weight of a line in the host's log.
type Level int

const (
	Info Level = iota
	Warn
	Error
	Critical
)

// CallResult is the answer to a callout. Status is 0 when the call failed. Its
// body, of Size bytes, is CalloutBody.
type CallResult struct {
	Status  int
	Headers [][2]string
	Size    int
}

// Host is what the edge asks of the proxy: the host calls that are used, and
// the clock. Every method works on the stream whose callback is running, until
// Enter names another one. An error means that the host refused the call;
// nothing has changed then.
//
// The bridge in abi*.go is the real one; tests have their own.
type Host interface {
	// Log writes one line. It must never carry message text, keys or images.
	Log(level Level, text string)
	// Now is the wall clock, in nanoseconds since 1970.
	Now() int64

	// Headers lists all pairs in the host's order, names in lower case. They stay
	// valid.
	Headers(m Map) [][2]string
	// SetHeader replaces all values of a header by one.
	SetHeader(m Map, name, value string) error
	// RemoveHeader removes all values of a header; one that is not there is no error.
	RemoveHeader(m Map, name string) error

	// ReadBody copies the first size bytes of a buffer into the guest, 64 zero
	// bytes behind them. The result is valid until ReleaseBody, which every
	// caller owes.
	ReadBody(b Body, size int) ([]byte, error)
	// ReleaseBody gives the memory of ReadBody back.
	ReleaseBody(body []byte)
	// TakeBody is ReadBody into memory of its own, for bytes that outlive the
	// callback. Nothing stands behind them, and nobody owes anything.
	TakeBody(b Body, size int) ([]byte, error)
	// ReplaceBody drops what is in the buffer and puts data (maybe nothing) there.
	ReplaceBody(b Body, data []byte) error
	// AppendBody puts data behind what is in the buffer.
	AppendBody(b Body, data []byte) error

	// Property is a property of the stream; ok is false when the host has none.
	Property(path ...string) (value string, ok bool)
	// SetProperty keeps a value for access logs, under wasm.<path> in Envoy's filter state.
	SetProperty(path string, value []byte) error

	// Reply answers the client instead of the upstream. It runs through the
	// response phases when the response has not begun.
	Reply(status int, headers [][2]string, body []byte) error
	// ResumeRequest and ResumeResponse let what is paused go on, from a callout's
	// callback.
	ResumeRequest() error
	ResumeResponse() error
	// Reset ends the stream at once, without a word to the client.
	Reset() error
	// Call sends a request of our own. done runs once, later, as a callback of
	// the stream that this Host is for; also when that stream has ended, because
	// the host does not call it off.
	Call(cluster string, headers [][2]string, timeoutMs int, done func(CallResult)) error
	// Enter makes the calls that follow work on the stream that this Host is for,
	// though the callback of another one is running. It fails when the stream is
	// no longer there.
	Enter() error

	// Tick has the host call the tick of the stream's plugin every so many
	// milliseconds, outside all streams; 0 ends it.
	Tick(periodMs int) error

	// Count adds one or more to a counter.
	Count(counter *Metric, n int64)
	// Observe adds a value to a histogram.
	Observe(histogram *Metric, value int64)
}
