//go:build heavy

// The tests that take minutes: go test -tags heavy -timeout 60m ./build/directjump

package directjump

import (
	"fmt"
	"testing"
)

func TestEncodingJSON(t *testing.T)  { standardLibrary(t, "encoding/json") }
func TestTextTemplate(t *testing.T)  { standardLibrary(t, "text/template") }
func TestCompressFlate(t *testing.T) { standardLibrary(t, "compress/flate", "-test.short") }
func TestStringsInFull(t *testing.T) { standardLibrary(t, "strings") }

// TestManyGeneratedPrograms also compiles without optimization, which lays
// functions out differently.
func TestManyGeneratedPrograms(t *testing.T) {
	for seed := range uint64(12) {
		for _, flags := range [][]string{nil, {"-gcflags=-N -l"}} {
			t.Run(fmt.Sprint(seed, flags), func(t *testing.T) {
				t.Parallel()
				goProgram(t, 100+seed, 30, flags...)
			})
		}
	}
}

func TestManyGeneratedFunctions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100_000) {
		checkGenerated(t, 1<<32+seed)
	}
}
