package directjump

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Section ids (core specification 2.0, 5.5.2).
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

// Value types.
const (
	typeI32 = 0x7F
	typeF64 = 0x7C
)

var header = []byte("\x00asm\x01\x00\x00\x00")

// span is a range of bytes of the module.
type span struct{ start, end int }

// funcType is what the pass needs to know of a function's type.
type funcType struct {
	params int
	// convention tells that the type is the one of Go's own calling convention:
	// (i32) -> i32, where the parameter is PC_B.
	convention bool
}

// module is a module that was split, not decoded: everything points into bytes.
type module struct {
	bytes    []byte
	types    []funcType
	imported int    // number of imported functions
	funcs    []int  // the type of each function with a body
	bodies   []span // local declarations and code, without the size in front
	code     span   // the code section, id and size included
}

// reader reads the binary format. The first fault stays in err, as an *Error;
// from then on every read gives zero.
type reader struct {
	b        []byte // the whole module, up to where this reader may read
	pos      int
	function int // for faults; -1 outside of bodies
	err      error
}

func (r *reader) fail(pos int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Function: r.function, Offset: pos, Reason: fmt.Sprintf(format, args...)}
		r.pos = len(r.b)
	}
}

func (r *reader) more() bool { return r.err == nil && r.pos < len(r.b) }

func (r *reader) byte() byte {
	if r.pos >= len(r.b) {
		r.fail(r.pos, "ends too early")
		return 0
	}
	b := r.b[r.pos]
	r.pos++
	return b
}

// skip passes over n bytes and gives their range.
func (r *reader) skip(n uint64) span {
	if n > uint64(len(r.b)-r.pos) {
		r.fail(r.pos, "%d bytes announced, %d are there", n, len(r.b)-r.pos)
		return span{r.pos, r.pos}
	}
	s := span{r.pos, r.pos + int(n)}
	r.pos = s.end
	return s
}

// u32 reads an unsigned LEB128 number of at most 32 bits. Longer spellings than
// needed are allowed, as in the specification; Go's linker writes them.
func (r *reader) u32() uint32 {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 { // nearly all numbers
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	start := r.pos
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		if shift == 28 && b > 0x0F {
			break
		}
		v |= uint32(b&0x7F) << shift
		if b < 0x80 {
			return v
		}
	}
	r.fail(start, "a number is longer than 32 bits")
	return 0
}

// signed reads a signed LEB128 number of at most the given bits, 32 or 64.
func (r *reader) signed(bits int) int64 {
	start := r.pos
	var v int64
	for shift := 0; shift < bits; shift += 7 {
		b := r.byte()
		v |= int64(b&0x7F) << shift
		if left := bits - shift; left < 7 {
			// The last byte may carry nothing but copies of the sign.
			if top := int8(b<<1) >> left; b >= 0x80 || top != 0 && top != -1 {
				break
			}
			return v << (64 - bits) >> (64 - bits)
		}
		if b < 0x80 {
			return v << (57 - shift) >> (57 - shift)
		}
	}
	r.fail(start, "a number is longer than %d bits", bits)
	return 0
}

// parse splits a module. It reads types, imports and functions, finds the bodies,
// and checks the frame around them.
func parse(b []byte) (*module, error) {
	m := &module{bytes: b}
	r := &reader{b: b, function: -1}
	if !bytes.HasPrefix(b, header) {
		r.fail(0, "not a WebAssembly module of version 1")
		return nil, r.err
	}
	r.pos = len(header)
	last := 0
	for r.more() {
		start := r.pos
		id := r.byte()
		content := r.skip(uint64(r.u32()))
		if r.err != nil {
			break
		}
		if last = r.order(start, last, id); r.err != nil {
			break
		}
		inner := &reader{b: b[:content.end], pos: content.start, function: -1}
		known := true
		switch id {
		case sectionType:
			m.readTypes(inner)
		case sectionImport:
			m.readImports(inner)
		case sectionFunction:
			m.readFunctions(inner)
		case sectionCode:
			m.code = span{start, content.end}
			m.readBodies(inner)
		default:
			known = false
		}
		if known && inner.err == nil && inner.pos != content.end {
			inner.fail(inner.pos, "section %d goes on after its last entry", id)
		}
		r.err = inner.err
	}
	if r.err == nil && len(m.bodies) != len(m.funcs) {
		r.fail(len(b), "%d functions are declared, %d have a body", len(m.funcs), len(m.bodies))
	}
	return m, r.err
}

// order checks that the section may stand here and returns its rank: each
// section but a custom one stands once, in the order of the specification.
func (r *reader) order(pos, last int, id byte) int {
	rank := 2 * int(id)
	switch {
	case id == sectionCustom:
		return last
	case id == sectionDataCount:
		rank = 2*sectionCode - 1
	case id > sectionDataCount:
		r.fail(pos, "section %d is unknown", id)
	}
	if rank <= last {
		r.fail(pos, "section %d stands twice or in the wrong place", id)
	}
	return rank
}

func (m *module) readTypes(r *reader) {
	for range r.u32() {
		if start := r.pos; r.byte() != 0x60 {
			r.fail(start, "a type that is not a function's")
		}
		params := r.skip(uint64(r.u32()))
		results := r.skip(uint64(r.u32()))
		if r.err != nil {
			return
		}
		i32 := []byte{typeI32}
		m.types = append(m.types, funcType{
			params:     params.end - params.start,
			convention: bytes.Equal(r.b[params.start:params.end], i32) && bytes.Equal(r.b[results.start:results.end], i32),
		})
	}
}

func (m *module) readImports(r *reader) {
	for range r.u32() {
		r.skip(uint64(r.u32())) // module
		r.skip(uint64(r.u32())) // name
		start := r.pos
		switch kind := r.byte(); kind {
		case 0: // function
			m.readTypeIndex(r)
			m.imported++
		case 1: // table
			r.byte()
			r.limits()
		case 2: // memory
			r.limits()
		case 3: // global
			r.skip(2)
		default:
			r.fail(start, "an import of unknown kind %d", kind)
		}
		if r.err != nil {
			return
		}
	}
}

func (r *reader) limits() {
	start := r.pos
	switch flags := r.byte(); flags {
	case 0:
		r.u32()
	case 1:
		r.u32()
		r.u32()
	default:
		r.fail(start, "unknown limits 0x%02x", flags)
	}
}

func (m *module) readTypeIndex(r *reader) int {
	start := r.pos
	index := r.u32()
	if uint64(index) >= uint64(len(m.types)) {
		r.fail(start, "type %d does not exist", index)
	}
	return int(index)
}

func (m *module) readFunctions(r *reader) {
	for range r.u32() {
		index := m.readTypeIndex(r)
		if r.err != nil {
			return
		}
		m.funcs = append(m.funcs, index)
	}
}

func (m *module) readBodies(r *reader) {
	start := r.pos
	count := r.u32()
	if uint64(count) != uint64(len(m.funcs)) {
		r.fail(start, "%d functions are declared, %d have a body", len(m.funcs), count)
	}
	for range count {
		body := r.skip(uint64(r.u32()))
		if r.err != nil {
			return
		}
		m.bodies = append(m.bodies, body)
	}
}

// write is the module with other bodies. Nothing but the code section differs.
func (m *module) write(bodies [][]byte) []byte {
	size := sizeOf(len(bodies))
	for _, body := range bodies {
		size += sizeOf(len(body)) + len(body)
	}
	out := make([]byte, 0, m.code.start+1+sizeOf(size)+size+len(m.bytes)-m.code.end)
	out = append(out, m.bytes[:m.code.start]...)
	out = append(out, sectionCode)
	out = binary.AppendUvarint(out, uint64(size))
	out = binary.AppendUvarint(out, uint64(len(bodies)))
	for _, body := range bodies {
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}
	return append(out, m.bytes[m.code.end:]...)
}

// sizeOf is the length of n in LEB128.
func sizeOf(n int) int {
	size := 1
	for n >>= 7; n > 0; n >>= 7 {
		size++
	}
	return size
}
