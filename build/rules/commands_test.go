package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeTestRunsEverything: what decides about a change runs `make test`, and
// that runs every package: those of e2e by one command, all others by another.
func TestMakeTestRunsEverything(t *testing.T) {
	ci, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(ci), "exec make test\n") {
		t.Error(".ci/run does not run make test")
	}
	command := exec.Command("make", "--no-print-directory", "-n", "test")
	command.Dir = root
	plan, err := command.Output()
	if err != nil {
		t.Fatalf("make -n test: %v", err)
	}
	for _, step := range []string{
		"gofmt -l filter translate harness build e2e",
		"go vet ./...",
		`$(go list ./... | grep -v '/e2e\(/\|$\)')`,
		"-count=1 -p 1 ./e2e/...",
		"FUZZTIME=10s FUZZ= build/fuzz.sh",
	} {
		if !strings.Contains(string(plan), step) {
			t.Errorf("make test does not run %s", step)
		}
	}
	if strings.Contains(string(plan), "-short") || strings.Contains(string(plan), "-run") {
		t.Error("make test leaves tests out")
	}
}

// TestFuzzing: make fuzz finds the targets by itself, ends well where nothing is found,
// and otherwise fails with the path of the input, after all targets have run.
func TestFuzzing(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(root, "build", "fuzz.sh"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module fuzzed\n\ngo 1.26\n",
		"good/good_test.go": "package good\n\nimport \"testing\"\n\n" +
			"func FuzzGood(f *testing.F) { f.Fuzz(func(t *testing.T, n int) {}) }\n",
		"bad/bad_test.go": "package bad\n\nimport \"testing\"\n\n" +
			"func FuzzBad(f *testing.F) {\n\tf.Fuzz(func(t *testing.T, text string) {\n\t\tif len(text) > 3 {\n\t\t\tt.Error(\"too long\")\n\t\t}\n\t})\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fuzz := func(filter string) (string, error) {
		command := exec.CommandContext(t.Context(), script)
		command.Dir = dir
		command.Env = append(os.Environ(), "FUZZTIME=200000x", "FUZZ="+filter)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := fuzz("Good"); err != nil || !strings.Contains(out, "FuzzGood (fuzzed/good)") || strings.Contains(out, "FuzzBad") {
		t.Errorf("a target without findings: %v\n%s", err, out)
	}
	out, err := fuzz("")
	if err == nil || !strings.Contains(out, "FuzzGood (fuzzed/good)") {
		t.Errorf("with a finding: %v\n%s", err, out)
	}
	_, path, _ := strings.Cut(out, "fuzzing found:\n  FuzzBad: ")
	if input, err := os.ReadFile(strings.TrimSpace(path)); err != nil || !strings.Contains(string(input), "string(") {
		t.Errorf("%q is not the input that was found: %v\n%s", path, err, out)
	}
	if out, err := fuzz("Missing"); err == nil {
		t.Errorf("a filter that matches nothing: %s", out)
	}
}
