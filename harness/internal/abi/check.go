package abi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// version is the ABI that a module declares by exporting a marker.
type version int

// The versions that the harness runs.
const (
	v020 version = iota
	v021
)

// signature is a function's type in short: i for i32, I for i64, before and
// after a colon.
type signature string

func signatureOf(params, results []api.ValueType) signature {
	short := func(types []api.ValueType) string {
		var b strings.Builder
		for _, t := range types {
			switch t {
			case api.ValueTypeI32:
				b.WriteByte('i')
			case api.ValueTypeI64:
				b.WriteByte('I')
			default:
				b.WriteString("(" + api.ValueTypeName(t) + ")")
			}
		}
		return b.String()
	}
	return signature(short(params) + ":" + short(results))
}

// types turns the short form into what wazero wants.
func (s signature) types() (params, results []api.ValueType) {
	list := func(text string) []api.ValueType {
		var out []api.ValueType
		for _, c := range text {
			if c == 'I' {
				out = append(out, api.ValueTypeI64)
			} else {
				out = append(out, api.ValueTypeI32)
			}
		}
		return out
	}
	before, after, _ := strings.Cut(string(s), ":")
	return list(before), list(after)
}

// String writes the signature as WebAssembly text does: (i32, i64) -> i32.
func (s signature) String() string {
	r := strings.NewReplacer("i", "i32, ", "I", "i64, ", "(", "", ")", ", ")
	before, after, _ := strings.Cut(string(s), ":")
	after = strings.TrimSuffix(r.Replace(after), ", ")
	if after == "" {
		after = "()"
	}
	return "(" + strings.TrimSuffix(r.Replace(before), ", ") + ") -> " + after
}

// exports are the functions that a module may export and the host calls.
var exports = map[string]signature{
	"_initialize":                             ":",
	"_start":                                  ":",
	"main":                                    "ii:i",
	"malloc":                                  "i:i",
	"proxy_abi_version_0_2_0":                 ":",
	"proxy_abi_version_0_2_1":                 ":",
	"proxy_on_memory_allocate":                "i:i",
	"proxy_on_context_create":                 "ii:",
	"proxy_on_vm_start":                       "ii:i",
	"proxy_on_configure":                      "ii:i",
	"proxy_on_tick":                           "i:",
	"proxy_on_request_headers":                "iii:i",
	"proxy_on_request_body":                   "iii:i",
	"proxy_on_request_trailers":               "ii:i",
	"proxy_on_response_headers":               "iii:i",
	"proxy_on_response_body":                  "iii:i",
	"proxy_on_response_trailers":              "ii:i",
	"proxy_on_http_call_response":             "iiiii:",
	"proxy_on_queue_ready":                    "ii:",
	"proxy_on_done":                           "i:i",
	"proxy_on_log":                            "i:",
	"proxy_on_delete":                         "i:",
	"proxy_on_foreign_function":               "iii:",
	"proxy_on_new_connection":                 "i:i",
	"proxy_on_downstream_data":                "iii:i",
	"proxy_on_upstream_data":                  "iii:i",
	"proxy_on_downstream_connection_close":    "ii:",
	"proxy_on_upstream_connection_close":      "ii:",
	"proxy_on_grpc_receive_initial_metadata":  "iii:",
	"proxy_on_grpc_receive":                   "iii:",
	"proxy_on_grpc_receive_trailing_metadata": "iii:",
	"proxy_on_grpc_close":                     "iii:",
}

// Check says whether the module can run on a strict host, as one error that
// lists every fault: an import that no host has to provide, one with a wrong
// signature, a callback with a wrong signature, and what must be exported but
// is not. goWASI also allows the WASI functions that plain Go modules import.
func Check(m wazero.CompiledModule, goWASI bool) error {
	declared, faults := v020, []error(nil)
	marks := 0
	for v, name := range []string{"proxy_abi_version_0_2_0", "proxy_abi_version_0_2_1"} {
		if _, ok := m.ExportedFunctions()[name]; ok {
			declared = version(v)
			marks++
		}
	}
	if marks == 0 {
		faults = append(faults, errors.New("export missing: proxy_abi_version_0_2_0 or proxy_abi_version_0_2_1"))
	}
	faults = append(faults, checkImports(m, declared, goWASI)...)
	faults = append(faults, checkExports(m)...)
	return errors.Join(faults...)
}

func checkImports(m wazero.CompiledModule, declared version, goWASI bool) []error {
	var faults []error
	for _, f := range m.ImportedFunctions() {
		module, name, _ := f.Import()
		got := signatureOf(f.ParamTypes(), f.ResultTypes())
		want, ok := provided(module, name, declared, goWASI)
		switch {
		case !ok:
			faults = append(faults, fmt.Errorf("import unknown: %s.%s%s", module, name, got))
		case got != want:
			faults = append(faults, fmt.Errorf("import %s.%s has the signature %s, want %s", module, name, got, want))
		}
	}
	for _, mem := range m.ImportedMemories() {
		module, name, _ := mem.Import()
		faults = append(faults, fmt.Errorf("import unknown: memory %s.%s", module, name))
	}
	return faults
}

// provided is the signature of a function that this host has.
func provided(module, name string, declared version, goWASI bool) (signature, bool) {
	for _, f := range functions {
		if f.module != module || f.name != name {
			continue
		}
		if f.since > declared || f.goOnly && !goWASI {
			return "", false
		}
		return f.signature, true
	}
	return "", false
}

func checkExports(m wazero.CompiledModule) []error {
	var faults []error
	exported := m.ExportedFunctions()
	_, allocates := exported["proxy_on_memory_allocate"]
	_, mallocs := exported["malloc"]
	if !allocates && !mallocs {
		faults = append(faults, errors.New("export missing: proxy_on_memory_allocate"))
	}
	if len(m.ExportedMemories()) != 1 {
		faults = append(faults, errors.New("export missing: memory"))
	}
	names := make([]string, 0, len(exported))
	for name := range exported {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		want, known := exports[name]
		f := exported[name]
		if got := signatureOf(f.ParamTypes(), f.ResultTypes()); known && got != want {
			faults = append(faults, fmt.Errorf("export %s has the signature %s, want %s", name, got, want))
		}
	}
	return faults
}
