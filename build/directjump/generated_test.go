package directjump

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// generator makes functions of Go's layout with control flow that no compiler
// would make: jumps out of nested blocks, ifs and loops, tables with repeated
// entries, PC_B read where it should not be.
type generator struct {
	*rand.Rand
	blocks int // basic blocks
	at     int // the basic block that is being made
	depth  int // blocks, ifs and loops of its own that are open
	places int32
	reads  bool // PC_B may be read anywhere
	tricks bool // the dispatch loop may be entered in other ways than by a jump
}

func (g *generator) function() []byte {
	g.blocks, g.places = 1+g.IntN(8), 0
	g.reads, g.tricks = g.IntN(4) == 0, g.IntN(4) == 0
	code := [][]byte{block, loop}
	for range g.blocks {
		code = append(code, block)
	}
	var table []uint64
	for n := range g.blocks {
		for range 1 + g.IntN(2) {
			table = append(table, uint64(n))
		}
	}
	if g.IntN(8) == 0 {
		g.Shuffle(len(table), func(i, j int) { table[i], table[j] = table[j], table[i] })
	}
	code = append(code, get(0), brTable(table...))
	for g.at = range g.blocks {
		code = append(code, end, g.place(), g.statements(3))
	}
	return function(append(code, end, unreachable, end, constant(1))...)
}

// place tells the host where we are.
func (g *generator) place() []byte {
	g.places++
	return trace(g.places)
}

// label is the label of the dispatch loop, or with plus 1 of the unwind block.
func (g *generator) label() uint64 { return uint64(g.blocks - 1 - g.at + g.depth) }

func (g *generator) statements(most int) []byte {
	var code [][]byte
	for range g.IntN(most + 1) {
		code = append(code, g.statement())
	}
	return asm(code...)
}

func (g *generator) inside(open []byte, close ...[]byte) []byte {
	g.depth++
	code := asm(open, g.statements(2))
	g.depth--
	return asm(code, asm(close...))
}

func (g *generator) statement() []byte {
	jumps := func() []byte { return jump(int32(g.IntN(2*g.blocks+3)-1), g.label()) }
	if g.depth > 3 {
		return g.place()
	}
	switch g.IntN(12) {
	case 0:
		return jumps()
	case 1, 2, 3, 4:
		g.depth++
		defer func() { g.depth-- }()
		return asm(coin, iff, jumps(), end)
	case 5:
		return asm(coin, g.inside(iff, els), g.inside(nil, end))
	case 6:
		return g.inside(block, end)
	case 7:
		return g.inside(loop, coin, brIf(0), end)
	case 8:
		return asm(coin, set(0), constant(0), get(0), op(opCall, 1), drop)
	case 9:
		if g.reads {
			return asm(get(0), op(opCall, 1))
		}
		return asm(coin, brIf(g.label()+1))
	case 10:
		if g.tricks {
			return asm(coin, brIf(g.label()))
		}
		return asm(constant(0), ret)
	}
	return g.place()
}

// run calls f0 with PC_B from -1 to past the table, which is what a resumption
// does, and returns all that the host could see. The host's answers come from
// the seed; it breaks a call off after some hundred questions.
func (g *generator) run(t *testing.T, module []byte, seed uint64) []string {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() {
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	var seen []string
	var coins *rand.Rand
	fuel := 0
	tire := func() {
		if fuel--; fuel < 0 {
			panic(errTired)
		}
	}
	_, err := r.NewHostModuleBuilder("env").
		NewFunctionBuilder().WithFunc(func() uint32 { tire(); return coins.Uint32N(3) }).Export("coin").
		NewFunctionBuilder().WithFunc(func(place uint32) { tire(); seen = append(seen, fmt.Sprint(int32(place))) }).Export("trace").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := r.Instantiate(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	f := instance.ExportedFunction("f0")
	for pc := -1; pc <= 2*g.blocks+1; pc++ {
		coins, fuel = rand.New(rand.NewPCG(seed, uint64(pc))), 300
		result, err := f.Call(ctx, api.EncodeI32(int32(pc)))
		end := fmt.Sprint("end ", result)
		switch {
		case errors.Is(err, errTired):
			end = "tired"
		case err != nil:
			end = "trap"
		}
		seen = append(seen, end)
	}
	return seen
}

var errTired = errors.New("tired")

// checkGenerated makes a function of the seed, treats it, and demands that the
// host sees the same.
func checkGenerated(t *testing.T, seed uint64) Stats {
	t.Helper()
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	body := g.function()
	module := goModule(body)
	treated, stats, err := Treat(module)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, listing(body))
	}
	if again, _, err := Treat(treated); err == nil && !slices.Equal(again, treated) {
		t.Fatalf("seed %d: treating twice differs", seed)
	}
	before, after := g.run(t, module, seed), g.run(t, treated, seed)
	if !slices.Equal(before, after) {
		m, err := parse(treated)
		if err != nil {
			t.Fatal(err)
		}
		t.Fatalf("seed %d: %v became %v\n%s\nbecame\n%s", seed, before, after, listing(body), listing(m.body(0)))
	}
	return stats
}

func TestGeneratedFunctions(t *testing.T) {
	t.Parallel()
	var sum Stats
	for seed := range uint64(1500) {
		s := checkGenerated(t, seed)
		sum.Jumps += s.Jumps
		sum.Direct += s.Direct
		sum.Conditional += s.Conditional
		sum.Kept += s.Kept
		sum.Tests += s.Tests
	}
	t.Log(sum)
	if sum.Direct < 500 || sum.Conditional < 200 || sum.Kept < 100 || sum.Tests < 2000 || sum.Jumps-sum.Direct < 500 {
		t.Errorf("too few of a kind: %+v", sum)
	}
}

func FuzzGenerated(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) { checkGenerated(t, seed) })
}

// FuzzTreat has bytes from outside: there is a module or an error with a place.
// No engine looks at these modules: wazero believes the counts in them and can
// run out of memory.
func FuzzTreat(f *testing.F) {
	for _, c := range rewrites {
		f.Add(goModule(c.before))
	}
	f.Add(goModule(everyInstruction(), four(jump(1, 3), nil, nil, leave)))
	f.Fuzz(func(t *testing.T, module []byte) { checkBytes(t, module) })
}

// FuzzBody has the body of a function from outside: what was valid stays valid.
func FuzzBody(f *testing.F) {
	for _, c := range rewrites {
		f.Add(c.before)
	}
	f.Add(everyInstruction())
	f.Fuzz(func(t *testing.T, body []byte) {
		module := goModule(body)
		treated := checkBytes(t, module)
		if treated == nil || validate(module) != nil {
			return
		}
		if err := validate(treated); err != nil {
			t.Error(err)
		}
	})
}

func checkBytes(t *testing.T, module []byte) []byte {
	treated, stats, err := Treat(module)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(module) {
			t.Fatalf("an error without a place: %v", err)
		}
		return nil
	}
	// A test has eleven bytes at most besides its label, which the table has, too.
	const growth = (backwardMax + 1) * 16
	if len(treated) > len(module)+growth*stats.Dispatching+16 || stats.Tests > (backwardMax+1)*stats.Dispatching || stats.Direct > stats.Jumps || stats.Jumps > len(module) {
		t.Errorf("%+v", stats)
	}
	if again, _, err := Treat(treated); err == nil && !slices.Equal(again, treated) {
		t.Error("treating twice differs")
	}
	return treated
}
