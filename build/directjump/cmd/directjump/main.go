// Command directjump makes the jumps in a WebAssembly module of the standard Go
// compiler direct (see the package ezat.io/chat-completions/build/directjump).
//
//	directjump IN OUT
//
// IN must be as Go's linker wrote it; OUT may be the same file. One line on
// standard error says what was done. When there is something in IN that is not
// understood, or IN does not come from Go, the exit status is 1 and OUT is not
// touched.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ezat.io/chat-completions/build/directjump"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "directjump:", err)
		os.Exit(1)
	}
}

func run(args []string, log io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: directjump IN OUT")
	}
	in, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	out, stats, err := directjump.Treat(in)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if err := replace(args[1], out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(log, "directjump: %s\n", stats)
	return err
}

// replace writes a file beside the old one and moves it there, so that nobody
// ever sees a half of it.
func replace(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(content); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
