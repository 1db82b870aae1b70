package directjump

import "bytes"

// verify compares a treated module with the one that came in, and shares nothing
// with the scanner but the decoder: it walks both bodies of each function side by
// side, gives each block the same number in both, and accepts a difference only
// where a jump through the table became a branch to the very block whose number
// the table has, or where PC_B is compared in front of the table and the branch
// leads to the very block that the table has for that number.
func verify(m *module, out []byte) error {
	t, err := parse(out)
	if err != nil {
		return err
	}
	if !bytes.Equal(m.bytes[:m.code.start], out[:t.code.start]) || !bytes.Equal(m.bytes[m.code.end:], out[t.code.end:]) {
		return &Error{Function: -1, Offset: t.code.start, Reason: "a section other than the code section has changed"}
	}
	var v verifier
	for i := range m.bodies {
		if bytes.Equal(m.body(i), t.body(i)) {
			continue
		}
		v.before.open(m, i)
		v.after.open(t, i)
		if err := v.compare(); err != nil {
			return err
		}
	}
	return nil
}

func (m *module) body(i int) []byte { return m.bytes[m.bodies[i].start:m.bodies[i].end] }

// walk is a decoder that numbers blocks in the order in which they open.
type walk struct {
	decoder
	declared []byte // the declarations of locals
	ids      []int  // the open blocks
	opened   int
	past     [2]instr
	// table has the number of the block for each PC_B, loop that of the dispatch
	// loop, or -1 without one. prologue says how much of "loop block … block
	// local.get 0 br_table" was read right before.
	table    []int
	loop     int
	prologue stage
	// fresh tells that local 0 was written since the last label, lost that it was
	// read, by itself or by the dispatch loop, when it was not fresh.
	fresh, lost bool
}

type stage int

const (
	outside stage = iota
	blocks
	reads
)

func (w *walk) open(m *module, i int) {
	body := m.bodies[i]
	w.reader = reader{b: m.bytes[:body.end], pos: body.start, function: m.imported + i}
	w.locals()
	w.declared = m.bytes[body.start:w.pos]
	w.ids = append(w.ids[:0], 0)
	w.opened, w.past = 0, [2]instr{}
	w.table, w.loop, w.prologue = w.table[:0], -1, outside
	w.fresh, w.lost = false, false
}

func (w *walk) text(in instr) []byte { return w.b[in.start:in.end] }

// id is the number of the block that a label means, or -2.
func (w *walk) id(label uint32) int {
	if uint64(label) >= uint64(len(w.ids)) {
		return -2
	}
	return w.ids[len(w.ids)-1-int(label)]
}

// follow takes an instruction into account that is not a part of a change.
func (w *walk) follow(in instr) {
	before := w.prologue
	if w.prologue = outside; len(w.table) == 0 {
		w.readPrologue(in, before)
	}
	switch in.op {
	case opBlock, opLoop, opIf:
		w.opened++
		w.ids = append(w.ids, w.opened)
		w.fresh = false
	case opElse:
		w.fresh = false
	case opEnd:
		w.ids = w.ids[:len(w.ids)-1]
		w.fresh = false
	case opBr, opBrIf:
		w.lost = w.lost || w.id(in.index) == w.loop && !w.fresh
		w.fresh = w.fresh && in.op == opBrIf
	case opLocalGet:
		w.lost = w.lost || in.index == 0 && w.prologue != reads && !w.fresh
	case opLocalSet, opLocalTee:
		w.fresh = w.fresh || in.index == 0
	}
	w.past = [2]instr{in, w.past[0]}
}

// readPrologue looks for the dispatch table, which is in front of all jumps.
func (w *walk) readPrologue(in instr, before stage) {
	switch {
	case in.op == opLoop && in.block == blockVoid:
		w.prologue, w.loop = blocks, w.opened+1
	case in.op == opBlock && in.block == blockVoid:
		if before != blocks {
			w.loop = -1 // a table behind these blocks does not belong to a loop further up
		}
		w.prologue = blocks
	case in.op == opLocalGet && in.index == 0 && before == blocks:
		w.prologue = reads
	case in.op == opBrTable && before == reads:
		for _, label := range w.labels {
			w.table = append(w.table, w.id(label))
		}
	default:
		w.lost = w.lost || before == reads // the read was not the table's
	}
}

// verifier compares two bodies.
type verifier struct {
	before, after walk
	dropped       bool // an instruction that wrote PC_B is not there any more
}

func (v *verifier) compare() error {
	a, b := &v.before, &v.after
	v.dropped = false
	if !bytes.Equal(a.declared, b.declared) {
		b.fail(b.pos, "other locals")
	}
	for len(a.ids) > 0 && a.err == nil && b.err == nil {
		x, y := a.next(), b.next()
		if bytes.Equal(a.text(x), b.text(y)) {
			a.follow(x)
			b.follow(y)
			continue
		}
		v.change(x, y)
	}
	switch {
	case a.err != nil:
		return a.err
	case b.err != nil:
		return b.err
	case len(b.ids) > 0 || b.pos != len(b.b):
		b.fail(b.pos, "the body goes on after its end")
	case v.dropped && b.lost:
		b.fail(b.pos, "PC_B may be read where it is not stored any more")
	}
	return b.err
}

// change checks one difference: x came in and y went out.
func (v *verifier) change(x, y instr) {
	a, b := &v.before, &v.after
	number, conditional := x, false
	switch {
	case x.op == opI32Const && y.op == opBr:
	case x.op == opIf && x.block == blockVoid && y.op == opBrIf:
		conditional = true
		a.ids = append(a.ids, -1)
		number = a.next()
	case x.op == opBrTable && a.prologue == reads:
		v.tests(x, y)
		return
	case x.op == opBr && y.op == opBr:
		v.target(a.past[1], a.past[0], x, y)
		return
	default:
		b.fail(y.start, "instruction 0x%02x became 0x%02x", x.op, y.op)
		return
	}
	v.dropped = true
	set := a.next()
	v.target(number, set, a.next(), y)
	if conditional {
		if end := a.next(); end.op != opEnd {
			b.fail(y.start, "the if around the jump had more in it")
		}
		a.ids = a.ids[:len(a.ids)-1]
	}
}

// target checks that y branches to the block to which the jump led.
func (v *verifier) target(number, set, br, y instr) {
	a, b := &v.before, &v.after
	jump := number.op == opI32Const && set.op == opLocalSet && set.index == 0 &&
		br.op == opBr && a.loop > 0 && a.id(br.index) == a.loop
	if !jump || len(a.table) == 0 {
		b.fail(y.start, "what was replaced was not a jump")
		return
	}
	v.leads(number.value, y)
}

// tests checks what stands between the first read of PC_B and the table: a
// comparison and a branch, and the next read. Each of them can be left out, since
// the table would lead to the same block; nothing in them can change anything.
func (v *verifier) tests(table, y instr) {
	a, b := &v.before, &v.after
	a.follow(table)
	for b.err == nil && y.op != opBrTable {
		number, compares := int64(0), y.op == opI32Eqz
		if y.op == opI32Const {
			number, compares = y.value, b.next().op == opI32Eq
		}
		if branch := b.next(); compares && branch.op == opBrIf {
			v.leads(number, branch)
		} else {
			b.fail(y.start, "what stands in front of the table is not a test")
		}
		if read := b.next(); read.op != opLocalGet || read.index != 0 {
			b.fail(read.start, "PC_B is not read after a test")
		}
		y = b.next()
	}
	if !bytes.Equal(a.text(table), b.text(y)) {
		b.fail(y.start, "another table")
	}
	b.follow(y)
}

// leads checks that a branch goes where the table leads for a number.
func (v *verifier) leads(number int64, branch instr) {
	entry := min(uint64(uint32(number)), uint64(len(v.before.table)-1))
	if v.before.table[entry] != v.after.id(branch.index) {
		v.after.fail(branch.start, "the branch does not lead to the block of PC_B %d", number)
	}
}
