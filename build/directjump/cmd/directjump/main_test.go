package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// folder is a new directory with a module of Go in "in.wasm", and "other.wasm",
// which is no module.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() { println(1) }\n")
	command := exec.Command("go", "build", "-o", filepath.Join(dir, "in.wasm"), filepath.Join(dir, "main.go"))
	command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, filepath.Join(dir, "other.wasm"), "not a module")
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// entries counts the files: no temporary one may stay behind.
func entries(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestRun(t *testing.T) {
	dir := folder(t)
	in, out := filepath.Join(dir, "in.wasm"), filepath.Join(dir, "out.wasm")
	before := entries(t, dir)
	var log bytes.Buffer
	if err := run([]string{in, out}, &log); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(log.String(), "directjump: ") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("logged %q", &log)
	}
	plain, treated := read(t, in), read(t, out)
	if len(treated) == 0 || len(treated) >= len(plain) {
		t.Errorf("%d bytes became %d", len(plain), len(treated))
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	if got := entries(t, dir); got != before+1 {
		t.Errorf("%d files became %d", before, got)
	}
	// The same file in and out.
	if err := run([]string{in, in}, &log); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, in), treated) {
		t.Error("in place there is another result")
	}
}

func TestNothingIsWrittenOnAnError(t *testing.T) {
	dir := folder(t)
	in, other, out := filepath.Join(dir, "in.wasm"), filepath.Join(dir, "other.wasm"), filepath.Join(dir, "out.wasm")
	write(t, out, "as it was")
	before := entries(t, dir)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no module":           {[]string{other, out}, "other.wasm: offset 0x0: not a WebAssembly module"},
		"no file":             {[]string{filepath.Join(dir, "none"), out}, "no such file"},
		"no folder":           {[]string{in, filepath.Join(dir, "none", "out.wasm")}, "no such file"},
		"a folder in the way": {[]string{in, dir}, "file exists"},
		"no arguments":        {nil, "usage: directjump IN OUT"},
		"too many arguments":  {[]string{in, out, out}, "usage: directjump IN OUT"},
	} {
		var log bytes.Buffer
		if err := run(c.args, &log); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if log.Len() > 0 || string(read(t, out)) != "as it was" || entries(t, dir) != before {
			t.Errorf("%s: something was written", name)
		}
	}
}
