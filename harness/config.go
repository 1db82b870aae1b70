package harness

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// Config is how a host is set up, as Envoy's listener, route, cluster and
// plugin configuration would. The zero value runs a guest on one worker with no
// clusters, a clock that stands still and fixed random bytes.
type Config struct {
	// PluginConfig is the plugin's configuration, VMConfig that of the VM.
	PluginConfig, VMConfig string
	// PluginName, RootID and VMID are what the properties plugin_name,
	// plugin_root_id and plugin_vm_id say.
	PluginName, RootID, VMID string
	// Environment is what the guest finds in its environment ("NAME=value").
	Environment []string

	// NoHeadersStopIteration is a host without Envoy's
	// allow_on_headers_stop_iteration: a pause on headers then stops the body
	// callbacks too, until the guest resumes the stream.
	NoHeadersStopIteration bool
	// FailurePolicy says what follows a guest's failure.
	FailurePolicy FailurePolicy
	// ReloadBackoff is the least time between two loads of a VM; before it has
	// passed, requests are answered with 503. Envoy waits a second by default,
	// here the default is not to wait.
	ReloadBackoff time.Duration
	// Capabilities, when not nil, are the hostcalls, WASI functions and
	// callbacks that the guest may use (capability_restriction_config). Others
	// are refused and logged; callbacks are not called.
	Capabilities []string
	// ForeignFunctions answer proxy_call_foreign_function beside Envoy's
	// clear_route_cache. A false answers with NotFound.
	ForeignFunctions map[string]func(args []byte) ([]byte, bool)
	// GoWASI provides the seven WASI functions that a plain build of the
	// standard Go toolchain imports beside the eight of the ABI. A module made
	// to run on any host does not need it.
	GoWASI bool

	// Workers is the number of VMs; default 1. Each stream lives on one.
	Workers int
	// MainThread adds the VM that Envoy has on its main thread: it takes no
	// streams, but ticks run there too.
	MainThread bool

	// Clusters are the upstreams by name.
	Clusters map[string]Cluster
	// Routes are tried in order. Without any, all requests go to the one
	// cluster, if there is just one.
	Routes []Route
	// VirtualHost is the property xds.virtual_host_name.
	VirtualHost string

	// BufferBytesMax is what a stream may hold of a request or response while
	// the guest pauses it (per_connection_buffer_limit_bytes); past it Envoy
	// answers 413 or 500. Default 1 MiB, as Envoy's.
	BufferBytesMax int
	// HeaderBytesMax bounds the names and values of one header map that comes
	// from a client, an upstream or the guest. Default 60 KiB from outside, as
	// Envoy's; a guest may go to 16 times of it.
	HeaderBytesMax int
	// StreamIdleTimeout ends a stream on which nothing happens. Default 5
	// minutes, as Envoy's; negative: none.
	StreamIdleTimeout time.Duration
	// MemoryBytesMax is what a VM may grow to. Default 1 GiB, as in Envoy.
	MemoryBytesMax int
	// CallTimeout bounds one call into the guest in real time; a guest that
	// takes longer has failed. Envoy has no such bound. Default 60 seconds,
	// negative: none.
	CallTimeout time.Duration
	// CalloutsMax is the number of callouts that may wait on one worker; more
	// are refused with INTERNAL_FAILURE. Default 1,024.
	CalloutsMax int
	// CalloutBytesMax bounds a callout's answer; a longer one makes the callout
	// fail. Default 32 MiB, as Envoy's http.async_response_buffer_limit.
	CalloutBytesMax int

	// Clock is the host's time; default NewFakeClock().
	Clock Clock
	// Random is what random_get and request ids come from; default a fixed
	// sequence. It must be safe for concurrent use when there are several
	// workers.
	Random io.Reader
	// Log takes each line of the guest as it is logged. It runs inside the
	// guest's hostcall and must not call the host. The last lines are kept in any case.
	Log func(LogLine)
	// LogLevel is what proxy_get_log_level says; all lines are taken anyhow.
	LogLevel LogLevel
	// AccessLog takes each stream that has ended, after the guest's proxy_on_log.
	// It must not call the host.
	AccessLog func(Access)
	// CacheDir is where compiled modules are kept. Default
	// "ezat-chat-completions" in the user's cache folder; when there is none,
	// and for "-", they are only kept in memory.
	CacheDir string
}

// FailurePolicy is what follows a guest's failure.
type FailurePolicy int

// A failed VM fails the streams on it in either case.
const (
	FailReload FailurePolicy = iota // the next request finds a new VM
	FailClosed                      // later requests are answered with 503
)

// Cluster is one upstream, of requests and callouts alike.
type Cluster struct {
	// Transport carries the messages; NewTransport makes one that adds nothing of
	// its own. Nil: a test does it by hand, with the methods of Stream and Callout.
	Transport http.RoundTripper
	// Egress, when not nil, carries callouts in the place of Transport.
	Egress *Egress
	// Scheme and Authority are where Transport sends to; the request's own
	// :scheme and :authority stay in its Host header. Empty: those of the request.
	Scheme, Authority string
	// Address is the property upstream.address once a host was chosen. Default
	// Authority, else "10.0.0.1:443".
	Address string
	// Empty is a cluster without a host ("no healthy upstream"), Refuses one
	// whose host does not accept connections.
	Empty, Refuses bool
}

// carries says whether callouts need no test to answer them.
func (c *Cluster) carries() bool { return c.Egress != nil || c.Transport != nil }

func (c *Cluster) address() string {
	switch {
	case c.Address != "":
		return c.Address
	case c.Authority != "":
		return c.Authority
	}
	return "10.0.0.1:443"
}

// Route sends requests to a cluster.
type Route struct {
	Name string
	// Prefix is of the path; Match, when not nil, is asked instead.
	Prefix  string
	Match   func(h Headers) bool
	Cluster string
	// PrefixRewrite replaces Prefix in the path that goes upstream.
	PrefixRewrite string
	// Timeout bounds the upstream's whole answer once the request has ended; 0:
	// none. The request's x-envoy-upstream-rq-timeout-ms wins.
	Timeout time.Duration
	// DirectStatus answers at once with this status and no body.
	DirectStatus int
}

// LogLevel is a proxy_log_level_t.
type LogLevel uint32

// The levels of the ABI.
const (
	Trace LogLevel = iota
	Debug
	Info
	Warn
	Error
	Critical
)

// String is the level as Envoy prints it.
func (l LogLevel) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", uint32(l))
}

var levelNames = [...]string{"trace", "debug", "info", "warning", "error", "critical"}

// LogLine is one line that a guest logged, or that the host says of it.
type LogLine struct {
	Level   LogLevel
	Message string
	Worker  int
}

const (
	bufferBytesDefault   = 1 << 20
	headerBytesDefault   = 60 << 10
	guestHeaderFactor    = 16
	memoryBytesDefault   = 1 << 30
	wasmPageBytes        = 65536
	calloutsDefault      = 1024
	calloutBytesDefault  = 32 << 20
	callTimeoutDefault   = time.Minute
	idleTimeoutDefault   = 5 * time.Minute
	workersMax           = 64
	logLinesMax          = 4096
	logLineBytesMax      = 64 << 10
	filterStateBytesMax  = 1 << 20
	filterStateValuesMax = 1024
)

// complete fills the defaults in and finds what cannot be.
func (c *Config) complete() error {
	orDefault(&c.Workers, 1)
	orDefault(&c.BufferBytesMax, bufferBytesDefault)
	orDefault(&c.HeaderBytesMax, headerBytesDefault)
	orDefault(&c.MemoryBytesMax, memoryBytesDefault)
	orDefault(&c.CalloutsMax, calloutsDefault)
	orDefault(&c.CalloutBytesMax, calloutBytesDefault)
	orDefault(&c.CallTimeout, callTimeoutDefault)
	orDefault(&c.StreamIdleTimeout, idleTimeoutDefault)
	if c.Clock == nil {
		c.Clock = NewFakeClock()
	}
	if c.Workers < 1 || c.Workers > workersMax {
		return fmt.Errorf("harness: Workers is %d, want 1 to %d", c.Workers, workersMax)
	}
	if c.BufferBytesMax < 0 || c.HeaderBytesMax < 0 || c.CalloutsMax < 0 || c.CalloutBytesMax < 0 {
		return fmt.Errorf("harness: a limit of Config is negative")
	}
	if c.MemoryBytesMax < wasmPageBytes || c.MemoryBytesMax > memoryBytesDefault {
		return fmt.Errorf("harness: MemoryBytesMax is %d, want %d to %d", c.MemoryBytesMax, wasmPageBytes, memoryBytesDefault)
	}
	if len(c.Routes) == 0 && len(c.Clusters) == 1 {
		for name := range c.Clusters {
			c.Routes = []Route{{Name: "default", Prefix: "/", Cluster: name}}
		}
	}
	return nil
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// random is the source for one worker.
func (c *Config) random(worker int) io.Reader {
	if c.Random != nil {
		return c.Random
	}
	seed := [32]byte{'h', 'a', 'r', 'n', 'e', 's', 's', byte(worker)}
	return rand.NewChaCha8(seed)
}
