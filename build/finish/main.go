// Command finish makes the module that ships from the one that wasm-merge made:
// without the stub's exports and without custom sections.
//
//	finish MERGED STUB OUT
package main

import (
	"fmt"
	"os"

	"ezat.io/chat-completions/build/wasmbin"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "finish:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: finish MERGED STUB OUT")
	}
	merged, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	stub, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	exports, err := wasmbin.Exports(stub)
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	names := map[string]bool{}
	for _, e := range exports {
		names[e.Name] = true
	}
	out, err := wasmbin.Strip(merged, names)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[2], out, 0o644)
}
