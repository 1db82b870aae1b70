package abi

const invalid = uint32(InvalidMemoryAccess)

func proxyLog(c *call) uint32 {
	if c.arg(0) > LogLevelMax {
		return BadArgument.result()
	}
	message, ok := c.text(1)
	if !ok {
		return invalid
	}
	return c.host.Log(c.arg(0), message).result()
}

func proxyGetLogLevel(c *call) uint32 {
	if !c.word(0, c.host.LogLevel()) {
		return invalid
	}
	return 0
}

func proxyGetCurrentTime(c *call) uint32 {
	if !c.long(0, c.host.NowNanoseconds(false)) {
		return invalid
	}
	return 0
}

func proxySetTickPeriod(c *call) uint32 { return c.host.SetTickPeriod(c.arg(0)).result() }

func proxyGetProperty(c *call) uint32 {
	path, ok := c.text(0)
	if !ok {
		return invalid
	}
	value, st := c.host.GetProperty(path)
	if st != OK {
		return st.result()
	}
	return c.give(2, []byte(value)).result()
}

func proxySetProperty(c *call) uint32 {
	path, ok1 := c.text(0)
	value, ok2 := c.bytes(2)
	if !ok1 || !ok2 {
		return invalid
	}
	return c.host.SetProperty(path, value).result()
}

// proxyGetBufferBytes copies a range straight into guest memory. A range that
// goes past the end is cut; when nothing is left the guest's pointers stay as
// they are.
func proxyGetBufferBytes(c *call) uint32 {
	b, st := c.host.Buffer(c.arg(0))
	if st != OK {
		return st.result()
	}
	start, length, size := uint64(c.arg(1)), uint64(c.arg(2)), uint64(b.Len())
	if start >= size || length == 0 {
		return 0
	}
	length = min(length, size-start)
	address, view, ok := c.allocate(int(length))
	if !ok {
		return invalid
	}
	b.CopyTo(view, int(start))
	if !c.word(3, address) || !c.word(4, uint32(length)) {
		return invalid
	}
	return 0
}

func proxySetBufferBytes(c *call) uint32 {
	b, st := c.host.Buffer(c.arg(0))
	if st != OK {
		return st.result()
	}
	data, ok := c.bytes(3)
	if !ok {
		return invalid
	}
	return b.Replace(c.arg(1), c.arg(2), data).result()
}

func proxyGetBufferStatus(c *call) uint32 {
	b, st := c.host.Buffer(c.arg(0))
	if st != OK {
		return st.result()
	}
	if !c.word(1, uint32(b.Len())) || !c.word(2, 0) {
		return invalid
	}
	return 0
}

func proxyGetHeaderMapSize(c *call) uint32 {
	size, st := c.host.MapSize(c.arg(0))
	if st != OK {
		return st.result()
	}
	if !c.word(1, uint32(size)) {
		return invalid
	}
	return 0
}

func proxyGetHeaderMapPairs(c *call) uint32 {
	pairs, st := c.host.MapPairs(c.arg(0))
	if st != OK {
		return st.result()
	}
	return c.give(1, MarshalPairs(pairs)).result()
}

func proxySetHeaderMapPairs(c *call) uint32 {
	data, ok := c.bytes(1)
	if !ok {
		return invalid
	}
	return c.host.MapSetAll(c.arg(0), UnmarshalPairs(data)).result()
}

func proxyGetHeaderMapValue(c *call) uint32 {
	name, ok := c.text(1)
	if !ok {
		return invalid
	}
	value, st := c.host.MapGet(c.arg(0), name)
	if st != OK {
		return st.result()
	}
	return c.give(3, []byte(value)).result()
}

func proxyAddHeaderMapValue(c *call) uint32     { return c.edit(c.host.MapAdd) }
func proxyReplaceHeaderMapValue(c *call) uint32 { return c.edit(c.host.MapReplace) }

func (c *call) edit(f func(kind uint32, name, value string) Status) uint32 {
	name, ok1 := c.text(1)
	value, ok2 := c.text(3)
	if !ok1 || !ok2 {
		return invalid
	}
	return f(c.arg(0), name, value).result()
}

func proxyRemoveHeaderMapValue(c *call) uint32 {
	name, ok := c.text(1)
	if !ok {
		return invalid
	}
	return c.host.MapRemove(c.arg(0), name).result()
}

func proxyContinueStream(c *call) uint32 { return c.host.ContinueStream(c.arg(0)).result() }
func proxyCloseStream(c *call) uint32    { return c.host.CloseStream(c.arg(0)).result() }

func proxySendLocalResponse(c *call) uint32 {
	details, ok1 := c.text(1)
	body, ok2 := c.bytes(3)
	headers, ok3 := c.bytes(5)
	if !ok1 || !ok2 || !ok3 {
		return invalid
	}
	// The last argument is a gRPC status; the harness knows no gRPC requests.
	return c.host.SendLocalResponse(Reply{
		Code: c.arg(0), Details: details, Body: body, Headers: UnmarshalPairs(headers),
	}).result()
}

func proxyHTTPCall(c *call) uint32 {
	cluster, ok1 := c.text(0)
	headers, ok2 := c.bytes(2)
	body, ok3 := c.bytes(4)
	trailers, ok4 := c.bytes(6)
	// The id's place is tried before the call goes out.
	if !ok1 || !ok2 || !ok3 || !ok4 || !c.word(9, 0) {
		return invalid
	}
	id, st := c.host.HTTPCall(Call{
		Cluster: cluster, Headers: UnmarshalPairs(headers), Body: body,
		Trailers: UnmarshalPairs(trailers), TimeoutMs: int32(c.arg(8)),
	})
	c.word(9, id)
	return st.result()
}

func proxyGetStatus(c *call) uint32 {
	code, message := c.host.CallStatus()
	if !c.word(0, code) {
		return invalid
	}
	return c.give(1, []byte(message)).result()
}

func proxySetEffectiveContext(c *call) uint32 { return c.host.SetEffectiveContext(c.arg(0)).result() }

func proxyDone(c *call) uint32 { return c.host.Done().result() }

func proxyGetSharedData(c *call) uint32 {
	key, ok := c.text(0)
	if !ok {
		return invalid
	}
	value, cas, st := c.host.GetSharedData(key)
	if st != OK {
		return st.result()
	}
	if st := c.give(2, []byte(value)); st != OK {
		return st.result()
	}
	if !c.word(4, cas) {
		return invalid
	}
	return 0
}

func proxySetSharedData(c *call) uint32 {
	key, ok1 := c.text(0)
	value, ok2 := c.text(2)
	if !ok1 || !ok2 {
		return invalid
	}
	return c.host.SetSharedData(key, value, c.arg(4)).result()
}

func proxyRegisterSharedQueue(c *call) uint32 {
	name, ok := c.text(0)
	if !ok || !c.word(2, c.host.RegisterQueue(name)) {
		return invalid
	}
	return 0
}

func proxyResolveSharedQueue(c *call) uint32 {
	vm, ok1 := c.text(0)
	name, ok2 := c.text(2)
	if !ok1 || !ok2 {
		return invalid
	}
	id, st := c.host.ResolveQueue(vm, name)
	if st == OK && !c.word(4, id) {
		return invalid
	}
	return st.result()
}

func proxyEnqueueSharedQueue(c *call) uint32 {
	value, ok := c.text(1)
	if !ok {
		return invalid
	}
	return c.host.Enqueue(c.arg(0), value).result()
}

func proxyDequeueSharedQueue(c *call) uint32 {
	value, st := c.host.Dequeue(c.arg(0))
	if st != OK {
		return st.result()
	}
	return c.give(1, []byte(value)).result()
}

func proxyDefineMetric(c *call) uint32 {
	name, ok := c.text(1)
	if !ok {
		return invalid
	}
	id, st := c.host.DefineMetric(c.arg(0), name)
	if st == OK && !c.word(3, id) {
		return invalid
	}
	return st.result()
}

func proxyIncrementMetric(c *call) uint32 {
	return c.host.IncrementMetric(c.arg(0), int64(c.args[1])).result()
}

func proxyRecordMetric(c *call) uint32 { return c.host.RecordMetric(c.arg(0), c.args[1]).result() }

func proxyGetMetric(c *call) uint32 {
	v, st := c.host.GetMetric(c.arg(0))
	if st == OK && !c.long(1, v) {
		return invalid
	}
	return st.result()
}

func proxyCallForeignFunction(c *call) uint32 {
	name, ok1 := c.text(0)
	args, ok2 := c.bytes(2)
	if !ok1 || !ok2 {
		return invalid
	}
	out, st := c.host.CallForeignFunction(name, args)
	if st != OK {
		return st.result()
	}
	// The results may be left out by null pointers.
	if c.arg(4) == 0 || c.arg(5) == 0 {
		return 0
	}
	return c.give(4, out).result()
}
