//go:build speed

// Figures, not a test of anything: the same loops in a module as it comes from
// Go, after wasm-opt -O1, treated, and both, in wazero and in Envoy's V8.
//
//	ENVOY=…/envoy WASM_OPT=…/wasm-opt go test -tags speed -run TestSpeed -v ./build/directjump

package directjump

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// loopsSource is a proxy-wasm module that times loops when it is configured and
// logs "FIGURE name nanoseconds", the least of many, and "END".
const loopsSource = `package main

import (
	"encoding/json"
	"sort"
	"strconv"
	"time"
	"unsafe"

	"github.com/tidwall/gjson"
)

//go:wasmimport env proxy_log
func proxyLog(level int32, text unsafe.Pointer, size int32) int32

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

//go:wasmexport proxy_on_memory_allocate
func allocate(size int32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]byte, size))) }

//go:wasmexport proxy_on_context_create
func create(id, parent int32) {}

//go:wasmexport proxy_on_vm_start
func vmStart(id, size int32) int32 { return 1 }

func log(s string) { proxyLog(2, unsafe.Pointer(unsafe.StringData(s)), int32(len(s))) }

func document() []byte {
	b := []byte("{\"messages\":[")
	for i := 0; len(b) < 100_000; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"The quick brown fox \\\"jumps\\\" over the lazy dog.\\nAgain and again, until line "...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, " is done.\"},{\"type\":\"tool\",\"arguments\":\"{\\\"path\\\":\\\"src/main.go\\\",\\\"line\\\":12}\",\"n\":[1,2.5,-3e4,true,false,null]}]}"...)
	}
	return append(b, "]}"...)
}

// classes counts what kinds of bytes a document has, with nested conditions.
//
//go:noinline
func classes(b []byte) int {
	depth, texts, digits, spaces, inside := 0, 0, 0, 0, false
	for i := 0; i < len(b); i++ {
		c := b[i]
		if inside {
			switch {
			case c == '\\':
				i++
			case c == '"':
				inside = false
				texts++
			case c < ' ':
				return -1
			}
			continue
		}
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			inside = true
		case ' ', '\n', '\t', '\r':
			spaces++
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			digits++
		}
	}
	return depth<<20 + texts + digits + spaces
}

// sum has one loop and nothing in it that jumps forward.
//
//go:noinline
func sum(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

var sink int

func least(name string, units int, f func()) {
	var best time.Duration
	for i := range 60 {
		start := time.Now()
		f()
		if took := time.Since(start); i == 0 || took < best {
			best = took
		}
	}
	log("FIGURE " + name + " " + strconv.FormatFloat(float64(best)/float64(units), 'f', 3, 64))
}

//go:wasmexport proxy_on_configure
func configure(id, size int32) int32 {
	b := document()
	least("gjson.ValidBytes", len(b), func() {
		if !gjson.ValidBytes(b) {
			panic("not valid")
		}
	})
	least("byte-classes", len(b), func() { sink += classes(b) })
	least("byte-sum", len(b), func() { sink += int(sum(b)) })
	least("json.Valid", len(b), func() {
		if !json.Valid(b) {
			panic("not valid")
		}
	})
	ints := make([]int, 10_000)
	least("sort.Ints", len(ints), func() {
		x := uint32(1)
		for i := range ints {
			x = x*1664525 + 1013904223
			ints[i] = int(x >> 8)
		}
		sort.Ints(ints)
	})
	log("END")
	return 1
}

func main() {}
`

var loopNames = []string{"gjson.ValidBytes", "byte-classes", "byte-sum", "json.Valid", "sort.Ints"}

// figures are nanoseconds a byte, or an element for sort.Ints.
type figures map[string]float64

// take reads one line of a log; it is true at the end.
func (f figures) take(line string) bool {
	if _, figure, ok := strings.Cut(line, "FIGURE "); ok {
		fields := strings.Fields(figure)
		v, err := strconv.ParseFloat(fields[1], 64)
		if old, seen := f[fields[0]]; err == nil && (!seen || v < old) {
			f[fields[0]] = v
		}
	}
	return strings.HasSuffix(line, "END")
}

func buildLoops(t *testing.T, dir string) []byte {
	source := filepath.Join(dir, "main.go")
	write(t, source, []byte(loopsSource))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// The package exists only in the overlay: it must lie in this module for gjson.
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "loops", "main.go"): source}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), overlay)
	out := filepath.Join(dir, "plain.wasm")
	goTool(t, wasip1, "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", out, "./loops")
	return read(t, out)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
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

// optimize runs wasm-opt -O1 with the features that Go emits.
func optimize(t *testing.T, tool, in, out string) {
	t.Helper()
	command := exec.Command(tool, "-O1", "--enable-bulk-memory", "--enable-bulk-memory-opt", "--enable-sign-ext",
		"--enable-nontrapping-float-to-int", "--enable-mutable-globals", in, "-o", out)
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func (f figures) wazero(t *testing.T, module []byte) {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	defer r.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	_, err := r.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, _, text, size uint32) uint32 {
		line, _ := m.Memory().Read(text, size)
		f.take(string(line))
		return 0
	}).Export("proxy_log").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := r.InstantiateWithConfig(ctx, module,
		wazero.NewModuleConfig().WithSysNanotime().WithSysWalltime().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := instance.ExportedFunction("proxy_on_configure").Call(ctx, 1, 0); err != nil {
		t.Fatal(err)
	}
}

const envoyConfig = `
bootstrap_extensions:
- name: envoy.bootstrap.wasm
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.wasm.v3.WasmService
    singleton: true
    config:
      vm_config: {runtime: envoy.wasm.runtime.v8, code: {local: {filename: %q}}}
`

func (f figures) envoy(t *testing.T, envoy, module string) {
	t.Helper()
	config := module + ".yaml"
	write(t, config, fmt.Appendf(nil, envoyConfig, module))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, envoy, "-c", config, "--concurrency", "1", "--disable-hot-restart", "-l", "info")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	for lines := bufio.NewScanner(stderr); !ended && lines.Scan(); {
		ended = f.take(lines.Text())
	}
	cancel()
	io.Copy(io.Discard, stderr)
	command.Wait()
	if !ended {
		t.Fatal("the module did not come to its end in Envoy")
	}
}

func TestSpeed(t *testing.T) {
	envoy, wasmOpt := os.Getenv("ENVOY"), os.Getenv("WASM_OPT")
	if envoy == "" || wasmOpt == "" {
		t.Fatal("ENVOY and WASM_OPT must name the programs")
	}
	dir := t.TempDir()
	plain := buildLoops(t, dir)
	direct, stats, err := Treat(plain)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(stats)
	file := func(name string) string { return filepath.Join(dir, name+".wasm") }
	write(t, file("direct"), direct)
	optimize(t, wasmOpt, file("plain"), file("plain-O1"))
	optimize(t, wasmOpt, file("direct"), file("direct-O1"))
	variants := []string{"plain", "plain-O1", "direct", "direct-O1"}
	table := map[string]figures{}
	for range 3 {
		for _, v := range variants {
			for _, engine := range []string{"wazero ", "envoy "} {
				if table[engine+v] == nil {
					table[engine+v] = figures{}
				}
			}
			table["wazero "+v].wazero(t, read(t, file(v)))
			table["envoy "+v].envoy(t, envoy, file(v))
		}
	}
	for _, v := range variants {
		t.Logf("%-10s %d bytes", v, len(read(t, file(v))))
	}
	for _, engine := range []string{"wazero ", "envoy "} {
		for _, name := range loopNames {
			line := fmt.Sprintf("%-8s%-18s", engine, name)
			for _, v := range variants {
				line += fmt.Sprintf("%12.3f", table[engine+v][name])
			}
			t.Log(line)
		}
	}
}
