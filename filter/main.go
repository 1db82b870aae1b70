// Command filter is the edge: the proxy-wasm module. It carries bytes between
// the host and package translate, and decides nothing that a field of a
// request or an answer could decide.
//
//	host callback → exchange (one per stream) → translate → host calls
//
// Invariants: only abi*.go know the proxy-wasm SDK and the WebAssembly imports
// and exports; everything else is plain Go against the interface Host, and is
// tested natively. There are no timers and no goroutines. State is per stream,
// but for the configuration, the model table, buffers that are used again, the
// bound on image downloads with the queue for it (fetch_memory.go), and the bound
// on all that is unfinished (ledger.go).
package main

// main is empty: a module is a library. The host calls _initialize, which runs
// the init functions, and then the exports of abi_exports.go.
func main() {}
