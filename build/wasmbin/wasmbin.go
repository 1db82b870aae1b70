// Package wasmbin reads the outer form of a WebAssembly module: its sections,
// imports and exports (core specification 2.0, "Binary Format"), and writes a
// module without some of its exports and without custom sections. It never
// looks into code.
package wasmbin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Section ids.
const (
	custom   = 0
	imports  = 2
	exports  = 7
	sections = 12
)

var header = []byte("\x00asm\x01\x00\x00\x00")

// Section is one section of a module.
type Section struct {
	ID   byte
	Body []byte // without id and size
}

// Import is one import; Kind 0 is a function.
type Import struct {
	Module, Name string
	Kind         byte
}

// Export is one export; Kind 0 is a function.
type Export struct {
	Name  string
	Kind  byte
	Index uint32
}

// Sections splits a module.
func Sections(module []byte) ([]Section, error) {
	rest, ok := bytes.CutPrefix(module, header)
	if !ok {
		return nil, errors.New("not a WebAssembly module of version 1")
	}
	r := reader{b: rest}
	var out []Section
	for len(r.b) > 0 && r.err == nil {
		id := r.byte()
		body := r.bytes(r.u32())
		if id > sections {
			r.fail("an unknown section")
		}
		out = append(out, Section{id, body})
	}
	return out, r.err
}

// Imports lists the imports in their order.
func Imports(module []byte) ([]Import, error) {
	r, err := open(module, imports)
	if err != nil {
		return nil, err
	}
	var out []Import
	for range r.u32() {
		if r.err != nil {
			break
		}
		i := Import{Module: r.name(), Name: r.name(), Kind: r.byte()}
		r.descriptor(i.Kind)
		out = append(out, i)
	}
	return out, r.err
}

// Exports lists the exports in their order.
func Exports(module []byte) ([]Export, error) {
	r, err := open(module, exports)
	if err != nil {
		return nil, err
	}
	return r.exports(), r.err
}

// Strip is the module without the exports of the given names and without
// custom sections. A name that is not exported is an error: the caller expects
// something else than what is there.
func Strip(module []byte, names map[string]bool) ([]byte, error) {
	all, err := Sections(module)
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(header)
	dropped := 0
	for _, s := range all {
		switch s.ID {
		case custom:
			continue
		case exports:
			if s.Body, dropped, err = stripExports(s.Body, names); err != nil {
				return nil, err
			}
		}
		out = append(out, s.ID)
		out = binary.AppendUvarint(out, uint64(len(s.Body)))
		out = append(out, s.Body...)
	}
	if dropped != len(names) {
		return nil, fmt.Errorf("%d of %d exports found", dropped, len(names))
	}
	return out, nil
}

func stripExports(body []byte, names map[string]bool) (out []byte, dropped int, err error) {
	r := reader{b: body}
	var kept []byte
	n := 0
	for _, e := range r.exports() {
		if names[e.Name] {
			dropped++
			continue
		}
		n++
		kept = binary.AppendUvarint(kept, uint64(len(e.Name)))
		kept = append(kept, e.Name...)
		kept = append(kept, e.Kind)
		kept = binary.AppendUvarint(kept, uint64(e.Index))
	}
	return append(binary.AppendUvarint(nil, uint64(n)), kept...), dropped, r.err
}

// open is a reader at the body of the module's section of an id; of an empty
// vector when there is none.
func open(module []byte, id byte) (*reader, error) {
	all, err := Sections(module)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.ID == id {
			return &reader{b: s.Body}, nil
		}
	}
	return &reader{b: []byte{0}}, nil
}

// reader reads from the front of b. After the first fault every method returns
// zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = errors.New("malformed module: " + what)
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("it ends early")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) u32() uint32 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > 1<<32-1 {
		r.fail("a bad number")
		return 0
	}
	r.b = r.b[n:]
	return uint32(v)
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)) {
		r.fail("it ends early")
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) name() string { return string(r.bytes(r.u32())) }

// descriptor passes over what an import of a kind says of its type.
func (r *reader) descriptor(kind byte) {
	limits := func() {
		if r.byte()&1 != 0 {
			r.u32()
		}
		r.u32()
	}
	switch kind {
	case 0: // function: type index
		r.u32()
	case 1: // table: element type, limits
		r.byte()
		limits()
	case 2: // memory: limits
		limits()
	case 3: // global: value type, mutability
		r.byte()
		r.byte()
	default:
		r.fail("an unknown kind of import")
	}
}

func (r *reader) exports() []Export {
	var out []Export
	for range r.u32() {
		if r.err != nil {
			break
		}
		out = append(out, Export{Name: r.name(), Kind: r.byte(), Index: r.u32()})
	}
	return out
}
