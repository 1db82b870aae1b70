package harness

import (
	"strings"
	"testing"

	"ezat.io/chat-completions/harness/internal/testguest"
)

// badPointer is past the end of a guest's one page, and overflows with a size.
const badPointer = -16

// TestBadPointers calls every hostcall with addresses outside the guest's
// memory: each answers with INVALID_MEMORY_ACCESS, or WASI's fault, and none
// fails the guest.
func TestBadPointers(t *testing.T) {
	const (
		invalid = 6
		fault   = 21
	)
	p := func(values ...int32) []byte {
		var code []byte
		for _, v := range values {
			code = append(code, testguest.I32(v)...)
		}
		return code
	}
	const x = badPointer
	for _, test := range []struct {
		module, name, params string
		args                 []byte
		want                 uint64
	}{
		{"env", "proxy_log", "iii", p(1, x, 100), invalid},
		{"env", "proxy_log", "iii", p(6, 0, 1), 2},
		{"env", "proxy_get_current_time_nanoseconds", "i", p(x), invalid},
		{"env", "proxy_get_property", "iiii", p(x, 100, 0, 4), invalid},
		{"env", "proxy_get_property", "iiii", p(0, 11, x, 4), invalid},
		{"env", "proxy_get_property", "iiii", p(0, 11, 16, -2), invalid},
		{"env", "proxy_set_property", "iiii", p(0, 1, x, 100), invalid},
		{"env", "proxy_get_buffer_status", "iii", p(0, x, x), invalid},
		{"env", "proxy_set_buffer_bytes", "iiiii", p(0, 0, 0, x, 100), invalid},
		{"env", "proxy_get_header_map_pairs", "iii", p(0, x, x), invalid},
		{"env", "proxy_set_header_map_pairs", "iii", p(0, x, 100), invalid},
		{"env", "proxy_get_header_map_value", "iiiii", p(0, x, 100, 0, 0), invalid},
		{"env", "proxy_add_header_map_value", "iiiii", p(0, 0, 1, x, 100), invalid},
		{"env", "proxy_replace_header_map_value", "iiiii", p(0, x, 100, 0, 1), invalid},
		{"env", "proxy_remove_header_map_value", "iii", p(0, x, 100), invalid},
		{"env", "proxy_send_local_response", "iiiiiiii", p(200, 0, 0, x, 100, 0, 0, 0), invalid},
		{"env", "proxy_http_call", "iiiiiiiiii", p(0, 1, 0, 0, 0, 0, 0, 0, 0, x), invalid},
		{"env", "proxy_http_call", "iiiiiiiiii", p(x, 100, 0, 0, 0, 0, 0, 0, 0, 0), invalid},
		{"env", "proxy_get_status", "iii", p(x, 0, 0), invalid},
		{"env", "proxy_get_shared_data", "iiiii", p(x, 100, 0, 0, 0), invalid},
		{"env", "proxy_set_shared_data", "iiiii", p(0, 1, x, 100, 0), invalid},
		{"env", "proxy_register_shared_queue", "iii", p(0, 1, x), invalid},
		{"env", "proxy_resolve_shared_queue", "iiiii", p(x, 100, 0, 1, 0), invalid},
		{"env", "proxy_enqueue_shared_queue", "iii", p(0, x, 100), invalid},
		{"env", "proxy_define_metric", "iiii", p(0, 0, 1, x), invalid},
		{"env", "proxy_define_metric", "iiii", p(0, x, 100, 0), invalid},
		{"env", "proxy_call_foreign_function", "iiiiii", p(x, 100, 0, 0, 0, 0), invalid},
		{"env", "proxy_grpc_cancel", "i", p(1), 12},
		{"wasi_snapshot_preview1", "fd_write", "iiii", p(1, x, 1, 0), fault},
		{"wasi_snapshot_preview1", "fd_write", "iiii", p(3, 0, 1, 0), 8},
		{"wasi_snapshot_preview1", "fd_write", "iiii", p(1, 512, 1, x), fault},
		{"wasi_snapshot_preview1", "random_get", "ii", p(x, 100), fault},
		{"wasi_snapshot_preview1", "random_get", "ii", p(0, 1<<30), 28},
		{"wasi_snapshot_preview1", "environ_sizes_get", "ii", p(x, 0), fault},
		{"wasi_snapshot_preview1", "environ_get", "ii", p(x, 0), fault},
		{"wasi_snapshot_preview1", "args_sizes_get", "ii", p(x, 0), fault},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := testguest.Strict(
				wasmFunc{Export: "probe", Results: "i", Code: testguest.Code(test.args, testguest.Call(0))},
			)
			m.Imports = []wasmImport{{Module: test.module, Name: test.name, Params: test.params, Results: "i"}}
			m.Data = "plugin_name"
			h := newTestHost(t, m.Bytes(), Config{CacheDir: "-", PluginName: "p", Environment: []string{"A=b"}})
			if got := h.probe(t); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// probe calls the guest's export of that name in the plugin context.
func (h *Host) probe(t *testing.T) uint64 {
	t.Helper()
	var got uint64
	h.workers[0].do(func() {
		v := h.workers[0].vm
		got = v.ask(v.root, "probe")
		if v.failure != nil {
			t.Fatal(v.failure)
		}
	})
	return got
}

// TestBadAllocator gives the guest allocators that fail: the hostcall says so, or
// the guest fails with its allocator.
func TestBadAllocator(t *testing.T) {
	property := wasmFunc{Export: "probe", Results: "i", Code: testguest.Code(
		testguest.I32(0), testguest.I32(11), testguest.I32(32), testguest.I32(36), testguest.Call(0))}
	for name, test := range map[string]struct {
		code []byte
		want uint64
		fail bool
	}{
		"null":          {testguest.I32(0), 6, false},
		"out of memory": {testguest.I32(65535), 6, false},
		"trap":          {testguest.Unreachable, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := testguest.Strict(property)
			m.Funcs[1].Code = test.code
			m.Imports = []wasmImport{{Module: "env", Name: "proxy_get_property", Params: "iiii", Results: "i"}}
			m.Data = "plugin_name"
			h := newTestHost(t, m.Bytes(), Config{CacheDir: "-", PluginName: "two or more bytes"})
			w := h.workers[0]
			w.do(func() {
				got := w.vm.ask(w.vm.root, "probe")
				if failed := w.vm.failure != nil; failed != test.fail || got != test.want {
					t.Errorf("got %d, failure %v", got, w.vm.failure)
				}
			})
		})
	}
}

// TestClockAndRandom shows that both are the same in every run unless a test
// says otherwise.
func TestClockAndRandom(t *testing.T) {
	run := func() (string, uint64) {
		m := testguest.Strict(wasmFunc{Export: "probe", Results: "i", Code: testguest.Code(
			testguest.I32(64), testguest.I32(16), testguest.Call(0), testguest.Drop,
			testguest.I32(0), testguest.I64Zero, testguest.I32(128), testguest.Call(1))})
		m.Imports = []wasmImport{
			{Module: "wasi_snapshot_preview1", Name: "random_get", Params: "ii", Results: "i"},
			{Module: "wasi_snapshot_preview1", Name: "clock_time_get", Params: "iIi", Results: "i"},
		}
		h := newTestHost(t, m.Bytes(), Config{CacheDir: "-"})
		if got := h.probe(t); got != 0 {
			t.Fatalf("errno %d", got)
		}
		mem := h.workers[0].vm.mod.Memory()
		random, _ := mem.Read(64, 16)
		now, _ := mem.ReadUint64Le(128)
		return string(random), now
	}
	random1, now1 := run()
	random2, now2 := run()
	if random1 != random2 || random1 == strings.Repeat("\x00", 16) {
		t.Errorf("random bytes: %x and %x", random1, random2)
	}
	if now1 != now2 || now1 != uint64(FakeEpoch.UnixNano()) {
		t.Errorf("times: %d and %d, want %d", now1, now2, FakeEpoch.UnixNano())
	}
}
