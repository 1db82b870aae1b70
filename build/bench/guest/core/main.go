// Command core is the benchmark build of the module: the core, and the loops
// around it, built and treated by the module's own recipe (build/wasm.sh).
package main

// main is empty: a module is a library.
func main() {}
