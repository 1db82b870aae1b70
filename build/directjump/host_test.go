package directjump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// compiles has an engine validate a module.
func compiles(t *testing.T, module []byte) {
	t.Helper()
	if err := validate(module); err != nil {
		t.Error(err)
	}
}

func validate(module []byte) error {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		return errors.Join(err, r.Close(ctx))
	}
	return errors.Join(compiled.Close(ctx), r.Close(ctx))
}

// goTool runs the go command and returns what it printed.
func goTool(t *testing.T, env []string, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

var wasip1 = []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS="}

// program is a wasip1 command and what it is started with.
type program struct {
	args  []string
	dir   string // its working directory, which it may read
	above string // a directory above dir, which it may read, too; empty for dir
}

// outcome is all that a program did that can be seen from outside.
type outcome struct {
	stdout, stderr string
	exit           uint32
}

// run runs a module. Clocks and random numbers are wazero's own, which are the
// same in each run, so two runs of one program give the same output to the byte,
// durations included.
func (p program) run(t *testing.T, module []byte) outcome {
	t.Helper()
	ctx := experimental.WithCompilationWorkers(context.Background(), 2)
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	defer func() {
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	config := wazero.NewModuleConfig().WithStdout(&stdout).WithStderr(&stderr).WithArgs(p.args...)
	if p.dir != "" {
		above := p.above
		if above == "" {
			above = p.dir
		}
		config = config.WithEnv("PWD", p.dir).WithFSConfig(wazero.NewFSConfig().
			WithReadOnlyDirMount(above, above).WithDirMount(t.TempDir(), "/tmp"))
	}
	_, err = r.InstantiateModule(ctx, compiled, config)
	var exit *sys.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	result := outcome{stdout: stdout.String(), stderr: stderr.String()}
	if exit != nil {
		result.exit = exit.ExitCode()
	}
	return result
}

// same runs a module as it is and treated, demands equal outcomes, and returns
// the outcome. The module must be one of Go's linker.
func (p program) same(t *testing.T, module []byte) outcome {
	t.Helper()
	treated, stats, err := Treat(module)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(stats)
	// What Go 1.26 makes is known: a new release that changes it must not pass
	// unseen, even if nothing breaks.
	switch {
	case stats.Direct*100 < stats.Jumps*80:
		t.Errorf("fewer than 80 %% of the jumps are direct")
	case stats.Dispatching*100 < stats.Functions*90:
		t.Errorf("fewer than 90 %% of the functions dispatch")
	case stats.Kept > 0:
		t.Errorf("%d jumps had to store PC_B", stats.Kept)
	case stats.BytesOut >= stats.BytesIn:
		t.Errorf("the module has grown")
	}
	before, after := p.run(t, module), p.run(t, treated)
	if before != after {
		t.Errorf("exit %d became %d\nstdout: %s\nstderr: %s", before.exit, after.exit,
			difference(before.stdout, after.stdout), difference(before.stderr, after.stderr))
	}
	return before
}

// difference shows the first line in which two texts differ.
func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(as), len(bs)) {
		x, y := "(nothing)", "(nothing)"
		if i < len(as) {
			x = as[i]
		}
		if i < len(bs) {
			y = bs[i]
		}
		if x != y {
			return fmt.Sprintf("line %d: %q became %q", i+1, x, y)
		}
	}
	return "the same"
}

// standardLibrary runs the tests of a package of the standard library, compiled
// to WebAssembly, untreated and treated.
func standardLibrary(t *testing.T, path string, args ...string) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "test.wasm")
	goTool(t, wasip1, "test", "-c", "-o", binary, path)
	module, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	goroot := goTool(t, nil, "env", "GOROOT")
	p := program{
		args:  append([]string{"test", "-test.v"}, args...),
		dir:   filepath.Join(goroot, "src", filepath.FromSlash(path)),
		above: goroot,
	}
	got := p.same(t, module)
	if got.exit != 0 || !strings.HasSuffix(got.stdout, "\nPASS\n") || strings.Count(got.stdout, "\n--- PASS") < 5 {
		t.Errorf("exit %d: %s%s", got.exit, got.stdout, got.stderr)
	}
}
