// Package abi is the boundary between the harness and a guest: the names,
// numbers and signatures of the Proxy-Wasm ABI 0.2.0 and 0.2.1
// (proxy-wasm/spec, abi-versions/v0.2.1), the layout of what crosses guest
// memory, and the check of a module before it runs.
//
// The other side of the boundary is [Host]: one method for each hostcall, with
// Go's own types.
package abi

// Status is a proxy_status_t.
type Status uint32

// The statuses of the ABI.
const (
	OK                   Status = 0
	NotFound             Status = 1
	BadArgument          Status = 2
	SerializationFailure Status = 3
	ParseFailure         Status = 4
	InvalidMemoryAccess  Status = 6
	Empty                Status = 7
	CASMismatch          Status = 8
	InternalFailure      Status = 10
	BrokenConnection     Status = 11 // Envoy's, in proxy_get_status only
	Unimplemented        Status = 12
)

// Buffers, a proxy_buffer_type_t.
const (
	RequestBody         uint32 = 0
	ResponseBody        uint32 = 1
	DownstreamData      uint32 = 2
	UpstreamData        uint32 = 3
	CalloutBody         uint32 = 4
	GRPCMessage         uint32 = 5
	VMConfiguration     uint32 = 6
	PluginConfiguration uint32 = 7
	CallData            uint32 = 8
)

// Maps, a proxy_map_type_t.
const (
	RequestHeaders   uint32 = 0
	RequestTrailers  uint32 = 1
	ResponseHeaders  uint32 = 2
	ResponseTrailers uint32 = 3
	GRPCInitial      uint32 = 4
	GRPCTrailing     uint32 = 5
	CalloutHeaders   uint32 = 6
	CalloutTrailers  uint32 = 7
)

// Streams, a proxy_stream_type_t.
const (
	StreamRequest    uint32 = 0
	StreamResponse   uint32 = 1
	StreamDownstream uint32 = 2
	StreamUpstream   uint32 = 3
)

// Kinds of metrics, a proxy_metric_type_t.
const (
	Counter   uint32 = 0
	Gauge     uint32 = 1
	Histogram uint32 = 2
)

// LogLevelMax is the highest proxy_log_level_t, critical.
const LogLevelMax = 5

// Pair is a name and a value of a map.
type Pair struct{ Name, Value string }

// Reply is what proxy_send_local_response asks for.
type Reply struct {
	Code    uint32
	Details string
	Body    []byte
	Headers []Pair
}

// Call is what proxy_http_call asks for. TimeoutMs is the guest's 32 bits,
// which Envoy takes as signed.
type Call struct {
	Cluster   string
	Headers   []Pair
	Body      []byte
	Trailers  []Pair
	TimeoutMs int32
}

// Buffer is a body or another run of bytes that a guest reads in ranges.
type Buffer interface {
	Len() int
	// CopyTo fills dst from start on; start+len(dst) is within Len.
	CopyTo(dst []byte, start int)
	// Replace is proxy_set_buffer_bytes. data is the host's to keep.
	Replace(start, length uint32, data []byte) Status
}

// Host is what a guest can call, one method a hostcall. Strings and byte
// slices are the host's own copies.
type Host interface {
	// Allowed says whether the guest may call the function now; an error ends
	// the guest, a false answers the call with a refusal.
	Allowed(name string) (bool, error)
	// Alive says, after a hostcall, whether the guest may go on: one that failed
	// in a callback inside the hostcall may not.
	Alive() error

	Log(level uint32, message string) Status
	LogLevel() uint32
	NowNanoseconds(monotonic bool) uint64
	Random(p []byte) error
	Environ() []string
	Exit(code uint32)

	GetProperty(path string) (string, Status)
	SetProperty(path string, value []byte) Status

	Buffer(kind uint32) (Buffer, Status)
	MapPairs(kind uint32) ([]Pair, Status)
	MapSize(kind uint32) (int, Status)
	MapGet(kind uint32, name string) (string, Status)
	MapSetAll(kind uint32, pairs []Pair) Status
	MapAdd(kind uint32, name, value string) Status
	MapReplace(kind uint32, name, value string) Status
	MapRemove(kind uint32, name string) Status

	ContinueStream(kind uint32) Status
	CloseStream(kind uint32) Status
	SendLocalResponse(r Reply) Status
	HTTPCall(c Call) (uint32, Status)
	CallStatus() (uint32, string)
	SetEffectiveContext(id uint32) Status
	Done() Status
	SetTickPeriod(ms uint32) Status

	GetSharedData(key string) (value string, cas uint32, st Status)
	SetSharedData(key, value string, cas uint32) Status
	RegisterQueue(name string) uint32
	ResolveQueue(vm, name string) (uint32, Status)
	Enqueue(queue uint32, value string) Status
	Dequeue(queue uint32) (string, Status)

	DefineMetric(kind uint32, name string) (uint32, Status)
	IncrementMetric(id uint32, delta int64) Status
	RecordMetric(id uint32, value uint64) Status
	GetMetric(id uint32) (uint64, Status)

	CallForeignFunction(name string, args []byte) ([]byte, Status)
}
