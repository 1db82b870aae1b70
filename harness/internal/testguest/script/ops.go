//go:build wasip1

package main

import (
	"encoding/binary"
	"math"
	"os"
	"strconv"
	"time"
	"unsafe"
)

func ptr(p *uint32) unsafe.Pointer { return unsafe.Pointer(p) }

// run does the ops of a rule in the context id.
func run(s *stream, id uint32, ops [][]string) {
	for _, op := range ops {
		if len(op) > 0 {
			do(s, id, op[0], op[1:])
		}
	}
}

// do does one op. Ops that ask the host log the answer.
func do(s *stream, id uint32, op string, a []string) {
	switch op {
	case "pause":
		s.action = 1
	case "return":
		s.action = arg(a, 0)
	case "log":
		logf(a...)
	case "resume":
		logf("resume", a[0], num(proxyContinueStream(arg(a, 0))))
	case "close":
		logf("close", a[0], num(proxyCloseStream(arg(a, 0))))
	case "effective":
		logf("effective", num(proxySetEffectiveContext(callers[answered])))
	case "context":
		logf("context", num(proxySetEffectiveContext(arg(a, 0))))
	case "finished":
		logf("finished", num(proxyDone()))
	case "buffer":
		bufferOp(arg(a, 0), a[1], a[2:])
	case "map":
		mapOp(arg(a, 0), a[1], a[2:])
	case "local":
		localOp(a)
	case "call":
		callOp(id, a)
	case "property":
		propertyOp(a)
	case "setproperty":
		key, keySize := str(join(a[:len(a)-1], "\x00"))
		data, size := str(a[len(a)-1])
		logf("setproperty", num(proxySetProperty(key, keySize, data, size)))
	case "tick":
		logf("tick period", num(proxySetTickPeriodMilliseconds(arg(a, 0))))
	default:
		doMore(op, a)
	}
}

// doMore does the ops that are not about a stream.
func doMore(op string, a []string) {
	switch op {
	case "metric":
		metricOp(a[0], a[1:])
	case "shared":
		sharedOp(a[0], a[1:])
	case "queue":
		queueOp(a[0], a[1:])
	case "foreign":
		name, nameSize := str(a[0])
		data, size := str(a[1])
		var r result
		st := proxyCallForeignFunction(name, nameSize, data, size, ptr(&r.data), ptr(&r.size))
		logf("foreign", a[0], num(st), r.text())
	case "status":
		var code uint32
		var r result
		st := proxyGetStatus(ptr(&code), ptr(&r.data), ptr(&r.size))
		logf("status", num(st), num(code), r.text())
	case "time":
		var now uint64
		proxyGetCurrentTimeNanoseconds(unsafe.Pointer(&now))
		logf("time", strconv.FormatUint(now, 10), strconv.FormatInt(time.Now().UnixNano(), 10))
	case "env":
		logf("env", a[0], os.Getenv(a[0]))
	case "stderr":
		os.Stderr.WriteString(a[0] + "\n")
	case "panic":
		panic(a[0])
	case "exit":
		procExit(arg(a, 0))
	case "spin":
		for {
		}
	case "recurse":
		logf("recursed", num(uint32(recurse(1))))
	case "oom":
		for {
			hoard = append(hoard, make([]byte, 1<<24))
		}
	default:
		panic("unknown op " + op)
	}
}

// recurse never ends: the stack grows until the memory does not.
func recurse(n int) int { return recurse(n+1) + n }

// arg is the i-th word as a number; "max" is the largest.
func arg(a []string, i int) uint32 {
	if a[i] == "max" {
		return math.MaxUint32
	}
	n, err := strconv.ParseUint(a[i], 10, 32)
	if err != nil {
		panic(err.Error())
	}
	return uint32(n)
}

func join(words []string, sep string) string {
	out := ""
	for i, w := range words {
		if i > 0 {
			out += sep
		}
		out += w
	}
	return out
}

// brief keeps log lines short.
func brief(s string) string {
	if len(s) > 64 {
		s = s[:30] + "…" + strconv.Itoa(len(s)) + "…" + s[len(s)-30:]
	}
	return strconv.Quote(s)
}

func bufferOp(kind uint32, op string, a []string) {
	var st status
	var r result
	switch op {
	case "get":
		st = proxyGetBufferBytes(kind, arg(a, 0), arg(a, 1), ptr(&r.data), ptr(&r.size))
		if r.data == 0 {
			logf("buffer get", num(st), "nothing")
			return
		}
		logf("buffer get", num(st), brief(r.text()))
	case "set":
		data, size := str(a[2])
		st = proxySetBufferBytes(kind, arg(a, 0), arg(a, 1), data, size)
		logf("buffer set", num(st))
	case "status":
		var flags uint32
		st = proxyGetBufferStatus(kind, ptr(&r.size), ptr(&flags))
		logf("buffer status", num(st), num(r.size))
	}
}

func mapGet(kind uint32, key string) (string, status) {
	var r result
	data, size := str(key)
	st := proxyGetHeaderMapValue(kind, data, size, ptr(&r.data), ptr(&r.size))
	return r.text(), st
}

func mapOp(kind uint32, op string, a []string) {
	switch op {
	case "get":
		v, st := mapGet(kind, a[0])
		logf("map get", a[0], num(st), brief(v))
	case "all":
		var r result
		st := proxyGetHeaderMapPairs(kind, ptr(&r.data), ptr(&r.size))
		line := []string{"map all", num(st)}
		for _, p := range unmarshal(r.text()) {
			line = append(line, p)
		}
		logf(line...)
	case "size":
		var size uint32
		st := proxyGetHeaderMapSize(kind, ptr(&size))
		logf("map size", num(st), num(size))
	case "setall":
		data, size := str(marshal(a))
		logf("map setall", num(proxySetHeaderMapPairs(kind, data, size)))
	case "remove":
		key, keySize := str(a[0])
		logf("map remove", a[0], num(proxyRemoveHeaderMapValue(kind, key, keySize)))
	default:
		key, keySize := str(a[0])
		data, size := str(a[1])
		set := proxyReplaceHeaderMapValue
		if op == "add" {
			set = proxyAddHeaderMapValue
		}
		logf("map", op, a[0], num(set(kind, key, keySize, data, size)))
	}
}

// marshal writes key, value, key, value as the ABI wants a map.
func marshal(pairs []string) string {
	if len(pairs) == 0 {
		return ""
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(pairs)/2))
	for _, p := range pairs {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
	}
	for _, p := range pairs {
		b = append(append(b, p...), 0)
	}
	return string(b)
}

// unmarshal reads a map as the host writes it.
func unmarshal(s string) []string {
	if len(s) < 4 {
		return nil
	}
	n := int(binary.LittleEndian.Uint32([]byte(s))) * 2
	out, at := make([]string, n), 4+4*n
	for i := range out {
		size := int(binary.LittleEndian.Uint32([]byte(s[4+4*i:])))
		out[i] = s[at : at+size]
		at += size + 1
	}
	return out
}

// localOp: status, details, body, header, value, …
func localOp(a []string) {
	details, detailsSize := str(a[1])
	body, bodySize := str(a[2])
	headers, headersSize := str(marshal(a[3:]))
	st := proxySendLocalResponse(arg(a, 0), details, detailsSize, body, bodySize, headers, headersSize, math.MaxUint32)
	logf("local", a[0], num(st))
}

// callOp: cluster, timeout in ms, body, header, value, …
func callOp(id uint32, a []string) {
	upstream, upstreamSize := str(a[0])
	body, bodySize := str(a[2])
	headers, headersSize := str(marshal(a[3:]))
	var call uint32
	st := proxyHTTPCall(upstream, upstreamSize, headers, headersSize, body, bodySize, nil, 0, arg(a, 1), ptr(&call))
	if st == 0 {
		callers[call] = id
	}
	logf("call", a[0], num(st))
}

func propertyOp(a []string) {
	var r result
	path, size := str(join(a, "\x00"))
	st := proxyGetProperty(path, size, ptr(&r.data), ptr(&r.size))
	logf("property", join(a, "."), num(st), brief(r.text()))
}

func metricOp(op string, a []string) {
	switch op {
	case "define": // kind, name
		var id uint32
		name, size := str(a[1])
		st := proxyDefineMetric(arg(a, 0), name, size, ptr(&id))
		metrics[a[1]] = id
		logf("metric define", a[1], num(st))
	case "increment":
		n, _ := strconv.ParseInt(a[1], 10, 64)
		logf("metric increment", a[0], num(proxyIncrementMetric(metrics[a[0]], n)))
	case "record":
		n, _ := strconv.ParseUint(a[1], 10, 64)
		logf("metric record", a[0], num(proxyRecordMetric(metrics[a[0]], n)))
	case "get":
		var v uint64
		st := proxyGetMetric(metrics[a[0]], unsafe.Pointer(&v))
		logf("metric get", a[0], num(st), strconv.FormatUint(v, 10))
	}
}

func sharedOp(op string, a []string) {
	key, keySize := str(a[0])
	if op == "set" { // key, value, cas
		data, size := str(a[1])
		logf("shared set", a[0], num(proxySetSharedData(key, keySize, data, size, arg(a, 2))))
		return
	}
	var r result
	var cas uint32
	st := proxyGetSharedData(key, keySize, ptr(&r.data), ptr(&r.size), ptr(&cas))
	logf("shared get", a[0], num(st), brief(r.text()), num(cas))
}

func queueOp(op string, a []string) {
	name, nameSize := str(a[0])
	var id uint32
	switch op {
	case "register":
		st := proxyRegisterSharedQueue(name, nameSize, ptr(&id))
		queues[a[0]] = id
		logf("queue register", a[0], num(st))
	case "resolve": // name, vm id
		vm, vmSize := str(a[1])
		st := proxyResolveSharedQueue(vm, vmSize, name, nameSize, ptr(&id))
		queues[a[0]] = id
		logf("queue resolve", a[0], num(st))
	case "enqueue":
		data, size := str(a[1])
		logf("queue enqueue", a[0], num(proxyEnqueueSharedQueue(queues[a[0]], data, size)))
	case "dequeue":
		var r result
		st := proxyDequeueSharedQueue(queues[a[0]], ptr(&r.data), ptr(&r.size))
		logf("queue dequeue", a[0], num(st), brief(r.text()))
	}
}
