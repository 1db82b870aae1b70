// Package guest is a proxy-wasm module's edge for benchmarks: it buffers a
// request's body, hands it to Run, and answers with what Run returns. So a loop
// runs where the filter's own code does, in a request's body phase on a worker
// of the proxy, with the real buffer at hand.
package guest

import (
	"strconv"
	"strings"

	"ezat.io/chat-completions/build/bench/loops"
)

// ModeHeader is the request header that says what to do.
const ModeHeader = "x-bench-mode"

// Run does what mode asks for with the body and returns the answer's body. A
// program that is a guest sets it.
var Run func(mode string, body []byte) []byte

// Encode spells a figure for Decode.
func Encode(f loops.Figure) []byte {
	b := strconv.AppendFloat(nil, f.Median, 'f', 3, 64)
	b = strconv.AppendFloat(append(b, ' '), f.Least, 'f', 3, 64)
	b = strconv.AppendInt(append(b, ' '), int64(f.Samples), 10)
	b = strconv.AppendUint(append(b, ' '), f.Mallocs, 10)
	return strconv.AppendInt(append(b, ' '), int64(f.Turns), 10)
}

// Decode reads what Encode has spelled; ok is false for anything else.
func Decode(text string) (f loops.Figure, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return f, false
	}
	var errs [5]error
	f.Median, errs[0] = strconv.ParseFloat(fields[0], 64)
	f.Least, errs[1] = strconv.ParseFloat(fields[1], 64)
	f.Samples, errs[2] = strconv.Atoi(fields[2])
	f.Mallocs, errs[3] = strconv.ParseUint(fields[3], 10, 64)
	f.Turns, errs[4] = strconv.Atoi(fields[4])
	for _, err := range errs {
		ok = err == nil
		if !ok {
			return f, false
		}
	}
	return f, true
}
