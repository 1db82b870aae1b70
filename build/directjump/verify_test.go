package directjump

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestWrongOutputIsFound: verify is the last guard, so it must find what a fault
// in the scanner could do.
func TestWrongOutputIsFound(t *testing.T) {
	plain := four(asm(coin, iff, jump(3, 4), end, jump(2, 3)), leave, nil, leave)
	reading := four(jump(2, 3), leave, asm(get(0), op(opCall, 1)), leave)
	// inFront is plain with tests in front of its table; elsewhere has code between
	// its loop and its table.
	inFront := func(tests []byte) []byte {
		read := asm(get(0), brTable(0, 1, 2, 3))
		return bytes.Replace(plain, read, asm(tests, read), 1)
	}
	elsewhere := function(loop, trace(1), block, block, get(0), brTable(0, 1), end, jump(1, 1), end, leave, end, unreachable)
	for _, c := range []struct {
		name          string
		before, after []byte
		want          string
	}{
		{"the wrong block", plain, four(asm(coin, iff, jump(3, 4), end, br(0)), leave, nil, leave), "the branch does not lead to the block of PC_B 2"},
		{"the dispatch loop", plain, four(asm(coin, iff, jump(3, 4), end, br(3)), leave, nil, leave), "the branch does not lead"},
		{"no block", plain, four(asm(coin, iff, jump(3, 4), end, br(77)), leave, nil, leave), "the branch does not lead"},
		{"the wrong block, conditional", plain, four(asm(coin, brIf(1), jump(2, 3)), leave, nil, leave), "the branch does not lead to the block of PC_B 3"},
		{"the wrong block, PC_B stored", reading, four(asm(constant(2), set(0), br(2)), leave, asm(get(0), op(opCall, 1)), leave), "the branch does not lead to the block of PC_B 2"},
		{"another PC_B", reading, four(asm(constant(1), set(0), br(1)), leave, asm(get(0), op(opCall, 1)), leave), "instruction 0x41 became 0x41"},
		{"PC_B lost", reading, four(br(1), leave, asm(get(0), op(opCall, 1)), leave), "PC_B may be read where it is not stored any more"},
		{"a constant that was no jump", four(asm(constant(2), drop), nil, nil, leave), four(asm(br(0), drop), nil, nil, leave), "what was replaced was not a jump"},
		{"an if that was no jump", four(asm(coin, iff, trace(2), end), nil, nil, leave), four(asm(coin, brIf(0)), nil, nil, leave), "what was replaced was not a jump"},
		{"an if with more in it", four(asm(coin, iff, jump(2, 4), trace(2), end), nil, nil, leave), four(asm(coin, brIf(1), end), nil, nil, leave), "the if around the jump had more in it"},
		{"an instruction left out", plain, four(asm(coin, iff, jump(3, 4), end), leave, nil, leave), "instruction 0x41 became 0x0b"},
		{"an instruction more", plain, four(asm(coin, iff, jump(3, 4), end, jump(2, 3), coin), leave, nil, leave), "instruction 0x0b became 0x10"},
		{"bytes behind the end", plain, append(bytes.Clone(plain), 0x01), "the body goes on after its end"},
		{"other locals", plain, append([]byte{2, 2}, plain[2:]...), "other locals"},
		{"a test that leads elsewhere", plain, inFront(testFor(2, 1)), "the branch does not lead to the block of PC_B 2"},
		{"a test that leads nowhere", plain, inFront(testFor(2, 99)), "the branch does not lead to the block of PC_B 2"},
		{"a test for the entry that leads elsewhere", plain, inFront(entryTest(1)), "the branch does not lead to the block of PC_B 0"},
		{"a test the other way around", plain, inFront(asm(get(0), brIf(0))), "what stands in front of the table is not a test"},
		{"a test for another relation", plain, inFront(asm(get(0), constant(2), []byte{opI32Eq + 1}, brIf(2))), "what stands in front of the table is not a test"},
		{"a test of another local", plain, inFront(asm(get(0), []byte{opI32Eqz}, brIf(0), get(1), []byte{opI32Eqz}, brIf(0))), "PC_B is not read after a test"},
		{"a test that changes PC_B", plain, inFront(asm(get(0), constant(2), tee(0), []byte{opI32Eq}, brIf(2))), "what stands in front of the table is not a test"},
		{"a test of a constant", plain, inFront(asm(get(0), constant(2), []byte{opI32Eqz}, brIf(2))), "what stands in front of the table is not a test"},
		{"a test that is a call", plain, inFront(asm(get(0), op(opCall, 1))), "what stands in front of the table is not a test"},
		{"another table behind a test", plain, bytes.Replace(inFront(entryTest(0)), brTable(0, 1, 2, 3), brTable(0, 1, 3, 3), 1), "another table"},
		{"no table behind a test", plain, bytes.Replace(inFront(entryTest(0)), asm(get(0), brTable(0, 1, 2, 3)), get(0), 1), "what stands in front of the table is not a test"},
		{"a jump to a loop around other code", elsewhere, bytes.Replace(elsewhere, jump(1, 1), br(0), 1), "what was replaced was not a jump"},
		{"broken code", plain, append(bytes.Clone(plain[:len(plain)-1]), 0x06), "unknown instruction 0x06"},
		{"code cut off", plain, plain[:len(plain)-1], "ends too early"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := parse(goModule(c.before))
			if err != nil {
				t.Fatal(err)
			}
			if err := verify(m, goModule(c.after)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestChangedSectionsAreFound(t *testing.T) {
	p := goParts(four(jump(2, 3), nil, nil, leave))
	m, err := parse(p.module())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*parts){
		"in front of the code":  func(p *parts) { p.exports = section(7, vector()) },
		"behind the code":       func(p *parts) { p.rest = section(sectionCustom, sized([]byte("x"))) },
		"a function more":       func(p *parts) { *p = goParts(four(nil, nil, nil, leave), leave) },
		"a module that is none": func(p *parts) { p.types = section(sectionType, []byte{9}) },
	} {
		changed := p
		change(&changed)
		if err := verify(m, changed.module()); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// TestEveryWrongLabelIsFound turns each label of each branch and test that Treat made into
// every other, in generated functions.
func TestEveryWrongLabelIsFound(t *testing.T) {
	found := 0
	for seed := range uint64(200) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
		m, err := parse(goModule(g.function()))
		if err != nil {
			t.Fatal(err)
		}
		s := scanner{module: m}
		if err := s.scan(0, m.bodies[0]); err != nil {
			t.Fatal(err)
		}
		for i, e := range s.edits {
			for label := range uint32(g.blocks + 6) {
				unchanged := s.keep && label == uint32(m.bytes[e.br.start+1]) // through the table, as before
				if label == e.label || unchanged || !s.keep && e.conditional() && label == 0 {
					continue
				}
				s.edits[i].label = label
				if verify(m, m.write([][]byte{s.apply()})) == nil {
					t.Errorf("seed %d, jump %d: label %d passes for %d\n%s", seed, i, label, e.label, listing(m.body(0)))
				}
				found++
			}
			s.edits[i].label = e.label
		}
		for i, test := range s.tests {
			for label := range uint32(g.blocks + 6) {
				if s.tests[i].label = label; label == test.label {
					continue
				}
				if verify(m, m.write([][]byte{s.apply()})) == nil {
					t.Errorf("seed %d, test %d: label %d passes for %d\n%s", seed, i, label, test.label, listing(m.body(0)))
				}
				found++
			}
			s.tests[i].label = test.label
		}
		if s.keep && len(s.edits) > 0 {
			s.keep = false
			if verify(m, m.write([][]byte{s.apply()})) == nil {
				t.Errorf("seed %d: PC_B was dropped unseen\n%s", seed, listing(m.body(0)))
			}
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d faults tried", found)
	}
}
