package directjump

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programmer writes Go programs with odd control flow. A program is a handful of
// functions that call each other, mix what they compute into one hash, and panic
// now and then; fuel bounds every loop and every recursion. What it prints
// depends on nothing but the program.
type programmer struct {
	*rand.Rand
	bytes.Buffer
	functions int
	depth     int      // nested statements
	loops     []string // labels of the loops around
	switches  int      // switch or select statements since the innermost loop
	labels    int      // labels so far in this function
	used      map[string]bool
	gotos     []string // labels that a goto may lead to
	serial    int
}

const programHead = `package main

import (
	"errors"
	"runtime"
)

var (
	fuel int
	hash uint64
	list = []int64{3, 1, 4, 1, 5, 9, 2, 6}
)

type shape interface{ area(d int, a, b int64) int64 }

func mix(k int64) { hash = (hash ^ uint64(k)) * 0x100000001b3 }

//go:noinline
func burn() bool { fuel--; return fuel >= 0 }

// deep grows the stack, which resumes the function that called it.
func deep(n int64) int64 {
	var frame [64]int64
	frame[n&63] = n
	if n <= 0 {
		return frame[0]
	}
	return deep(n-1) + frame[n&63]
}

func numbers(n int64) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		for i := int64(0); i < n; i++ {
			if !yield(i * i) {
				return
			}
		}
	}
}

func call(k int64, f func(d int, a, b int64) int64) {
	fuel, hash = 2000, 0xcbf29ce484222325
	var r int64
	func() {
		defer func() { mix(caught(recover())) }()
		r = f(0, k, k*k)
	}()
	println(k, hash, r)
}

// caught says what was recovered as a number, the same one on every platform.
func caught(p any) int64 {
	switch v := p.(type) {
	case nil:
		return 1
	case int64:
		return v
	case runtime.Error:
		text := v.Error()
		return int64(text[len(text)-1]) + int64(len(text))<<8
	case error:
		return int64(len(v.Error()))
	}
	return 2
}

var errOdd = errors.New("odd")
`

// write prints one line.
func (p *programmer) write(format string, args ...any) {
	fmt.Fprintf(&p.Buffer, format+"\n", args...)
}

// source is a whole program.
func (p *programmer) source() string {
	p.WriteString(programHead)
	for i := range p.functions {
		p.function(i)
	}
	p.write("func main() {\nfor k := int64(0); k < 6; k++ {")
	for i := range p.functions {
		p.write("call(k, f%d)", i)
	}
	p.write("}\n}")
	return p.String()
}

// function writes function i. All variables stand at its top, so that a goto
// never jumps over one; labels that nothing leads to are left out.
func (p *programmer) function(i int) {
	p.labels, p.used, p.loops, p.gotos = 0, map[string]bool{}, nil, nil
	p.write("\ntype s%d struct{ n int64 }", i)
	p.write("func (s s%d) area(d int, a, b int64) int64 { return f%d(d, a+s.n, b) }", i, i)
	if p.IntN(3) == 0 {
		p.write("//go:noinline")
	}
	p.write("func f%d(d int, a, b int64) (r int64) {", i)
	p.write("x, y, z, w := a, b, a^b, 1.5\n_, _, _, _ = x, y, z, w")
	p.write("if d > 8 || !burn() { return a - b }")
	if p.IntN(3) == 0 {
		p.write("defer func() { r ^= x; if e := recover(); e != nil { mix(caught(e)); r++ } }()")
	}
	sections := 2 + p.IntN(3)
	for s := range sections {
		p.gotos = append(p.gotos, fmt.Sprintf("G%d", s))
	}
	var bodies []string
	for range sections {
		bodies = append(bodies, p.apart(func() { p.statements(4) }))
	}
	for s, body := range bodies {
		if p.used[p.gotos[s]] {
			p.write("%s:", p.gotos[s])
		}
		p.write("{\n%s}", body)
	}
	p.write("mix(x + y<<1 + z<<2 + int64(w))\nreturn x ^ y ^ z\n}")
}

// apart writes into a text of its own.
func (p *programmer) apart(write func()) string {
	saved := p.Buffer
	p.Buffer = bytes.Buffer{}
	write()
	text := p.String()
	p.Buffer = saved
	return text
}

func (p *programmer) variable() string { return string("xyz"[p.IntN(3)]) }

func (p *programmer) value() string {
	switch p.IntN(8) {
	case 0:
		return fmt.Sprint(p.Int64N(9) - 2)
	case 1:
		return fmt.Sprintf("(%s*%d + 7)", p.variable(), p.IntN(100))
	case 2:
		return fmt.Sprintf("int64(uint64(%s)>>%d)", p.variable(), p.IntN(64))
	case 3:
		return fmt.Sprintf("list[%s&7]", p.variable())
	case 4:
		return "int64(w)"
	case 5:
		return fmt.Sprintf("(%s ^ %s)", p.variable(), p.variable())
	}
	return p.variable()
}

func (p *programmer) condition() string {
	comparison := []string{"<", ">", "<=", ">=", "==", "!="}[p.IntN(6)]
	simple := fmt.Sprintf("%s&15 %s %d", p.variable(), comparison, p.IntN(14))
	switch p.IntN(6) {
	case 0:
		return fmt.Sprintf("%s && %s < %s", simple, p.variable(), p.value())
	case 1:
		return fmt.Sprintf("%s || burn() && %s%%3 == 0", simple, p.variable())
	case 2:
		return fmt.Sprintf("!(%s)", simple)
	case 3:
		return fmt.Sprintf("w < %d.5", p.IntN(50))
	}
	return simple
}

func (p *programmer) statements(most int) {
	for range 1 + p.IntN(most) {
		p.statement()
	}
}

func (p *programmer) statement() {
	simple := []func(){p.assign, p.assign, p.mark, p.leave, p.fault, p.invoke}
	nested := []func(){p.branch, p.branch, p.loop, p.loop, p.choose, p.choose, p.closure, p.goroutine, p.selection}
	if p.depth >= 3 || p.IntN(5) < 2 {
		simple[p.IntN(len(simple))]()
		return
	}
	p.depth++
	nested[p.IntN(len(nested))]()
	p.depth--
}

func (p *programmer) assign() {
	switch p.IntN(5) {
	case 0:
		p.write("w = w*0.75 + float64(%s&63)", p.variable())
	case 1:
		p.write("%s %s= %s", p.variable(), []string{"+", "-", "*", "^", "&", "|"}[p.IntN(6)], p.value())
	case 2:
		p.write("x, y, z = y, z, %s", p.value())
	default:
		p.write("%s = %s", p.variable(), p.value())
	}
}

func (p *programmer) mark() {
	p.serial++
	p.write("mix(%d + %s)", p.serial, p.variable())
}

// leave writes a break, continue, goto or return, each under a condition.
func (p *programmer) leave() {
	way := p.IntN(6)
	p.write("if %s {", p.condition())
	switch {
	case way < 3 && len(p.loops) > 0:
		label := p.loops[p.IntN(len(p.loops))]
		word := []string{"break", "continue"}[p.IntN(2)]
		if label == p.loops[len(p.loops)-1] && p.switches == 0 && p.IntN(2) == 0 {
			p.write("%s", word)
		} else {
			p.used[label] = true
			p.write("%s %s", word, label)
		}
	case way == 3 && len(p.gotos) > 0:
		label := p.gotos[p.IntN(len(p.gotos))]
		p.used[label] = true
		p.write("if burn() { goto %s }", label)
	case way == 4:
		p.write("return %s", p.value())
	default:
		p.write("mix(%s)", p.value())
	}
	p.write("}")
}

// fault writes what may panic.
func (p *programmer) fault() {
	p.write([]string{
		"if x&31 == 7 { panic(y) }",
		"if y&63 == 9 { panic(errOdd) }",
		"if z&31 == 3 { var s *s0; z = s.n }",
		"if x&31 == 5 { y = x / (z & 1) }",
		"if y&31 == 6 { x = list[y&15] }",
		"if z&31 == 8 { var f func(int, int64, int64) int64; z = f(d, x, y) }",
		"if x&31 == 2 { var v any = x; y += int64(v.(int)) }",
		"if y&127 == 1 { x += int64(len(make([]byte, y&7-4))) }",
		"if z&15 == 2 { runtime.GC() }",
	}[p.IntN(9)])
}

func (p *programmer) invoke() {
	f := p.IntN(p.functions)
	switch p.IntN(4) {
	case 0:
		p.write("{\nvar s shape = s%d{%s}\n%s = s.area(d+1, x, y)\n}", f, p.value(), p.variable())
	case 1:
		p.write("%s += deep(%s & %d)", p.variable(), p.variable(), []int{7, 63, 511}[p.IntN(3)])
	default:
		p.write("%s = f%d(d+1, %s, %s)", p.variable(), f, p.value(), p.value())
	}
}

func (p *programmer) branch() {
	p.write("if %s {", p.condition())
	p.statements(2)
	for range p.IntN(3) {
		p.write("} else if %s {", p.condition())
		p.statements(2)
	}
	if p.IntN(2) == 0 {
		p.write("} else {")
		p.statements(2)
	}
	p.write("}")
}

// loop writes one of Go's loops, half of them without a call of their own.
func (p *programmer) loop() {
	p.labels++
	label := fmt.Sprintf("L%d", p.labels)
	turns := 1 + p.IntN(9)
	head := []string{
		fmt.Sprintf("for i := int64(0); i < %d && burn(); i++ {\ny += i", turns),
		fmt.Sprintf("for i := int64(%d); i > 0; i-- {\nif fuel--; fuel < 0 { break }\nx ^= i", turns),
		fmt.Sprintf("for i := range int64(%d) {\nz -= i", turns),
		"for i, v := range list {\nx += v<<i",
		"for _, c := range \"a\\u00e9\\u4e16\\U0001f600\" {\ny += int64(c)",
		fmt.Sprintf("for v := range numbers(%d) {\nz ^= v", turns),
		"for {\nif fuel--; fuel < 0 || x&7 == 1 { break }\nx++",
		"for burn() && y&3 != 0 {\ny--",
	}[p.IntN(8)]
	// Into the body of a range over a function no goto is possible, but out of it is.
	switches := p.switches
	p.loops, p.switches = append(p.loops, label), 0
	body := p.apart(func() { p.statements(3) })
	p.loops, p.switches = p.loops[:len(p.loops)-1], switches
	if p.used[label] {
		p.write("%s:", label)
	}
	p.write("%s\n%s}", head, body)
}

// choose writes a switch: on values, on conditions or on types.
func (p *programmer) choose() {
	p.switches++
	defer func() { p.switches-- }()
	if p.IntN(4) == 0 {
		p.write("switch v := []any{x, w, \"s\", errOdd, nil}[uint64(%s)%%5].(type) {", p.variable())
		for _, c := range []string{"case int64:\nx = v + 1", "case float64:\nw = v + 1", "case string:\nmix(int64(len(v)))", "case error:\nmix(int64(len(v.Error())))", "default:\nmix(3)"} {
			p.write("%s", c)
			p.statements(2)
		}
		p.write("}")
		return
	}
	conditions := p.IntN(3) == 0
	if conditions {
		p.write("switch {")
	} else {
		p.write("switch %s & 15 {", p.variable())
	}
	cases := 2 + p.IntN(9)
	fallsThrough := false
	for c := range cases {
		switch {
		case c == cases-1 && p.IntN(2) == 0:
			p.write("default:")
		case conditions:
			p.write("case %s:", p.condition())
		default:
			p.write("case %d:", c)
		}
		p.statements(2)
		if fallsThrough = p.IntN(5) == 0 && c < cases-1; fallsThrough {
			p.write("fallthrough")
		}
	}
	p.write("}")
}

// alone writes the body of a function literal, which no label around is seen in.
func (p *programmer) alone(most int) {
	loops, gotos, switches := p.loops, p.gotos, p.switches
	p.loops, p.gotos, p.switches = nil, nil, 0
	p.statements(most)
	p.loops, p.gotos, p.switches = loops, gotos, switches
}

func (p *programmer) closure() {
	deferred := p.IntN(3) == 0
	p.write("func() (r int64) {")
	if deferred {
		p.write("defer func() (r int64) {\nif e := recover(); e != nil { z += caught(e) }")
		p.alone(1)
		p.write("return\n}()")
	}
	if p.IntN(4) == 0 {
		p.write("for i := range int64(3) { defer mix(i + x) }")
	}
	p.alone(3)
	p.write("return x\n}()")
}

// goroutine writes one that talks over a channel, so that both sides unwind and
// resume. The other side only runs while this one waits.
func (p *programmer) goroutine() {
	capacity := p.IntN(2)
	p.write("{\nc := make(chan int64, %d)", capacity)
	p.write("go func() (r int64) {\ndefer close(c)\ndefer func() { c <- caught(recover()) }()")
	p.alone(2)
	if p.IntN(2) == 0 {
		p.write("runtime.Gosched()")
	}
	p.write("return x\n}()")
	if p.IntN(2) == 0 {
		p.write("for v := range c { x += v }\n}")
	} else {
		p.write("v, ok := <-c\nif ok { y += v; _, ok = <-c }\nif ok { panic(errOdd) }\n}")
	}
}

func (p *programmer) selection() {
	p.switches++
	defer func() { p.switches-- }()
	p.write("{\nc, e := make(chan int64, 1), make(chan int64)\nif x&1 == 0 { c <- y }\nselect {\ncase v := <-c:\nx ^= v")
	p.statements(2)
	p.write("case e <- z:\nmix(4)\ndefault:\nmix(5)")
	p.statements(2)
	p.write("}\n}")
}

// goProgram writes the program of a seed, has it run natively, untreated and
// treated, and demands that all three print the same.
func goProgram(t *testing.T, seed uint64, functions int, flags ...string) {
	t.Helper()
	p := programmer{Rand: rand.New(rand.NewPCG(seed, 2)), functions: functions}
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(p.source()), 0o644); err != nil {
		t.Fatal(err)
	}
	build := func(env []string, out string) string {
		path := filepath.Join(dir, out)
		goTool(t, env, append(append([]string{"build", "-o", path}, flags...), source)...)
		return path
	}
	native := exec.Command(build([]string{"GOFLAGS="}, "native"))
	var want bytes.Buffer
	native.Stderr = &want
	if err := native.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
		t.Fatalf("seed %d: the program is wrong: %v\n%s", seed, err, &want)
	}
	module, err := os.ReadFile(build(wasip1, "main.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	got := program{args: []string{"main"}}.same(t, module)
	if got.exit != 0 || got.stderr != want.String() {
		t.Errorf("seed %d, exit %d: native and wasm differ: %s", seed, got.exit, difference(want.String(), got.stderr))
	}
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	if len(lines) != 6*functions {
		t.Errorf("seed %d: %d lines of output", seed, len(lines))
	}
}

func TestGeneratedProgram(t *testing.T) {
	t.Parallel()
	goProgram(t, 1, 30)
}
