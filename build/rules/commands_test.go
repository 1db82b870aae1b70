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
	} {
		if !strings.Contains(string(plan), step) {
			t.Errorf("make test does not run %s", step)
		}
	}
	if strings.Contains(string(plan), "-short") || strings.Contains(string(plan), "-run") {
		t.Error("make test leaves tests out")
	}
}
