package harness_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"ezat.io/chat-completions/harness"
	"ezat.io/chat-completions/translate/cases"
)

// TestTreatedModuleDoesTheSame runs every case through the module as it ships and
// through the one that Go makes, before build/directjump and wasm-opt: as it stands,
// and with bytes of both bodies spoiled. Whatever comes of it, it must be the same
// to the byte: requests upstream, answers, usage, and what is logged as a fault.
func TestTreatedModuleDoesTheSame(t *testing.T) {
	shipped, err := os.ReadFile(corpusModule)
	if err != nil {
		t.Fatalf("the module is missing: run `make wasm`: %v", err)
	}
	plain := plainModule(t)
	if bytes.Equal(shipped, plain) {
		t.Fatal("both modules are the same")
	}
	all, err := cases.All()
	if err != nil {
		t.Fatal(err)
	}
	type pair struct{ shipped, plain *wasmLevel }
	pairs := map[string]pair{}
	ran, spoiled := 0, 0
	for _, c := range all {
		if !c.Runs(cases.Wasm) {
			continue
		}
		config := string(c.Config)
		if pairs[config].shipped == nil {
			pairs[config] = pair{newWasmLevel(t, shipped, config), newWasmLevel(t, plain, config)}
		}
		same := func(c *cases.Case, what string) bool {
			got, want := pairs[config].shipped.trace(t, c), pairs[config].plain.trace(t, c)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s\n%s\nshipped: %+v\nplain:   %+v", c.Name, what, c.Request.Body, got, want)
			}
			return got.err == ""
		}
		same(c, "as it stands")
		ran++
		random := randomOf(c.Name)
		for i := range spoiledEach {
			if same(spoil(c, random), fmt.Sprint("spoiled ", i)) {
				spoiled++
			}
		}
	}
	if ran < 400 || spoiled < ran {
		t.Errorf("%d cases, and %d spoiled ones that came to an end: too few", ran, spoiled)
	}
}

// spoiledEach is how many times each case is spoiled in another way.
const spoiledEach = 6

// plainModule is the module without the treatment.
func plainModule(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "plain.wasm")
	build := exec.Command("bash", "../build/wasm.sh")
	build.Env = append(os.Environ(), "PLAIN=1", "OUT="+out, "VERSION=")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// trace is all that one run of a case shows.
type trace struct {
	outcome cases.Outcome
	err     string
	faults  []string
}

func (l *wasmLevel) trace(t *testing.T, c *cases.Case) (got trace) {
	var err error
	if got.outcome, err = l.outcome(t.Context(), c, wasmDelivery{name: "whole", end: harness.EndAlone}); err != nil {
		got.err = err.Error()
	}
	got.faults = l.takeFaults()
	return got
}

// randomOf is a source of its own for each case, so that a failure comes again.
func randomOf(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// spoil is the case with a few bytes of the request changed, or of the answer.
func spoil(c *cases.Case, random *rand.Rand) *cases.Case {
	s := *c
	s.Calls = append([]cases.Call(nil), c.Calls...)
	if n := len(s.Calls); n > 0 && random.IntN(2) == 0 {
		a := &s.Calls[random.IntN(n)].Answer
		a.Body = spoilBytes(a.Body, random)
		a.Header = a.Header.Del("content-length")
		return &s
	}
	s.Request.Body = spoilBytes(c.Request.Body, random)
	s.Request.Header = c.Request.Header.Del("content-length")
	return &s
}

func spoilBytes(b []byte, random *rand.Rand) []byte {
	const often = "\"\\{}[]:,0-e.tfn \n\x00\x1f\x80\xc3\xed\xf4ud8"
	b = bytes.Clone(b)
	for range 1 + random.IntN(3) {
		if len(b) == 0 {
			return b
		}
		at := random.IntN(len(b))
		end := min(len(b), at+1+random.IntN(16))
		switch random.IntN(4) {
		case 0:
			b[at] = often[random.IntN(len(often))]
		case 1:
			b = append(b[:at], b[end:]...)
		case 2:
			b = append(b[:end:end], b[at:]...)
		default:
			b[at] ^= 1 << random.IntN(8)
		}
	}
	return b
}
