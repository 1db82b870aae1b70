// Package harness is a host for Proxy-Wasm modules (ABI 0.2.0 and 0.2.1) on
// wazero that follows Envoy's rules. Go tests use it to see each step of a
// module, and cmd/gateway serves one with it.
//
// A [Host] runs one module on one or more workers, each with a VM of its own.
// Loading is strict: of WASI there are only the eight functions that the ABI
// names, and whatever else a module imports makes [New] fail with the name.
//
// There are three ways to use it. [Host.Do] takes one whole exchange through the
// guest. [Host.NewStream] opens a [Stream], on which a test plays client and
// upstream piece by piece and sees what has come out in between. [Host.Proxy]
// is an http.Handler that does the same with real connections.
//
// # What Envoy does
//
// What happens in between is what Envoy 1.40 does, and the folder testdata holds
// the proof: plays of a guest between a client and an upstream, each with the
// transcript that a real Envoy gave, which the harness must give too. Where the
// two differ, the harness is wrong. In short:
//
//   - A pause on headers holds the headers, and bodies still come to the guest;
//     with NoHeadersStopIteration it stops everything. A pause on a body buffers
//     it, and each later callback is told the size of the whole. Headers that are
//     held can be changed until the body goes.
//   - proxy_set_buffer_bytes with start 0 drains from the front and prepends, at
//     or past the end it appends, anything else is BAD_ARGUMENT. Reading nothing
//     is OK and writes nothing.
//   - A held request past BufferBytesMax is answered with 413 by Envoy itself, a
//     held response with 500, or a reset once its headers are out.
//   - The end of a body can come in a callback of size 0, or as trailers, after
//     which no body callback says so.
//   - A local reply, the guest's or Envoy's own, runs through the guest's
//     response callbacks when no response has begun, past them while one is held,
//     and is a reset after that.
//   - Callouts belong to the plugin context. A stream that has gone cancels none.
//     An upstream that refuses, resets or is too slow is answered by Envoy like
//     for any client (503, 504); without headers is the callback only for an
//     answer that is cut or too long.
//   - A guest that fails takes its streams with it, each with a 503 at its next
//     event; the next request finds a new VM.
//
// # What it does not do
//
// HTTP/2 and HTTP/3, TCP streams, gRPC, retries, load balancing, 1xx responses
// and filters beside the guest. What Envoy leaves open, such as how a body is
// cut, is up to the caller.
//
// # The folder
//
//	host, config       a module on its workers          clock, shared, metrics
//	vm, hostcalls      one VM: callbacks, hostcalls     property, callout
//	stream, flow       one stream: Envoy's filter       callbacks, router, body,
//	                   manager for a chain of one       headers
//	play, do           a test as client and upstream
//	proxy, pipe, http  real connections                 recorder
//	egress             image downloads, from public addresses only
//	internal/abi       names, signatures, memory
//	internal/play      the plays, and record, which runs them on a real Envoy
//	internal/testguest the guests of the tests
package harness
