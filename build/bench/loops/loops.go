// Package loops are the loops that the micro benchmarks time. The same code runs
// natively, in the harness and in Envoy.
package loops

import (
	"encoding/base64"
	"errors"
	"runtime"
	"slices"
	"time"

	"ezat.io/chat-completions/build/bench/work"
	"ezat.io/chat-completions/translate"
)

// Figure is what one loop took.
type Figure struct {
	// Median and Least are nanoseconds a turn, over Samples samples.
	Median, Least float64
	Samples       int
	// Mallocs is the number of allocations in all turns, Turns that of turns.
	Mallocs uint64
	Turns   int
}

const (
	// sampleNsMin is how long a sample takes at least: a look at the clock is a
	// host call in a VM.
	sampleNsMin = 200_000
	// samplesMax bounds the samples of one figure.
	samplesMax = 2000
)

// Time runs turn(n), which does its work n times, for about the given time. What
// a long turn leaves behind is cleared away outside of the measured time: Go's
// collector works beside the program, and a guest runs only while it is called.
func Time(limit time.Duration, turn func(n int)) Figure {
	n := 1
	for took := clock(turn, n); took < sampleNsMin && n < 1<<24; took = clock(turn, n) {
		n *= 2
	}
	var before, after runtime.MemStats
	samples := make([]float64, 0, samplesMax)
	runtime.ReadMemStats(&before)
	for start := time.Now(); len(samples) < 3 || len(samples) < samplesMax && time.Since(start) < limit; {
		if n == 1 {
			runtime.GC()
		}
		samples = append(samples, float64(clock(turn, n))/float64(n))
	}
	runtime.ReadMemStats(&after)
	slices.Sort(samples)
	return Figure{
		Median: samples[len(samples)/2], Least: samples[0], Samples: len(samples),
		Mallocs: after.Mallocs - before.Mallocs, Turns: len(samples) * n,
	}
}

func clock(turn func(int), n int) int64 {
	start := time.Now()
	turn(n)
	return int64(time.Since(start))
}

// slackBytes are the zeros that the filter keeps behind a body.
const slackBytes = 64

// Padded is a copy of body as the filter hands it to the core.
func Padded(body []byte) []byte {
	b := make([]byte, len(body)+slackBytes)
	copy(b, body)
	return b[:len(body)]
}

// Request is parse, decide and write of a request. emit gets the pieces.
func Request(body []byte, emit func([]byte)) (turn func(n int), err error) {
	env := &translate.Env{Models: translate.NewModels("anthropic/", nil), AutoCache: true}
	parser := new(translate.Parser)
	once := func() error {
		r, refused := parser.Parse(body)
		if refused != nil {
			return refused
		}
		p, refused := translate.Decide(r, env)
		if refused != nil {
			return refused
		}
		p.Write(emit)
		return nil
	}
	return func(n int) {
		for range n {
			if err := once(); err != nil {
				panic(err.Error()) // it went well the first time
			}
		}
	}, once()
}

// Nothing is a place for pieces that nobody wants.
func Nothing([]byte) {}

// Stream feeds a running stream with the same events again and again, each time
// in one piece.
func Stream(kind work.Kind, events []byte) (turn func(n int), err error) {
	s := translate.NewStream(translate.Reply{Model: "m", Stream: true}, translate.Answer{RequestID: "req_1", Created: 1793318400}, true)
	out := s.Feed(nil, work.Start(kind), false)
	out = s.Feed(out[:0], events, false)
	if s.Done() || len(out) == 0 {
		return nil, errors.New("the stream does not run")
	}
	return func(n int) {
		for range n {
			out = s.Feed(out[:0], events, false)
		}
	}, nil
}

// pieceBytes is the size in which a host hands over what an upstream sends fast.
const pieceBytes = 16 << 10

// Pieces is like Stream, in pieces.
func Pieces(kind work.Kind, events []byte) (turn func(n int), err error) {
	s := translate.NewStream(translate.Reply{Model: "m", Stream: true}, translate.Answer{RequestID: "req_1", Created: 1793318400}, true)
	out := s.Feed(nil, work.Start(kind), false)
	once := func() {
		for rest := events; len(rest) > 0; {
			n := min(pieceBytes, len(rest))
			out = s.Feed(out[:0], rest[:n], false)
			rest = rest[n:]
		}
	}
	if once(); s.Done() || len(out) == 0 {
		return nil, errors.New("the stream does not run")
	}
	return func(n int) {
		for range n {
			once()
		}
	}, nil
}

// Copy is one copy of the body.
func Copy(body []byte) (turn func(n int)) {
	to := make([]byte, len(body))
	return func(n int) {
		for range n {
			copy(to, body)
		}
	}
}

// Base64 encodes the body, as downloaded images are.
func Base64(body []byte) (turn func(n int)) {
	const piece = 12 << 10
	to := make([]byte, 0, base64.StdEncoding.EncodedLen(piece))
	return func(n int) {
		for range n {
			for rest := body; len(rest) > 0; {
				k := min(piece, len(rest))
				to = base64.StdEncoding.AppendEncode(to[:0], rest[:k])
				rest = rest[k:]
			}
		}
	}
}
