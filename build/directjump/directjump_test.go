package directjump

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// around puts the blocks of the Go compiler around basic blocks: one block for
// each, closed in front of it, inside of the dispatch loop and the unwind block.
// The table leads from PC_B n to basic block n.
func around(blocks ...[]byte) []byte {
	var code [][]byte
	code = append(code, block, loop)
	for range blocks {
		code = append(code, block)
	}
	var table []uint64
	for i := range blocks {
		table = append(table, uint64(i))
	}
	code = append(code, get(0), brTable(table...))
	for _, b := range blocks {
		code = append(code, end, b)
	}
	return function(append(code, end, unreachable, end, constant(1))...)
}

// In the cases below there are four basic blocks. In basic block n, 3-n blocks
// of the dispatch are open, with the loop around them and the unwind block
// around that: the label of the loop is 3-n, and block m > n has label m-n-1.
func four(b0, b1, b2, b3 []byte) []byte { return around(b0, b1, b2, b3) }

var leave = asm(constant(0), ret)

var rewrites = []struct {
	name          string
	before, after []byte
	tests         []int32 // the numbers that are tested in front of the table, but for 0, which always is
	stats         Stats   // only the numbers of jumps
}{{
	name:   "a jump forward becomes a branch",
	before: four(jump(2, 3), jump(3, 2), jump(3, 1), leave),
	after:  four(br(1), br(1), br(0), leave),
	stats:  Stats{Jumps: 3, Direct: 3},
}, {
	name:   "a jump backward stays",
	before: four(nil, nil, jump(1, 1), jump(0, 0)),
	after:  four(nil, nil, jump(1, 1), jump(0, 0)),
	tests:  []int32{1},
	stats:  Stats{Jumps: 2},
}, {
	name:   "a jump to the own block stays",
	before: four(nil, jump(1, 2), nil, leave),
	after:  four(nil, jump(1, 2), nil, leave),
	tests:  []int32{1},
	stats:  Stats{Jumps: 1},
}, {
	name:   "a conditional jump becomes br_if",
	before: four(asm(coin, iff, jump(3, 4), end, jump(2, 3)), nil, nil, leave),
	after:  four(asm(coin, brIf(2), br(1)), nil, nil, leave),
	stats:  Stats{Jumps: 2, Direct: 2, Conditional: 1},
}, {
	name:   "a conditional jump backward stays",
	before: four(nil, nil, asm(coin, iff, jump(1, 2), end), leave),
	after:  four(nil, nil, asm(coin, iff, jump(1, 2), end), leave),
	tests:  []int32{1},
	stats:  Stats{Jumps: 1},
}, {
	name:   "an if with more in front of the jump keeps it inside",
	before: four(asm(coin, iff, trace(7), jump(1, 4), end), leave, nil, nil),
	after:  four(asm(coin, iff, trace(7), br(1), end), leave, nil, nil),
	stats:  Stats{Jumps: 1, Direct: 1},
}, {
	name:   "an if with more behind the jump keeps it inside",
	before: four(asm(coin, iff, jump(1, 4), trace(7), end), leave, nil, nil),
	after:  four(asm(coin, iff, br(1), trace(7), end), leave, nil, nil),
	stats:  Stats{Jumps: 1, Direct: 1},
}, {
	name:   "an if with else keeps its jumps inside",
	before: four(asm(coin, iff, jump(1, 4), els, jump(2, 4), end), leave, leave, nil),
	after:  four(asm(coin, iff, br(1), els, br(2), end), leave, leave, nil),
	stats:  Stats{Jumps: 2, Direct: 2},
}, {
	name:   "an if inside of an if",
	before: four(asm(coin, iff, coin, iff, jump(1, 5), end, end), leave, nil, nil),
	after:  four(asm(coin, iff, coin, brIf(1), end), leave, nil, nil),
	stats:  Stats{Jumps: 1, Direct: 1, Conditional: 1},
}, {
	name:   "a block that opens later at the place of a closed one is not a target",
	before: four(nil, nil, asm(block, jump(2, 2), end), leave),
	after:  four(nil, nil, asm(block, jump(2, 2), end), leave),
	tests:  []int32{2},
	stats:  Stats{Jumps: 1},
}, {
	name:   "a number past the table takes its last entry, also a negative one",
	before: four(jump(77, 3), jump(-1, 2), nil, leave),
	after:  four(br(2), br(1), nil, leave),
	stats:  Stats{Jumps: 2, Direct: 2},
}, {
	name:   "an indirect call's use of PC_B as a scratch place does not matter",
	before: four(asm(coin, set(0), constant(0), get(0), op(opCall, 1), drop, jump(2, 3)), nil, leave, nil),
	after:  four(asm(coin, set(0), constant(0), get(0), op(opCall, 1), drop, br(1)), nil, leave, nil),
	stats:  Stats{Jumps: 1, Direct: 1},
}, {
	name:   "where PC_B is read later, it is stored all the same",
	before: four(asm(coin, iff, jump(2, 4), end, jump(1, 3)), asm(jump(3, 2)), asm(get(0), op(opCall, 1)), leave),
	after:  four(asm(coin, iff, constant(2), set(0), br(2), end, constant(1), set(0), br(0)), asm(constant(3), set(0), br(1)), asm(get(0), op(opCall, 1)), leave),
	stats:  Stats{Jumps: 3, Direct: 3, Kept: 3},
}, {
	name:   "where the dispatch is entered without a new PC_B, it is stored all the same",
	before: four(jump(2, 3), nil, asm(coin, brIf(1)), leave),
	after:  four(asm(constant(2), set(0), br(1)), nil, asm(coin, brIf(1)), leave),
	stats:  Stats{Jumps: 1, Direct: 1, Kept: 1},
}, {
	name:   "a write of PC_B in one arm does not count behind the end",
	before: four(jump(1, 3), asm(coin, iff, constant(5), set(0), end, get(0), op(opCall, 1)), nil, leave),
	after:  four(asm(constant(1), set(0), br(0)), asm(coin, iff, constant(5), set(0), end, get(0), op(opCall, 1)), nil, leave),
	stats:  Stats{Jumps: 1, Direct: 1, Kept: 1},
}, {
	name:   "a computed number is not a jump of the compiler",
	before: four(asm(coin, set(0), br(3)), nil, nil, leave),
	after:  four(asm(coin, set(0), br(3)), nil, nil, leave),
}, {
	name:   "a tee is not a set",
	before: four(asm(constant(1), tee(0), drop, br(3)), nil, nil, leave),
	after:  four(asm(constant(1), tee(0), drop, br(3)), nil, nil, leave),
}, {
	name:   "another local is not PC_B",
	before: four(asm(constant(1), set(1), br(3)), nil, nil, leave),
	after:  four(asm(constant(1), set(1), br(3)), nil, nil, leave),
}, {
	name:   "a branch to another loop is not a jump",
	before: four(asm(loop, coin, iff, constant(1), set(0), br(1), end, end), nil, nil, leave),
	after:  four(asm(loop, coin, iff, constant(1), set(0), br(1), end, end), nil, nil, leave),
}, {
	name:   "a loop inside of a basic block",
	before: four(asm(loop, coin, iff, jump(2, 5), end, coin, brIf(0), end), nil, leave, nil),
	after:  four(asm(loop, coin, brIf(2), coin, brIf(0), end), nil, leave, nil),
	stats:  Stats{Jumps: 1, Direct: 1, Conditional: 1},
}, {
	name:   "without the unwind block",
	before: function(loop, block, block, get(0), brTable(0, 1), end, jump(1, 1), end, leave, end, unreachable),
	after:  function(loop, block, block, get(0), brTable(0, 1), end, br(0), end, leave, end, unreachable),
	stats:  Stats{Jumps: 1, Direct: 1},
}, {
	name:   "without jumps there is no loop",
	before: function(block, block, block, get(0), brTable(0, 1), end, coin, brIf(1), end, leave, end, constant(1)),
	after:  function(block, block, block, get(0), brTable(0, 1), end, coin, brIf(1), end, leave, end, constant(1)),
}, {
	name:   "several numbers lead to one block",
	before: function(loop, block, block, get(0), brTable(0, 0, 1, 1), end, jump(2, 1), end, leave, end, unreachable),
	after:  function(loop, block, block, get(0), brTable(0, 0, 1, 1), end, br(0), end, leave, end, unreachable),
	stats:  Stats{Jumps: 1, Direct: 1},
}, {
	name:   "inner loops are tested first",
	before: four(nil, nil, asm(jump(1, 1), jump(2, 1), jump(1, 1)), leave),
	after:  four(nil, nil, asm(jump(1, 1), jump(2, 1), jump(1, 1)), leave),
	tests:  []int32{2, 1},
	stats:  Stats{Jumps: 3},
}, {
	name:   "more than two targets of backward jumps go through the table",
	before: four(nil, nil, asm(jump(1, 1), jump(2, 1)), jump(3, 0)),
	after:  four(nil, nil, asm(jump(1, 1), jump(2, 1)), jump(3, 0)),
	stats:  Stats{Jumps: 3},
}, {
	name:   "a backward jump to the first block needs no other test than the entry",
	before: four(nil, jump(0, 2), nil, leave),
	after:  four(nil, jump(0, 2), nil, leave),
	stats:  Stats{Jumps: 1},
}, {
	name:   "a backward jump with a number past the table",
	before: four(nil, nil, nil, asm(jump(300, 0), jump(-1, 0))),
	after:  four(nil, nil, nil, asm(jump(300, 0), jump(-1, 0))),
	tests:  []int32{300, -1},
	stats:  Stats{Jumps: 2},
}, {
	name:   "numbers in a longer spelling than needed",
	before: four(asm([]byte{opI32Const, 0x82, 0x80, 0x00}, []byte{opLocalSet, 0x80, 0x00}, []byte{opBr, 0x83, 0x00}), nil, leave, nil),
	after:  four(br(1), nil, leave, nil),
	stats:  Stats{Jumps: 1, Direct: 1},
}}

func TestRewrites(t *testing.T) {
	for _, c := range rewrites {
		t.Run(c.name, func(t *testing.T) {
			after := tested(c.after, c.tests...)
			in, want := goModule(c.before), goModule(after)
			out, stats, err := Treat(in)
			if err != nil {
				t.Fatalf("%v\n%s", err, listing(c.before))
			}
			if !bytes.Equal(out, want) {
				m, err := parse(out)
				if err != nil {
					t.Fatal(err)
				}
				t.Errorf("got\n%s\nwant\n%s", listing(m.body(0)), listing(after))
			}
			c.stats.Tests = 1 + len(c.tests)
			c.stats.Functions, c.stats.Dispatching, c.stats.BytesIn, c.stats.BytesOut = 1, 1, len(in), len(out)
			if stats != c.stats {
				t.Errorf("counted %+v, want %+v", stats, c.stats)
			}
			if again, stats, err := Treat(out); err == nil {
				t.Errorf("a second time: % x, %+v", again, stats)
			}
			compiles(t, in)
			compiles(t, out)
		})
	}
}

// TestATableOfOneEntry has nothing to test, and treating it twice changes nothing.
func TestATableOfOneEntry(t *testing.T) {
	in := goModule(function(block, loop, block, get(0), brTable(0), end, coin, iff, jump(0, 1), end, leave, end, unreachable, end, constant(1)))
	out, stats, err := Treat(in)
	if err != nil || !bytes.Equal(out, in) || stats.Tests != 0 || stats.Jumps != 1 {
		t.Errorf("%v, %+v", err, stats)
	}
}

// TestFunctionsThatAreNotGos are copied as they are.
func TestFunctionsThatAreNotGos(t *testing.T) {
	good := four(jump(2, 3), nil, nil, leave)
	for name, code := range map[string][]byte{
		"a loop without table":      asm([]byte{0}, loop, coin, brIf(0), end, constant(0), end),
		"a wrapper for an import":   function(get(0), op(opCall, 1), constant(0)),
		"one without own locals":    asm([]byte{0}, get(0), end),
		"an if with a result":       asm([]byte{0}, coin, []byte{opIf, typeI32}, constant(1), els, constant(2), end, end),
		"all kinds of instructions": everyInstruction(),
	} {
		t.Run(name, func(t *testing.T) {
			in := goModule(good, code)
			out, stats, err := Treat(in)
			if err != nil {
				t.Fatal(err)
			}
			m, err := parse(out)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.body(1), code) || stats.Dispatching != 1 || stats.Direct != 1 {
				t.Errorf("%+v\n%s", stats, listing(m.body(1)))
			}
		})
	}
}

// everyInstruction has each instruction that the decoder knows, with immediates
// of more than one byte. It is not meant to be valid.
func everyInstruction() []byte {
	code := []byte{1, 2, typeI32}
	code = append(code, []byte{0x01, 0x1A, 0x1B, 0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7F}...)
	code = append(code, op(opGlobalGet, 300)...)
	code = append(code, op(0x24, 300)...)
	for o := byte(0x28); o <= 0x3E; o++ {
		code = append(code, op(o, 3, 1<<31)...)
	}
	code = append(code, 0x3F, 0, 0x40, 0, opI32Const, 0x80, 0x80, 0x80, 0x80, 0x78)
	code = append(code, 0x43, 0x0B, 0x0B, 0x0B, 0x0B, 0x44, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B)
	for o := byte(0x45); o <= 0xC4; o++ {
		code = append(code, o)
	}
	for sub := uint64(0); sub < 8; sub++ {
		code = append(code, op(opPrefix, sub)...)
	}
	for _, bulk := range [][]uint64{{8, 300, 0}, {9, 300}, {10, 0, 0}, {11, 0}, {12, 300, 0}, {13, 300}, {14, 0, 0}} {
		code = append(code, op(opPrefix, bulk...)...)
	}
	code = append(code, op(opCall, 300)...)
	code = append(code, op(opCallIndirect, 300, 0)...)
	return asm(code, unreachable, ret, end)
}

func TestRefusals(t *testing.T) {
	good := four(jump(2, 3), nil, nil, leave)
	body := func(code []byte) []byte { return goModule(good, code) }
	change := func(f func(*parts)) []byte {
		p := goParts(good)
		f(&p)
		return p.module()
	}
	for _, c := range []struct {
		name   string
		module []byte
		want   string
	}{
		{"nothing", nil, "offset 0x0: not a WebAssembly module of version 1"},
		{"another version", []byte("\x00asm\x02\x00\x00\x00"), "offset 0x0: not a WebAssembly module"},
		{"no functions", header, "no function has a dispatch table"},
		{"not from Go", goModule(function(constant(1))), "no function has a dispatch table"},
		{"an unknown instruction", body(asm([]byte{0}, []byte{0x06}, end)), "function 3, offset 0x82: unknown instruction 0x06"},
		{"a vector instruction", body(asm([]byte{0}, []byte{0xFD, 0x0C}, end)), "function 3, offset 0x82: unknown instruction 0xfd"},
		{"a tail call", body(asm([]byte{0}, op(0x12, 0), end)), "unknown instruction 0x12"},
		{"a table instruction", body(asm([]byte{0}, op(opPrefix, 15, 0), end)), "unknown instruction 0xfc 15"},
		{"a second table", body(asm([]byte{0}, op(opCallIndirect, 0, 1), end)), "more than one table or memory"},
		{"a second memory", body(asm([]byte{0}, op(opPrefix, 10, 0, 1), end)), "more than one table or memory"},
		{"a block with a type of the module", body(asm([]byte{0}, []byte{opBlock, 0}, end, end)), "unknown block type 0x00"},
		{"no end", body(asm([]byte{0}, block, end)), "function 3, offset 0x85: ends too early"},
		{"one end too many", body(asm([]byte{0}, end, end)), "the body goes on after its end"},
		{"an else without if", body(asm([]byte{0}, block, els, end, end)), "else without if"},
		{"a second else", body(asm([]byte{0}, coin, iff, els, els, end, end)), "else without if"},
		{"a label too far", body(asm([]byte{0}, br(1), end)), "label 1 does not exist"},
		{"a local too far", body(asm([]byte{1, 2, typeI32}, get(3), end)), "local 3 does not exist"},
		{"too many locals", body(asm([]byte{2}, op(0xFF, 0), []byte{typeI32, 0xFF, 0xFF, 0x03, typeI32}, end)), "more than 50000 locals"},
		{"a local of unknown type", body(asm([]byte{1, 1, 0x70}, end)), "a local of unknown type 0x70"},
		{"a table without the prologue", body(asm([]byte{0}, block, get(0), brTable(0), end, constant(0), end)), "function 3, offset 0x86: a br_table that is not a dispatch"},
		{"a second table in a function", body(function(block, get(0), brTable(0), end, block, coin, brTable(0, 0), end, constant(0))), "a br_table that is not a dispatch"},
		{"a table on another local", body(function(loop, block, get(1), brTable(0), end, end, constant(0))), "a br_table that is not a dispatch"},
		{"a table whose block goes on", body(function(loop, block, get(0), brTable(0), coin, drop, end, end, constant(0))), "a br_table that is not a dispatch"},
		{"a table in two loops", body(function(loop, loop, block, get(0), brTable(0), end, end, end, constant(0))), "a br_table that is not a dispatch"},
		{"a table too deep", body(function(block, block, loop, block, get(0), brTable(0), end, end, end, end, constant(0))), "a br_table that is not a dispatch"},
		{"a table that leads to the loop", body(function(loop, block, get(0), brTable(0, 1), end, end, constant(0))), "entry 1 of the dispatch table does not lead to a basic block"},
		{"a table that leads out", body(function(block, loop, block, get(0), brTable(2), end, end, end, constant(0))), "entry 0 of the dispatch table does not lead"},
		{"a table that leads nowhere", body(function(loop, block, get(0), brTable(9), end, end, constant(0))), "label 9 does not exist"},
		{"a treated function", body(tested(good)), "a br_table that is not a dispatch"},
		{"a number of 33 bits", body(asm([]byte{0}, []byte{opBr, 0x80, 0x80, 0x80, 0x80, 0x10}, end)), "a number is longer than 32 bits"},
		{"a constant of 33 bits", body(asm([]byte{0}, []byte{opI32Const, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F}, end)), "a number is longer than 32 bits"},
		{"a constant of 65 bits", body(asm([]byte{0, 0x42}, bytes.Repeat([]byte{0x80}, 9), []byte{0x02}, end)), "a number is longer than 64 bits"},
		{"a body that is too long", change(func(p *parts) { p.code = section(sectionCode, vector(op(100, 0))) }), "100 bytes announced, 1 are there"},
		{"a section that is too long", change(func(p *parts) { p.rest = []byte{0, 9, 1} }), "9 bytes announced, 1 are there"},
		{"bytes behind the code", change(func(p *parts) { p.code = section(sectionCode, vector(sized(good)), []byte{0}) }), "section 10 goes on after its last entry"},
		{"bodies missing", change(func(p *parts) { p.code = nil }), "1 functions are declared, 0 have a body"},
		{"a body missing", change(func(p *parts) { p.code = section(sectionCode, vector()) }), "1 functions are declared, 0 have a body"},
		{"declarations missing", change(func(p *parts) { p.funcs = nil }), "0 functions are declared, 1 have a body"},
		{"a type missing", change(func(p *parts) { p.funcs = section(sectionFunction, vector([]byte{3})) }), "type 3 does not exist"},
		{"a type that is not a function's", change(func(p *parts) { p.types = section(sectionType, vector([]byte{0x5F, 0})) }), "a type that is not a function's"},
		{"an import of unknown kind", change(func(p *parts) { p.imports = section(sectionImport, vector([]byte{0, 0, 4, 0, 0})) }), "an import of unknown kind 4"},
		{"a shared memory", change(func(p *parts) { p.imports = section(sectionImport, vector([]byte{0, 0, 2, 3, 1, 1})) }), "unknown limits 0x03"},
		{"an unknown section", change(func(p *parts) { p.rest = section(13, vector()) }), "section 13 is unknown"},
		{"a section twice", change(func(p *parts) { p.rest = p.code }), "section 10 stands twice or in the wrong place"},
		{"a section in the wrong place", change(func(p *parts) { p.rest = section(sectionDataCount, []byte{0}) }), "section 12 stands twice or in the wrong place"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, stats, err := Treat(c.module)
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if out != nil || stats != (Stats{}) {
				t.Errorf("there is output: % x, %+v", out, stats)
			}
		})
	}
}

// TestOtherSectionsStay: what is not code is copied byte for byte, sizes in a
// longer spelling and custom sections included.
func TestOtherSectionsStay(t *testing.T) {
	custom := func(name string) []byte { return section(sectionCustom, sized([]byte(name)), []byte("content")) }
	p := goParts(four(jump(2, 3), nil, nil, leave))
	p.types = append([]byte{sectionType, p.types[1] | 0x80, 0x80, 0x80, 0x80, 0}, p.types[2:]...)
	p.imports = append(custom("a"), p.imports...)
	p.code = asm(custom("b"), section(sectionDataCount, []byte{0}), p.code, section(sectionData, []byte{0}), custom("c"))
	in := p.module()
	out, _, err := Treat(in)
	if err != nil {
		t.Fatal(err)
	}
	p.code = asm(custom("b"), section(sectionDataCount, []byte{0}),
		section(sectionCode, vector(sized(tested(four(br(1), nil, nil, leave))))), section(sectionData, []byte{0}), custom("c"))
	if !bytes.Equal(out, p.module()) {
		t.Errorf("got  % x\nwant % x", out, p.module())
	}
	compiles(t, out)
}

// TestManyBlocks has more blocks than one byte of LEB128 can count, so that all
// sizes grow past one byte, and it is quick: the work is linear.
func TestManyBlocks(t *testing.T) {
	const blocks = 20_000
	var before, after [][]byte
	for i := range uint64(blocks - 1) {
		last := uint64(blocks - 1)
		before = append(before, asm(coin, iff, jump(int32(last), last-i+1), end))
		after = append(after, asm(coin, brIf(last-i-1)))
	}
	before, after = append(before, leave), append(after, leave)
	out, stats, err := Treat(goModule(around(before...)))
	if err != nil {
		t.Fatal(err)
	}
	if stats.Direct != blocks-1 || stats.Conditional != blocks-1 || !bytes.Equal(out, goModule(tested(around(after...)))) {
		t.Errorf("%+v", stats)
	}
}

// TestTheModuleDoesNotChange: Treat works on a copy.
func TestTheModuleDoesNotChange(t *testing.T) {
	in := goModule(four(jump(2, 3), nil, nil, leave))
	before := bytes.Clone(in)
	out, _, err := Treat(in)
	if err != nil {
		t.Fatal(err)
	}
	clear(out)
	if !bytes.Equal(in, before) {
		t.Error("the input has changed")
	}
}

func TestStatsSayWhatWasDone(t *testing.T) {
	s := Stats{Functions: 9, Dispatching: 8, Jumps: 200, Direct: 175, Conditional: 100, Kept: 2, Tests: 7, BytesIn: 1000, BytesOut: 900}
	want := "175 of 200 jumps direct (87.5 %), 100 of them conditional, 2 with PC_B kept; 8 of 9 functions dispatch, with 7 tests; 1000 bytes became 900"
	if s.String() != want {
		t.Errorf("got %q", s)
	}
}

// TestTheErrorSaysWhere: index and offset are what other tools show.
func TestTheErrorSaysWhere(t *testing.T) {
	module := goModule(four(jump(2, 3), nil, nil, leave), asm([]byte{0}, trace(1), []byte{0x06}, end))
	_, _, err := Treat(module)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e.Function != 3 || e.Offset != len(module)-2 || module[e.Offset] != 0x06 {
		t.Errorf("%+v", e)
	}
}
