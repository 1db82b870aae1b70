package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ezat.io/chat-completions/harness/internal/testguest"
)

type (
	wasmImport = testguest.Import
	wasmFunc   = testguest.Func
)

// strictWith is the least module with more imports and functions.
func strictWith(imports []wasmImport, funcs ...wasmFunc) []byte {
	m := testguest.Strict(funcs...)
	m.Imports = imports
	return m.Bytes()
}

// TestLoadRefuses shows that a module that a strict host could not run does not
// load, and that the error names what is wrong.
func TestLoadRefuses(t *testing.T) {
	noABI := testguest.Strict()
	noABI.Funcs = noABI.Funcs[1:]
	noAllocator := testguest.Strict()
	noAllocator.Funcs = noAllocator.Funcs[:1]
	noMemory := testguest.Strict()
	noMemory.NoMemory = true
	memory := noMemory
	memory.Imports = []wasmImport{{Module: "env", Name: "memory", Memory: true}}
	for _, test := range []struct {
		name   string
		module []byte
		want   []string
	}{
		{"no module at all", []byte("hello"), []string{"compile the module"}},
		{"unknown function", strictWith([]wasmImport{{Module: "env", Name: "proxy_fly", Params: "iI", Results: "i"}}),
			[]string{"import unknown: env.proxy_fly(i32, i64) -> i32"}},
		{"unknown module", strictWith([]wasmImport{{Module: "wasi_unstable", Name: "fd_write", Params: "iiii", Results: "i"}}),
			[]string{"import unknown: wasi_unstable.fd_write(i32, i32, i32, i32) -> i32"}},
		{"a WASI function beyond the eight", strictWith([]wasmImport{{Module: "wasi_snapshot_preview1", Name: "poll_oneoff", Params: "iiii", Results: "i"}}),
			[]string{"import unknown: wasi_snapshot_preview1.poll_oneoff(i32, i32, i32, i32) -> i32"}},
		{"a wrong signature", strictWith([]wasmImport{{Module: "env", Name: "proxy_log", Params: "ii", Results: ""}}),
			[]string{"import env.proxy_log has the signature (i32, i32) -> (), want (i32, i32, i32) -> i32"}},
		{"a function of the next ABI", strictWith([]wasmImport{{Module: "env", Name: "proxy_get_log_level", Params: "i", Results: "i"}}),
			[]string{"import unknown: env.proxy_get_log_level(i32) -> i32"}},
		{"a memory", memory.Bytes(),
			[]string{"import unknown: memory env.memory"}},
		{"a callback with a wrong signature", strictWith(nil, wasmFunc{Export: "proxy_on_request_headers", Params: "ii", Results: "i", Code: testguest.I32(0)}),
			[]string{"export proxy_on_request_headers has the signature (i32, i32) -> i32, want (i32, i32, i32) -> i32"}},
		{"no ABI version", noABI.Bytes(), []string{"export missing: proxy_abi_version_0_2_0 or proxy_abi_version_0_2_1"}},
		{"no allocator", noAllocator.Bytes(), []string{"export missing: proxy_on_memory_allocate"}},
		{"no memory", noMemory.Bytes(), []string{"export missing: memory"}},
		{"several faults", testguest.Module{NoMemory: true, Imports: []wasmImport{{Module: "a", Name: "b"}, {Module: "c", Name: "d"}}}.Bytes(),
			[]string{"a.b() -> ()", "c.d() -> ()", "proxy_abi_version", "proxy_on_memory_allocate", "memory"}},
		{"a start that fails", strictWith(nil, wasmFunc{Export: "_initialize", Code: testguest.Unreachable}),
			[]string{"does not initialise", "_initialize", "unreachable"}},
		{"a start that calls the proxy", strictWith([]wasmImport{{Module: "env", Name: "proxy_done", Results: "i"}},
			wasmFunc{Export: "_initialize", Code: testguest.Code(testguest.Call(0), testguest.Drop)}),
			[]string{"env.proxy_done: is not allowed while the module initialises"}},
		{"a guest that does not start", strictWith(nil, wasmFunc{Export: "proxy_on_vm_start", Params: "ii", Results: "i", Code: testguest.I32(0)}),
			[]string{"refuses to start"}},
		{"a guest that fails in its configuration", strictWith(nil, wasmFunc{Export: "proxy_on_configure", Params: "ii", Results: "i", Code: testguest.Unreachable}),
			[]string{"fails while it starts", "proxy_on_configure"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := New(t.Context(), test.module, Config{CacheDir: "-"})
			if err == nil {
				_ = h.Close(t.Context())
				t.Fatal("it loads")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// TestLoadOrder shows the calls that start a module: _initialize, then main; _start
// only where there is no _initialize; malloc before proxy_on_memory_allocate.
func TestLoadOrder(t *testing.T) {
	say := func(export, text string, at int32) wasmFunc {
		f := wasmFunc{Export: export, Code: testguest.Code(testguest.I32(2), testguest.I32(at), testguest.I32(int32(len(text))), testguest.Call(0), testguest.Drop)}
		if export == "main" {
			f.Params, f.Results = "ii", "i"
			f.Code = append(f.Code, testguest.I32(0)...)
		}
		return f
	}
	for _, test := range []struct {
		name  string
		funcs []wasmFunc
		want  string
	}{
		{"reactor", []wasmFunc{say("main", "main", 4), say("_start", "strt", 8), say("_initialize", "init", 0)}, "init main"},
		{"command", []wasmFunc{say("main", "main", 4), say("_start", "strt", 8)}, "strt"},
		{"neither", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := testguest.Strict(test.funcs...)
			m.Imports = []wasmImport{{Module: "env", Name: "proxy_log", Params: "iii", Results: "i"}}
			m.Data = "initmainstrt"
			h := newTestHost(t, m.Bytes(), Config{CacheDir: "-"})
			var said []string
			for _, l := range h.Log() {
				said = append(said, l.Message)
			}
			if got := strings.Join(said, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestConfigurationRefused shows what New says of a guest that refuses its
// configuration.
func TestConfigurationRefused(t *testing.T) {
	_, err := New(t.Context(), guestModule(t), Config{GoWASI: true, PluginConfig: "configure: log first fault; log second; pause"})
	if err == nil {
		t.Fatal("it starts")
	}
	for _, want := range []string{"refuses its configuration", "first fault", "second"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// TestGoWASIIsAsked shows that a plain Go module only loads where that is wanted.
func TestGoWASIIsAsked(t *testing.T) {
	_, err := New(t.Context(), guestModule(t), Config{})
	for _, name := range []string{"sched_yield", "poll_oneoff", "fd_fdstat_get", "fd_prestat_get"} {
		if err == nil || !strings.Contains(err.Error(), "wasi_snapshot_preview1."+name) {
			t.Errorf("%s is not in: %v", name, err)
		}
	}
}

// TestConfigChecked shows which configurations New refuses.
func TestConfigChecked(t *testing.T) {
	for name, config := range map[string]Config{
		"too many workers": {Workers: 1000},
		"fewer than one":   {Workers: -1},
		"no memory":        {MemoryBytesMax: 1},
		"too much memory":  {MemoryBytesMax: 2 << 30},
		"negative limit":   {BufferBytesMax: -1},
	} {
		if h, err := New(t.Context(), testguest.Strict().Bytes(), config); err == nil {
			_ = h.Close(t.Context())
			t.Errorf("%s: it starts", name)
		}
	}
}

// TestCompilationCache shows that a module is compiled once per folder.
func TestCompilationCache(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		newTestHost(t, testguest.Strict().Bytes(), Config{CacheDir: dir})
	}
	var files []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	compiled := 0
	for _, f := range files {
		if !strings.Contains(f, cacheVersion) {
			t.Errorf("%s is not under the version", f)
		}
		compiled++
	}
	if compiled == 0 {
		t.Error("nothing was kept")
	}
}

// TestPruneCache shows that the oldest files go when the cache is too large.
func TestPruneCache(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"old", "middle", "new"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1000*i), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := pruneCache(dir, 250); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != "middle" || filepath.Base(left[1]) != "new" {
		t.Errorf("left: %v (%v)", left, err)
	}
	if err := pruneCache(filepath.Join(dir, "nowhere"), 1); err != nil {
		t.Errorf("a cache that is not there yet: %v", err)
	}
}

// TestCacheVersion holds the cache's folder to the version of wazero in go.mod.
func TestCacheVersion(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/tetratelabs/wazero " + strings.TrimPrefix(cacheVersion, "wazero-"); !strings.Contains(string(mod), want) {
		t.Errorf("go.mod does not have %q", want)
	}
}

// guestModule is the script guest.
func guestModule(t testing.TB) []byte {
	t.Helper()
	module, err := scriptGuest()
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// newTestHost starts a host that is closed with the test.
func newTestHost(t testing.TB, module []byte, config Config) *Host {
	t.Helper()
	h, err := New(t.Context(), module, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// scriptHost starts the script guest with a script.
func scriptHost(t testing.TB, script string, change func(*Config)) *Host {
	t.Helper()
	config := Config{GoWASI: true, PluginConfig: script, Clusters: map[string]Cluster{"up": {}, "callout": {}}}
	config.Routes = []Route{{Name: "all", Prefix: "/", Cluster: "up"}}
	if change != nil {
		change(&config)
	}
	return newTestHost(t, guestModule(t), config)
}
