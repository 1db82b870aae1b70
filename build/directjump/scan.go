package directjump

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// A function of the Go compiler (cmd/internal/obj/wasm of Go 1.26) looks like
// this, where the parts in brackets are there only when they are used:
//
//	global.get $SP  local.set 1
//	[block                     the exit for unwinding: calls branch to its end
//	  [loop                    the dispatch loop: jumps branch here
//	    block … block          one for each basic block
//	      local.get 0          PC_B, the only parameter; tests go in front of it
//	      br_table …           from PC_B to the end of a block
//	    end                    basic block 0 begins
//	    …
//	    end                    basic block 1 begins, and so on
//	    …
//	  end]
//	  unreachable
//	end
//	i32.const 1]
//	end
//
// A jump is "i32.const n, local.set 0, br $loop", alone or as all there is in
// an if without else.

// frame is an open block, loop or if.
type frame byte

const (
	frameBlock    frame = iota // also the function itself
	frameLoop                  // a loop in inline assembly
	frameIf                    // an if before its else
	frameEntry                 // the dispatch loop
	frameDispatch              // a block of the dispatch loop, with a basic block at its end
)

// edit is one jump that can be direct. Positions are offsets in the module.
type edit struct {
	iff   int    // the if that has only this jump in it, or -1
	start int    // i32.const
	br    span   // br; the end of the if is the byte behind it
	label uint32 // the target, counted from the br
}

func (e edit) conditional() bool { return e.iff >= 0 }

// test is a comparison of PC_B in front of the dispatch table, which leads where
// the table leads for that number.
type test struct {
	number int32
	label  uint32 // as in the table
}

// backwardMax is up to how many targets of backward jumps are tested for. With
// more of them the tests cost what they save.
const backwardMax = 2

// scanner reads one function after the other and finds its direct jumps.
type scanner struct {
	module *module
	body   span
	d      decoder
	locals uint64
	frames []frame
	past   [3]instr // the instructions before the current one, the latest first

	dispatch int      // where the br_table stands, or -1
	read     int      // where PC_B is read for it
	opening  []frame  // the frames that are open at the table
	loops    bool     // the dispatch loop is among them
	table    []uint32 // from PC_B to the position in frames; nil without dispatch
	backward []int32  // the numbers that jumps through the table have, at most one too many; not 0
	stored   bool     // PC_B was stored in this straight run of instructions
	keep     bool     // PC_B may be read later: it must be stored all the same
	jumps    int
	edits    []edit
	tests    []test
}

// scan reads function i (imported functions not counted). Afterwards table,
// jumps, edits, tests and keep say what was found.
func (s *scanner) scan(i int, body span) error {
	typ := s.module.types[s.module.funcs[i]]
	s.body = body
	s.start(s.module.imported+i, typ)
	if s.dispatch = -1; typ.convention {
		s.findDispatch()
		s.start(s.module.imported+i, typ)
	}
	for len(s.frames) > 0 {
		in := s.d.next()
		if s.d.err != nil {
			break
		}
		s.step(in)
		s.past = [3]instr{in, s.past[0], s.past[1]}
	}
	if s.d.err == nil && s.d.pos != body.end {
		s.d.fail(s.d.pos, "the body goes on after its end")
	}
	s.findTests()
	return s.d.err
}

// start sets the decoder to the first instruction of the body.
func (s *scanner) start(function int, typ funcType) {
	s.d.reader = reader{b: s.module.bytes[:s.body.end], pos: s.body.start, function: function}
	s.locals = uint64(typ.params) + s.d.locals()
	s.frames = append(s.frames[:0], frameBlock)
	s.past = [3]instr{}
	s.table, s.jumps, s.edits = nil, 0, s.edits[:0]
	s.backward, s.tests = s.backward[:0], s.tests[:0]
	s.stored, s.keep = false, false
}

// findDispatch reads the prologue. When it is the one of a function with a
// dispatch table, dispatch and opening say so.
func (s *scanner) findDispatch() {
	sp, copied := s.d.next(), s.d.next()
	if sp.op != opGlobalGet || sp.index != 0 || copied.op != opLocalSet || copied.index != 1 {
		return
	}
	s.opening = s.opening[:0]
	s.loops = false
	in := s.d.next()
	for ; in.block == blockVoid && (in.op == opBlock || in.op == opLoop); in = s.d.next() {
		switch {
		case in.op == opLoop && (s.loops || len(s.opening) > 1):
			return // inline assembly: at most the unwind block stands around the loop
		case in.op == opLoop:
			s.loops = true
			s.opening = append(s.opening, frameEntry)
		case s.loops:
			s.opening = append(s.opening, frameDispatch)
		default:
			s.opening = append(s.opening, frameBlock)
		}
	}
	table := s.d.next()
	end := s.d.next()
	if len(s.opening) > 0 && in.op == opLocalGet && in.index == 0 && table.op == opBrTable && end.op == opEnd && s.d.err == nil {
		s.dispatch, s.read = table.start, in.start
	}
}

// step takes one instruction into account.
func (s *scanner) step(in instr) {
	switch in.op {
	case opBlock, opLoop, opIf:
		s.stored = false
		s.frames = append(s.frames, s.opened(in))
	case opElse:
		s.stored = false
		top := &s.frames[len(s.frames)-1]
		if *top != frameIf {
			s.d.fail(in.start, "else without if")
		}
		*top = frameBlock
	case opEnd:
		s.stored = false
		s.frames = s.frames[:len(s.frames)-1]
	case opBr, opBrIf:
		s.branch(in)
		// What follows is not reached from here, and the write may go.
		s.stored = s.stored && in.op == opBrIf
	case opBrTable:
		s.branchTable(in)
	case opLocalGet, opLocalSet, opLocalTee:
		s.local(in)
	}
}

// opened is the frame that a block, loop or if opens. The frames at the start of
// a function with dispatch are known from findDispatch.
func (s *scanner) opened(in instr) frame {
	if i := len(s.frames) - 1; s.dispatch > in.start {
		return s.opening[i]
	}
	switch in.op {
	case opLoop:
		return frameLoop
	case opIf:
		return frameIf
	}
	return frameBlock
}

// local watches the accesses of PC_B. When a read is not preceded by a write in
// the same straight run, the value may come from a jump.
func (s *scanner) local(in instr) {
	if uint64(in.index) >= s.locals {
		s.d.fail(in.start, "local %d does not exist", in.index)
	}
	switch {
	case in.index != 0:
	case in.op != opLocalGet:
		s.stored = true
	case !s.stored && in.end != s.dispatch: // the dispatch's own read stands right before its table
		s.keep = true
	}
}

// target is the position in frames of a label, or -1.
func (s *scanner) target(in instr, label uint32) int {
	if uint64(label) >= uint64(len(s.frames)) {
		s.d.fail(in.start, "label %d does not exist", label)
		return -1
	}
	return len(s.frames) - 1 - int(label)
}

func (s *scanner) branch(in instr) {
	to := s.target(in, in.index)
	if to < 0 || s.frames[to] != frameEntry {
		return
	}
	if !s.stored {
		s.keep = true
	}
	set, number := s.past[0], s.past[1]
	if in.op != opBr || set.op != opLocalSet || set.index != 0 || number.op != opI32Const {
		return
	}
	s.jumps++
	to = int(s.entry(int32(number.value)))
	if to >= len(s.frames) || s.frames[to] != frameDispatch {
		s.backwardTo(int32(number.value)) // the target's block is closed
		return
	}
	e := edit{iff: -1, start: number.start, br: in.span, label: uint32(len(s.frames) - 1 - to)}
	if around := s.past[2]; around.op == opIf && around.block == blockVoid && in.end < s.body.end && s.d.b[in.end] == opEnd {
		e.iff = around.start
	}
	s.edits = append(s.edits, e)
}

// branchTable reads the dispatch table. No other table comes from Go.
func (s *scanner) branchTable(in instr) {
	if in.start != s.dispatch {
		s.d.fail(in.start, "a br_table that is not a dispatch of the Go compiler")
		return
	}
	s.stored = false
	s.table = s.d.labels
	for i, label := range s.table {
		to := s.target(in, label)
		if to < 0 {
			return
		}
		if s.loops && s.frames[to] != frameDispatch {
			s.d.fail(in.start, "entry %d of the dispatch table does not lead to a basic block", i)
			return
		}
		s.table[i] = uint32(to)
	}
}

// backwardTo notes the target of a jump that goes through the table.
func (s *scanner) backwardTo(number int32) {
	if number != 0 && len(s.backward) <= backwardMax && !slices.Contains(s.backward, number) {
		s.backward = append(s.backward, number)
	}
}

// findTests chooses the numbers that are tested in front of the table. The
// targets of loops come first, inner loops before the ones around them, which
// begin at lower numbers; each turn goes that way. Then comes the entry of the
// function, and what remains for the table is the rare resumption.
func (s *scanner) findTests() {
	if len(s.table) < 2 || s.d.err != nil {
		return
	}
	if len(s.backward) <= backwardMax {
		slices.SortFunc(s.backward, func(a, b int32) int { return cmp.Compare(b, a) })
		for _, number := range s.backward {
			s.tests = append(s.tests, test{number, s.tableLabel(number)})
		}
	}
	s.tests = append(s.tests, test{0, s.tableLabel(0)})
}

// tableLabel is the table's label for a number, counted from the table.
func (s *scanner) tableLabel(number int32) uint32 {
	return uint32(len(s.opening)) - s.entry(number)
}

// entry is the position in frames of the block that a number leads to, as
// br_table reads it: unsigned, and what is too large takes the last entry.
func (s *scanner) entry(number int32) uint32 {
	return s.table[min(uint64(uint32(number)), uint64(len(s.table)-1))]
}

// apply is the body with its jumps made direct, and with its tests.
func (s *scanner) apply() []byte {
	b := s.module.bytes
	if len(s.edits) == 0 && len(s.tests) == 0 {
		return b[s.body.start:s.body.end]
	}
	out := make([]byte, 0, s.body.end-s.body.start)
	pos := s.body.start
	if len(s.tests) > 0 {
		out = append(out, b[pos:s.read]...)
		for _, t := range s.tests {
			out = t.append(out)
		}
		pos = s.read
	}
	for _, e := range s.edits {
		op, label, old := byte(opBr), e.label, span{e.start, e.br.end}
		switch {
		case s.keep:
			old = e.br
		case e.conditional():
			op, label, old = opBrIf, e.label-1, span{e.iff, e.br.end + 1}
		}
		out = append(out, b[pos:old.start]...)
		out = append(out, op)
		out = binary.AppendUvarint(out, uint64(label))
		pos = old.end
	}
	return append(out, b[pos:s.body.end]...)
}

// append writes the test: read PC_B, compare, branch when it is the number.
func (t test) append(out []byte) []byte {
	out = append(out, opLocalGet, 0)
	if t.number == 0 {
		out = append(out, opI32Eqz)
	} else {
		out = appendSigned(append(out, opI32Const), t.number)
		out = append(out, opI32Eq)
	}
	return binary.AppendUvarint(append(out, opBrIf), uint64(t.label))
}

// appendSigned writes a number in signed LEB128, as short as it can be.
func appendSigned(out []byte, v int32) []byte {
	for ; v < -64 || v > 63; v >>= 7 {
		out = append(out, byte(v&0x7F)|0x80)
	}
	return append(out, byte(v&0x7F))
}
