package testguest

// Module is a WebAssembly module written by hand, for what no compiler produces:
// wrong imports, wrong signatures, bad pointers.
type Module struct {
	Imports  []Import
	Funcs    []Func
	NoMemory bool   // nothing is exported as "memory"
	Data     string // at address 0
}

// Import is an imported function; an empty signature with Memory set is a memory.
type Import struct {
	Module, Name    string
	Params, Results string // "i" is i32, "I" is i64
	Memory          bool
}

// Func is an exported function. The imports come first in the index space.
type Func struct {
	Export          string
	Params, Results string
	Code            []byte
}

// Strict returns the least module that a strict host loads: ABI 0.2.0, an
// allocator that returns 1024, and nothing else. More functions come after these.
func Strict(more ...Func) Module {
	return Module{Funcs: append([]Func{
		{Export: "proxy_abi_version_0_2_0"},
		{Export: "proxy_on_memory_allocate", Params: "i", Results: "i", Code: I32(1024)},
	}, more...)}
}

// I32 pushes a constant.
func I32(n int32) []byte {
	code := []byte{0x41}
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(code, b)
		}
		code = append(code, b|0x80)
	}
}

// Instructions without operands.
var (
	Unreachable = []byte{0x00}
	Drop        = []byte{0x1a}
	Forever     = []byte{0x03, 0x40, 0x0c, 0x00, 0x0b} // loop; br 0; end
)

// I64Zero pushes a 64-bit zero.
var I64Zero = []byte{0x42, 0x00}

// Call calls a function by index.
func Call(index int) []byte { return append([]byte{0x10}, unsigned(index)...) }

// Code joins instructions.
func Code(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// Bytes encodes the module.
func (m Module) Bytes() []byte {
	out := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	var types, imports, funcs, exports, codes [][]byte
	typeOf := func(params, results string) int {
		types = append(types, Code([]byte{0x60}, valueTypes(params), valueTypes(results)))
		return len(types) - 1
	}
	imported := 0
	for _, i := range m.Imports {
		entry := Code(name(i.Module), name(i.Name))
		if i.Memory {
			imports = append(imports, append(entry, 0x02, 0x00, 0x01))
			continue
		}
		imports = append(imports, Code(entry, []byte{0x00}, unsigned(typeOf(i.Params, i.Results))))
		imported++
	}
	for n, f := range m.Funcs {
		funcs = append(funcs, unsigned(typeOf(f.Params, f.Results)))
		exports = append(exports, Code(name(f.Export), []byte{0x00}, unsigned(imported+n)))
		body := Code([]byte{0x00}, f.Code, []byte{0x0b})
		codes = append(codes, Code(unsigned(len(body)), body))
	}
	out = append(out, section(1, types)...)
	out = append(out, section(2, imports)...)
	out = append(out, section(3, funcs)...)
	if !m.NoMemory {
		out = append(out, section(5, [][]byte{{0x00, 0x01}})...)
		exports = append(exports, Code(name("memory"), []byte{0x02, 0x00}))
	}
	out = append(out, section(7, exports)...)
	out = append(out, section(10, codes)...)
	if m.Data != "" {
		out = append(out, section(11, [][]byte{Code([]byte{0x00}, I32(0), []byte{0x0b}, name(m.Data))})...)
	}
	return out
}

func section(id byte, entries [][]byte) []byte {
	if len(entries) == 0 {
		return nil
	}
	body := Code(unsigned(len(entries)), Code(entries...))
	return Code([]byte{id}, unsigned(len(body)), body)
}

func valueTypes(short string) []byte {
	out := unsigned(len(short))
	for _, c := range short {
		if c == 'I' {
			out = append(out, 0x7e)
		} else {
			out = append(out, 0x7f)
		}
	}
	return out
}

func name(s string) []byte { return append(unsigned(len(s)), s...) }

func unsigned(n int) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		if n >>= 7; n == 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
