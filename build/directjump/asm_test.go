package directjump

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// asm joins instructions, each the bytes of one or more.
func asm(parts ...[]byte) []byte { return slices.Concat(parts...) }

func op(code byte, immediates ...uint64) []byte {
	b := []byte{code}
	for _, i := range immediates {
		b = binary.AppendUvarint(b, i)
	}
	return b
}

func signedLEB(v int64) (b []byte) {
	for {
		c := byte(v & 0x7F)
		v >>= 7
		if v == 0 && c < 0x40 || v == -1 && c >= 0x40 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func constant(v int32) []byte { return append([]byte{opI32Const}, signedLEB(int64(v))...) }
func get(i uint64) []byte     { return op(opLocalGet, i) }
func set(i uint64) []byte     { return op(opLocalSet, i) }
func tee(i uint64) []byte     { return op(opLocalTee, i) }
func br(label uint64) []byte  { return op(opBr, label) }

func brIf(label uint64) []byte { return op(opBrIf, label) }

func brTable(labels ...uint64) []byte {
	return op(opBrTable, append([]uint64{uint64(len(labels) - 1)}, labels...)...)
}

var (
	block       = []byte{opBlock, blockVoid}
	loop        = []byte{opLoop, blockVoid}
	iff         = []byte{opIf, blockVoid}
	els         = []byte{opElse}
	end         = []byte{opEnd}
	drop        = []byte{0x1A}
	unreachable = []byte{opUnreachable}
	ret         = []byte{0x0F}
	prologue    = asm(op(opGlobalGet, 0), set(1))
	coin        = op(opCall, 0) // -> i32, what the host says
)

// trace calls the host with the number of a place.
func trace(place int32) []byte { return asm(constant(place), op(opCall, 1)) }

// jump is what Go's compiler makes of a jump; label is the dispatch loop's.
func jump(pc int32, label uint64) []byte { return asm(constant(pc), set(0), br(label)) }

// Function types of the modules that goModule makes.
const (
	typeGo    = 0 // (i32) -> i32
	typeCoin  = 1 // () -> i32
	typeTrace = 2 // (i32) -> ()
)

// tested puts tests in front of the dispatch table of a body, for the given
// numbers and for 0.
func tested(body []byte, numbers ...int32) []byte {
	d := decoder{reader: reader{b: body, function: -1}}
	d.locals()
	var read, table instr
	for table.op != opBrTable && d.err == nil {
		read, table = table, d.next()
	}
	label := func(number int32) uint64 { return uint64(d.labels[min(int(uint32(number)), len(d.labels)-1)]) }
	var tests [][]byte
	for _, number := range numbers {
		tests = append(tests, testFor(number, label(number)))
	}
	return asm(body[:read.start], asm(tests...), entryTest(label(0)), body[read.start:])
}

// testFor and entryTest are single tests of PC_B.
func testFor(number int32, label uint64) []byte {
	return asm(get(0), constant(number), []byte{opI32Eq}, brIf(label))
}

func entryTest(label uint64) []byte { return asm(get(0), []byte{opI32Eqz}, brIf(label)) }

// function is a function with Go's calling convention: the locals are PC_B, the
// copy of SP, and one more of type i64.
func function(code ...[]byte) []byte {
	return asm([]byte{2, 1, typeI32, 1, 0x7E}, prologue, asm(code...), end)
}

// section frames the content of a section.
func section(id byte, content ...[]byte) []byte {
	all := asm(content...)
	return asm([]byte{id}, binary.AppendUvarint(nil, uint64(len(all))), all)
}

func vector(items ...[]byte) []byte {
	return asm(append([][]byte{binary.AppendUvarint(nil, uint64(len(items)))}, items...)...)
}

func sized(b []byte) []byte { return asm(binary.AppendUvarint(nil, uint64(len(b))), b) }

// parts are the sections of a module; a test changes what it is about.
type parts struct {
	types, imports, funcs, globals, exports, code, rest []byte
}

// goParts is a module with the given functions of Go's calling convention, as f0,
// f1 and so on, and two imports in front of them.
func goParts(bodies ...[]byte) parts {
	var funcs, exports, code [][]byte
	for i, body := range bodies {
		funcs = append(funcs, []byte{typeGo})
		exports = append(exports, asm(sized(fmt.Appendf(nil, "f%d", i)), []byte{0}, binary.AppendUvarint(nil, uint64(i+2))))
		code = append(code, sized(body))
	}
	return parts{
		types: section(sectionType, vector(
			[]byte{0x60, 1, typeI32, 1, typeI32}, []byte{0x60, 0, 1, typeI32}, []byte{0x60, 1, typeI32, 0})),
		imports: section(sectionImport, vector(
			asm(sized([]byte("env")), sized([]byte("coin")), []byte{0, typeCoin}),
			asm(sized([]byte("env")), sized([]byte("trace")), []byte{0, typeTrace}))),
		funcs:   section(sectionFunction, vector(funcs...)),
		globals: section(6, vector(asm([]byte{typeI32, 1}, constant(0), end))),
		exports: section(7, vector(exports...)),
		code:    section(sectionCode, vector(code...)),
	}
}

func (p parts) module() []byte {
	return asm(header, p.types, p.imports, p.funcs, p.globals, p.exports, p.code, p.rest)
}

func goModule(bodies ...[]byte) []byte { return goParts(bodies...).module() }

// listing is the code of a body as text, for messages.
func listing(body []byte) string {
	d := decoder{reader: reader{b: body, function: -1}}
	d.locals()
	var lines []string
	for d.more() {
		in := d.next()
		lines = append(lines, fmt.Sprintf("%3d  % x", in.start, body[in.start:in.end]))
	}
	if d.err != nil {
		lines = append(lines, d.err.Error())
	}
	return strings.Join(lines, "\n")
}
