package main

import (
	"bytes"

	"ezat.io/chat-completions/translate"
)

// fatalText reads what Go's runtime writes, in pieces of a line or less, and
// makes one line of what it says at the end of the VM: behind the cause comes a
// traceback, of a thousand pieces. It runs while the runtime dies, and neither
// allocates nor fails.
type fatalText struct {
	held     [fatalTextBytesMax]byte // what the runtime said just before the cause
	line     [fatalTextBytesMax]byte // the line that is being written
	heldSize int
	lineSize int
	over     bool // the cause is known
}

// What a line of the runtime is.
type fatalLine int

const (
	fatalNothing fatalLine = iota // nothing to be said, or not yet
	fatalRemark                   // no end of the VM: text has the line
	fatalCause                    // the end of the VM: text has the reason for it
)

// take takes the beginning of a piece, up to the end of a line, and returns the
// rest of it, which is to be taken next. text is valid until then.
func (f *fatalText) take(piece []byte) (kind fatalLine, text, rest []byte) {
	end := bytes.IndexByte(piece, '\n')
	if f.over {
		return fatalNothing, nil, nil
	}
	if end < 0 {
		f.lineSize += copy(f.line[f.lineSize:], piece)
		return fatalNothing, nil, nil
	}
	f.lineSize += copy(f.line[f.lineSize:], piece[:end])
	line := f.line[:f.lineSize]
	f.lineSize = 0
	switch {
	case bytes.HasPrefix(line, fatalWords[0]), bytes.HasPrefix(line, fatalWords[1]):
		f.over = true
		return fatalCause, f.cause(line), nil
	case bytes.HasPrefix(line, fatalWords[2]):
		// The size that could not be had, the stack that ran over: numbers.
		f.heldSize += copy(f.held[f.heldSize:], line)
		f.heldSize += copy(f.held[f.heldSize:], "; ")
		return fatalNothing, nil, piece[end+1:]
	case len(line) == 0:
		return fatalNothing, nil, piece[end+1:]
	}
	return fatalRemark, line, piece[end+1:]
}

// fatalWords are how the runtime begins to say why it ends, and what it says before.
var fatalWords = [...][]byte{[]byte("fatal error: "), []byte("panic: "), []byte("runtime: ")}

// fatalPanics are the panics whose texts are the runtime's own, of numbers and
// names of types. Another one can have anything in it, the text of a message too.
var fatalPanics = [...][]byte{[]byte("panic: runtime error: "), []byte("panic: interface conversion: ")}

// cause is the whole text, at most fatalTextBytesMax bytes of it.
func (f *fatalText) cause(line []byte) []byte {
	if bytes.HasPrefix(line, fatalWords[1]) && !bytes.HasPrefix(line, fatalPanics[0]) && !bytes.HasPrefix(line, fatalPanics[1]) {
		line = line[:copy(f.line[:], "panic: its text is not shown")]
	}
	// In front of the cause, as much as there is room for.
	before := min(f.heldSize, len(f.line)-len(line))
	copy(f.line[before:], line)
	copy(f.line[:before], f.held[:before])
	return f.line[:before+len(line)]
}

// fatalReply is what a client reads whose stream was in a VM that has failed: as
// from a host that has no capacity. A new VM is there in a second.
var fatalReply = (&translate.Reply{}).UpstreamError(503, nil)

// appendFatalHeaders appends the headers of that reply, in the ABI's form. id is
// that of the request; it may be empty.
func appendFatalHeaders(dst []byte, id string) []byte {
	pairs := [...][2]string{{"content-type", jsonType}, {"retry-after", "1"}, {"request-id", id}, {"x-request-id", id}}
	if id == "" {
		return appendPairs(dst, pairs[:2])
	}
	return appendPairs(dst, pairs[:])
}
