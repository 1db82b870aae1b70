package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// modules are the paths of what is measured.
type modules struct {
	shipped   string // the product, from `make wasm`
	core      string // the core and its loops, by the product's recipe
	yardstick string // gjson, as Go builds it
	empty     string // nothing, as Go builds it
}

// build makes the benchmarks' own modules below dir.
func build(root, dir string) (modules, error) {
	m := modules{
		shipped:   filepath.Join(root, "build/out/chat-completions.wasm"),
		core:      filepath.Join(dir, "core.wasm"),
		yardstick: filepath.Join(dir, "yardstick.wasm"),
		empty:     filepath.Join(dir, "empty.wasm"),
	}
	if _, err := os.Stat(m.shipped); err != nil {
		return m, fmt.Errorf("the module is missing: run `make wasm`: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return m, err
	}
	recipe := exec.Command("bash", "build/wasm.sh")
	recipe.Env = append(os.Environ(), "PACKAGE=./build/bench/guest/core", "OUT="+m.core, "VERSION=")
	if err := inRoot(root, recipe); err != nil {
		return m, err
	}
	for out, name := range map[string]string{m.yardstick: "yardstick", m.empty: "empty"} {
		plain := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "./build/bench/guest/"+name)
		plain.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
		if err := inRoot(root, plain); err != nil {
			return m, err
		}
	}
	return m, nil
}

func inRoot(root string, command *exec.Cmd) error {
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", command.Args, err, out)
	}
	return nil
}

// sizes are a file's bytes, and those of the file gzipped at the best level.
func sizes(path string) (plain, gzipped int, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return 0, 0, err
	}
	if _, err := w.Write(b); err != nil {
		return 0, 0, err
	}
	if err := w.Close(); err != nil {
		return 0, 0, err
	}
	return len(b), packed.Len(), nil
}
