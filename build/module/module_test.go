// Package module holds the built module to what hosts and operators rely on:
// what it imports and exports, its size, and that it can be made again.
package module

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ezat.io/chat-completions/build/wasmbin"
)

const root = "../.."

// built reads the module. It must have been made: `make wasm`.
func built(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "build/out/chat-completions.wasm"))
	if err != nil {
		t.Fatalf("make wasm first: %v", err)
	}
	return b
}

// wantImports are all imports that the module may have and has: the eight WASI
// functions that the proxy-wasm ABI document names (v0.2.1, "WASI"), and the
// host calls that the filter makes. A capability list of an operator's has
// exactly these.
var wantImports = []string{
	"env.proxy_close_stream",
	"env.proxy_continue_stream",
	"env.proxy_define_metric",
	"env.proxy_get_buffer_bytes",
	"env.proxy_get_header_map_pairs",
	"env.proxy_get_property",
	"env.proxy_http_call",
	"env.proxy_increment_metric",
	"env.proxy_log",
	"env.proxy_record_metric",
	"env.proxy_remove_header_map_value",
	"env.proxy_replace_header_map_value",
	"env.proxy_send_local_response",
	"env.proxy_set_buffer_bytes",
	"env.proxy_set_effective_context",
	"env.proxy_set_property",
	"env.proxy_set_tick_period_milliseconds",
	"wasi_snapshot_preview1.args_get",
	"wasi_snapshot_preview1.args_sizes_get",
	"wasi_snapshot_preview1.clock_time_get",
	"wasi_snapshot_preview1.environ_get",
	"wasi_snapshot_preview1.environ_sizes_get",
	"wasi_snapshot_preview1.fd_write",
	"wasi_snapshot_preview1.proc_exit",
	"wasi_snapshot_preview1.random_get",
}

func TestImports(t *testing.T) {
	imports, err := wasmbin.Imports(built(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range imports {
		if i.Kind != 0 {
			t.Errorf("%s.%s is no function", i.Module, i.Name)
		}
		got = append(got, i.Module+"."+i.Name)
	}
	// Two packages of the Go runtime may import the same function.
	slices.Sort(got)
	got = slices.Compact(got)
	if !slices.Equal(got, wantImports) {
		t.Errorf("imports\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(wantImports, "\n\t"))
	}
}

// wantExports are all exports: the start function and memory, the ABI's version
// and allocator, and the callbacks.
var wantExports = []string{
	"_initialize",
	"memory",
	"proxy_abi_version_0_2_0",
	"proxy_on_configure",
	"proxy_on_context_create",
	"proxy_on_delete",
	"proxy_on_http_call_response",
	"proxy_on_log",
	"proxy_on_memory_allocate",
	"proxy_on_request_body",
	"proxy_on_request_headers",
	"proxy_on_request_trailers",
	"proxy_on_response_body",
	"proxy_on_response_headers",
	"proxy_on_response_trailers",
	"proxy_on_tick",
	"proxy_on_vm_start",
}

func TestExports(t *testing.T) {
	exports, err := wasmbin.Exports(built(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range exports {
		got = append(got, e.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, wantExports) {
		t.Errorf("exports\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(wantExports, "\n\t"))
	}
}

// TestSize holds the budget of 3.5 MB, and 1.0 MB (1,048,576 bytes) gzipped: the
// size sets how late a proxy is live, because its VM compiles the module before.
func TestSize(t *testing.T) {
	const (
		plainBytesMax   = 3_500_000
		gzippedBytesMax = 1_048_576
	)
	module := built(t)
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(module); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d gzipped", len(module), packed.Len())
	if len(module) > plainBytesMax {
		t.Errorf("%d bytes, the budget is %d", len(module), plainBytesMax)
	}
	if packed.Len() > gzippedBytesMax {
		t.Errorf("%d bytes gzipped, the budget is %d", packed.Len(), gzippedBytesMax)
	}
}

// TestNoCustomSections: names and producers are of no use to a host, and a
// section of an engine's own must not be taken for code.
func TestNoCustomSections(t *testing.T) {
	sections, err := wasmbin.Sections(built(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		if s.ID == 0 {
			t.Errorf("a custom section of %d bytes", len(s.Body))
		}
	}
}

// TestBuildIsReproducible makes the module twice, the second time from a copy
// of the sources at another place and without Go's build cache.
func TestBuildIsReproducible(t *testing.T) {
	first := makeModule(t, root, "OUT="+filepath.Join(t.TempDir(), "first.wasm"))
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	copySources(t, elsewhere)
	second := makeModule(t, elsewhere, "OUT="+filepath.Join(t.TempDir(), "second.wasm"), "GOCACHE="+t.TempDir())
	if !bytes.Equal(first, second) {
		t.Errorf("%d and %d bytes that differ", len(first), len(second))
	}
	if !bytes.Contains(first, []byte("1.2.3-test")) {
		t.Error("VERSION is not in the module")
	}
}

func makeModule(t *testing.T, dir string, env ...string) []byte {
	t.Helper()
	command := exec.Command("bash", "build/wasm.sh")
	command.Dir = dir
	command.Env = append(append(os.Environ(), "VERSION=1.2.3-test"), env...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(strings.TrimPrefix(env[0], "OUT="))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// copySources copies what the build reads. The installed tools are linked.
func copySources(t *testing.T, to string) {
	t.Helper()
	names := []string{"go.mod", "go.sum", "filter", "translate"}
	entries, err := os.ReadDir(filepath.Join(root, "build"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "out" && e.Name() != "node_modules" {
			names = append(names, "build/"+e.Name())
		}
	}
	if err := os.MkdirAll(filepath.Join(to, "build"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if out, err := exec.Command("cp", "-r", filepath.Join(root, name), filepath.Join(to, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	tools, err := filepath.Abs(filepath.Join(root, "build/node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(tools, filepath.Join(to, "build/node_modules")); err != nil {
		t.Fatal(err)
	}
}
