package directjump

// Opcodes that the pass looks at. The others only have to be passed over.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0B
	opBr           = 0x0C
	opBrIf         = 0x0D
	opBrTable      = 0x0E
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opI32Const     = 0x41
	opI32Eqz       = 0x45
	opI32Eq        = 0x46
	opPrefix       = 0xFC
)

// blockVoid is the type of a block that takes and leaves nothing.
const blockVoid = 0x40

// instr is one instruction. What index and value mean depends on the opcode.
type instr struct {
	span
	op    byte
	sub   uint32 // the second opcode after opPrefix
	index uint32 // label, local, global, function or type
	value int64  // constant
	block byte   // block type: blockVoid or a value type
}

// decoder reads the instructions of one body. It knows WebAssembly 1.0 with sign
// extension, saturating conversion and bulk memory, which is more than Go emits.
type decoder struct {
	reader
	// labels has the labels of the br_table that was read last, the default one
	// at the end. The memory is used again.
	labels []uint32
}

// locals passes over the declarations at the start of a body and returns how many
// locals they declare.
func (d *decoder) locals() uint64 {
	var total uint64
	for range d.u32() {
		start := d.pos
		total += uint64(d.u32())
		if t := d.byte(); t < typeF64 || t > typeI32 {
			d.fail(start, "a local of unknown type 0x%02x", t)
		}
		if total > localsMax {
			d.fail(start, "more than %d locals", localsMax)
		}
		if d.err != nil {
			return 0
		}
	}
	return total
}

// localsMax is the bound of the JavaScript embedding, which engines share.
const localsMax = 50_000

// next reads one instruction; after a fault its opcode is opUnreachable.
func (d *decoder) next() instr {
	in := instr{span: span{start: d.pos}}
	in.op = d.byte()
	switch op := in.op; {
	case op == opBlock, op == opLoop, op == opIf:
		in.block = d.blockType()
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= 0x24:
		in.index = d.u32()
	case op == opBrTable:
		d.readLabels()
	case op == opCallIndirect:
		in.index = d.u32()
		d.zero()
	case op >= 0x28 && op <= 0x3E: // loads and stores: alignment and offset
		d.u32()
		d.u32()
	case op == 0x3F, op == 0x40: // memory.size, memory.grow
		d.zero()
	case op == opI32Const:
		in.value = d.signed(32)
	case op == 0x42: // i64.const
		in.value = d.signed(64)
	case op == 0x43: // f32.const
		d.skip(4)
	case op == 0x44: // f64.const
		d.skip(8)
	case op == opPrefix:
		in.sub = d.prefixed(in.start)
	case op <= 0x01, op == opElse, op == opEnd, op == 0x0F, op == 0x1A, op == 0x1B, op >= 0x45 && op <= 0xC4:
	default:
		d.fail(in.start, "unknown instruction 0x%02x", op)
	}
	if d.err != nil {
		in.op = opUnreachable
	}
	in.end = d.pos
	return in
}

func (d *decoder) blockType() byte {
	start := d.pos
	t := d.byte()
	if t != blockVoid && (t < typeF64 || t > typeI32) {
		d.fail(start, "unknown block type 0x%02x", t)
	}
	return t
}

func (d *decoder) readLabels() {
	count := d.u32()
	d.labels = d.labels[:0]
	for range count {
		if d.err != nil {
			return
		}
		d.labels = append(d.labels, d.u32())
	}
	d.labels = append(d.labels, d.u32())
}

// zero reads the index of the only table or memory.
func (d *decoder) zero() {
	if start := d.pos; d.byte() != 0 {
		d.fail(start, "more than one table or memory")
	}
}

// prefixed reads what follows opPrefix.
func (d *decoder) prefixed(start int) uint32 {
	sub := d.u32()
	switch {
	case sub <= 7: // saturating conversions
	case sub == 8, sub == 12: // memory.init, table.init
		d.u32()
		d.zero()
	case sub == 9, sub == 13: // data.drop, elem.drop
		d.u32()
	case sub == 10, sub == 14: // memory.copy, table.copy
		d.zero()
		d.zero()
	case sub == 11: // memory.fill
		d.zero()
	default:
		d.fail(start, "unknown instruction 0xfc %d", sub)
	}
	return sub
}
