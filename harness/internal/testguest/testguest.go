// Package testguest builds the guests that the harness is tested with.
package testguest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build compiles the guest in the folder name below this one with the standard
// Go toolchain, as the product's module is built, and returns the path of the
// file that it wrote into dir. It must run inside the module's tree. The tag
// abi021 makes the script guest one of ABI 0.2.1.
func Build(dir, name string, tags ...string) (string, error) {
	out := filepath.Join(dir, strings.Join(append(tags, name+".wasm"), "-"))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-buildmode=c-shared", "-o", out,
		"-tags", strings.Join(tags, ","),
		"ezat.io/chat-completions/harness/internal/testguest/"+name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWASM=", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", name, err, text)
	}
	return out, nil
}
