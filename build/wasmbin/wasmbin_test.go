package wasmbin

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

func section(id byte, body ...byte) []byte {
	return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
}

func name(s string) []byte { return append([]byte{byte(len(s))}, s...) }

// small is a module with one import of each kind, two exports and two custom
// sections.
func small() []byte {
	return slices.Concat(header,
		section(0, append(name("first"), 1, 2, 3)...),
		section(1, 1, 0x60, 0, 0),
		section(2, slices.Concat([]byte{4},
			name("m"), name("f"), []byte{0, 0},
			name("m"), name("t"), []byte{1, 0x70, 1, 1, 0x80, 1},
			name("m"), name("mem"), []byte{2, 0, 1},
			name("n"), name("g"), []byte{3, 0x7f, 0})...),
		section(7, slices.Concat([]byte{2}, name("run"), []byte{0, 0}, name("stub"), []byte{0, 1})...),
		section(0, name("name")...),
	)
}

func TestImportsAndExports(t *testing.T) {
	imports, err := Imports(small())
	if err != nil {
		t.Fatal(err)
	}
	if want := []Import{{"m", "f", 0}, {"m", "t", 1}, {"m", "mem", 2}, {"n", "g", 3}}; !slices.Equal(imports, want) {
		t.Errorf("%v", imports)
	}
	exports, err := Exports(small())
	if err != nil {
		t.Fatal(err)
	}
	if want := []Export{{"run", 0, 0}, {"stub", 0, 1}}; !slices.Equal(exports, want) {
		t.Errorf("%v", exports)
	}
	if imports, err := Imports(header); err != nil || imports != nil {
		t.Errorf("an empty module imports %v, %v", imports, err)
	}
}

func TestStrip(t *testing.T) {
	out, err := Strip(small(), map[string]bool{"stub": true})
	if err != nil {
		t.Fatal(err)
	}
	exports, err := Exports(out)
	if err != nil || !slices.Equal(exports, []Export{{"run", 0, 0}}) {
		t.Errorf("%v, %v", exports, err)
	}
	before, _ := Imports(small())
	after, err := Imports(out)
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("%v, %v", after, err)
	}
	if bytes.Contains(out, []byte("name")) || bytes.Contains(out, []byte("first")) {
		t.Error("custom sections are left")
	}
	if _, err := Strip(small(), map[string]bool{"absent": true}); err == nil {
		t.Error("an export that is not there was stripped")
	}
}

func TestMalformedModules(t *testing.T) {
	good := small()
	for _, bad := range [][]byte{nil, []byte("\x00asm\x02\x00\x00\x00"), append(slices.Clone(header), 99, 0), append(slices.Clone(header), 1, 0xff)} {
		if _, err := Sections(bad); err == nil {
			t.Errorf("%q is taken for a module", bad)
		}
	}
	for i := range good {
		// Cut anywhere, or with any byte changed, it is an error or another module, and never a panic.
		for _, b := range [][]byte{good[:i], slices.Concat(good[:i], []byte{0xff}, good[i+1:])} {
			_, _ = Imports(b)
			_, _ = Exports(b)
			_, _ = Strip(b, map[string]bool{"stub": true})
		}
	}
	if _, err := Imports(slices.Concat(header, section(2, 0xff, 0xff, 0xff, 0xff, 0x0f))); err == nil {
		t.Error("four thousand million imports in no bytes")
	}
	if _, err := Imports(slices.Concat(header, section(2, slices.Concat([]byte{1}, name("m"), name("f"), []byte{9})...))); err == nil {
		t.Error("an unknown kind of import")
	}
}
