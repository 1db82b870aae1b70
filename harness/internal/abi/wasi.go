package abi

// The errnos of WASI that the ABI names.
const (
	wasiBadF       = 8
	wasiFault      = 21
	wasiInval      = 28
	wasiNotSup     = 58
	wasiNotCapable = 76
)

// randomBytesMax bounds one random_get.
const randomBytesMax = 1 << 20

func succeed(*call) uint32       { return 0 }
func badDescriptor(*call) uint32 { return wasiBadF }

// fdWrite logs what goes to standard output or error, a line feed at the end
// taken off.
func fdWrite(c *call) uint32 {
	level := uint32(2)
	switch c.arg(0) {
	case 1:
	case 2:
		level = 4
	default:
		return wasiBadF
	}
	var text []byte
	mem := c.mod.Memory()
	for i := uint64(0); i < uint64(c.arg(2)); i++ {
		at := uint64(c.arg(1)) + 8*i
		if at > 0xffffffff {
			return wasiFault
		}
		address, ok1 := mem.ReadUint32Le(uint32(at))
		size, ok2 := mem.ReadUint32Le(uint32(at) + 4)
		if !ok1 || !ok2 {
			return wasiFault
		}
		part, ok := mem.Read(address, size)
		if !ok {
			return wasiFault
		}
		if text = append(text, part...); len(text) > int(mem.Size()) {
			return wasiFault // the same bytes over and over
		}
	}
	written := len(text)
	if written > 0 && text[written-1] == '\n' {
		text = text[:written-1]
	}
	if written > 0 && c.host.Log(level, string(text)) != OK {
		return wasiBadF
	}
	if !c.word(3, uint32(written)) {
		return wasiFault
	}
	return 0
}

func clockTimeGet(c *call) uint32 {
	id := c.arg(0)
	if id > 1 {
		return wasiNotSup
	}
	if !c.long(2, c.host.NowNanoseconds(id == 1)) {
		return wasiFault
	}
	return 0
}

func randomGet(c *call) uint32 {
	if c.arg(1) > randomBytesMax {
		return wasiInval
	}
	view, ok := c.mod.Memory().Read(c.arg(0), c.arg(1))
	if !ok || c.host.Random(view) != nil {
		return wasiFault
	}
	return 0
}

func environSizesGet(c *call) uint32 {
	size := 0
	for _, e := range c.host.Environ() {
		size += len(e) + 1
	}
	if !c.word(0, uint32(len(c.host.Environ()))) || !c.word(1, uint32(size)) {
		return wasiFault
	}
	return 0
}

func environGet(c *call) uint32 {
	array, text := c.arg(0), c.arg(1)
	mem := c.mod.Memory()
	for _, e := range c.host.Environ() {
		if !mem.WriteUint32Le(array, text) || !mem.WriteString(text, e+"\x00") {
			return wasiFault
		}
		array += 4
		text += uint32(len(e)) + 1
	}
	return 0
}

func argsSizesGet(c *call) uint32 {
	if !c.word(0, 0) || !c.word(1, 0) {
		return wasiFault
	}
	return 0
}

// procExit does not end the guest: in Envoy it returns, and Go's own code then
// runs into a trap.
func procExit(c *call) uint32 {
	c.host.Exit(c.arg(0))
	return c.arg(0)
}

// pollOneoff says that no event has come: the guest polls again.
func pollOneoff(c *call) uint32 {
	if !c.word(3, 0) {
		return wasiFault
	}
	return 0
}

// fdStatGet describes standard output and error as descriptors to write to.
func fdStatGet(c *call) uint32 {
	if fd := c.arg(0); fd != 1 && fd != 2 {
		return wasiBadF
	}
	stat := make([]byte, 24)
	stat[8] = 64 // the right to write
	if !c.mod.Memory().Write(c.arg(1), stat) {
		return wasiFault
	}
	return 0
}
