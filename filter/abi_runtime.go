//go:build wasip1

package main

import "unsafe"

// Where Go's runtime dies, all streams of the VM die with it, and the host knows
// nothing of it until something comes for one of them: that may take minutes, and
// the dead VM stays in memory as long. So the last thing that the VM does is to
// answer for its streams.

// runtimeWrite is where the runtime sends what it has to say, instead of to the
// host's standard error. Go keeps the name for other packages' use.
//
//go:linkname runtimeWrite runtime.overrideWrite
var runtimeWrite func(fd uintptr, p unsafe.Pointer, n int32) int32

// setMaxStack bounds a goroutine's stack, in bytes.
//
//go:linkname setMaxStack runtime/debug.setMaxStack
func setMaxStack(bytes int) int

func init() {
	setMaxStack(stackBytesMax)
	fatalBody = envelope(fatalReply)
	runtimeWrite = writeRuntimeText
}

// What the end needs is here before it: the runtime may die of having no memory
// left, or while it holds its locks.
var (
	fatal        fatalText
	fatalBody    []byte
	fatalHeaders [fatalHeadersBytesMax]byte
)

// fatalDetails is what the host writes into its access log, as for streams of a
// failed VM that it answers itself. envoy.yaml knows replies by it.
var fatalDetails = []byte("wasm_fail_vm")

// The ABI's numbers of two levels.
const (
	logError    = 4
	logCritical = 5
)

// writeRuntimeText takes a piece of what the runtime says. It runs on a stack of
// a few KB, allocates nothing and changes no pointer in memory.
func writeRuntimeText(_ uintptr, p unsafe.Pointer, n int32) int32 {
	for piece := unsafe.Slice((*byte)(p), n); len(piece) > 0; {
		var kind fatalLine
		var text []byte
		switch kind, text, piece = fatal.take(piece); kind {
		case fatalRemark:
			importLog(logError, unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)))
		case fatalCause:
			importLog(logCritical, unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)))
			answerAll()
		}
	}
	return n
}

// answerAll lets the host answer every stream of the VM. Where the headers of an
// answer have left already, the host resets the stream.
func answerAll() {
	for id, x := range contexts.streams {
		headers := appendFatalHeaders(fatalHeaders[:0], x.requestID)
		importSetEffectiveContext(id)
		importSendLocalResponse(uint32(fatalReply.Status), unsafe.Pointer(unsafe.SliceData(fatalDetails)), uint32(len(fatalDetails)),
			unsafe.Pointer(unsafe.SliceData(fatalBody)), uint32(len(fatalBody)),
			unsafe.Pointer(unsafe.SliceData(headers)), uint32(len(headers)), noGRPCStatus)
	}
}
