//go:build wasip1 && trap

package main

import (
	"strings"
	"unsafe"
)

// A module built with the tag "trap" dies when a request says so, in ways that no
// guard can catch: tests see with it what becomes of the other streams. The module
// that ships has none of this, which e2e/envoy holds it to.

// trapHeader says how: see trap.
const trapHeader = "x-ezat-trap"

// trap ends the VM in the way that the request asks for.
func trap() {
	switch how := lookup(readHeaders(uint32(RequestHeaders)), trapHeader); {
	case how == "index":
		var none []int
		none[len(how)]++
	case strings.HasPrefix(how, "text "):
		panic(how)
	case how == "memory":
		for {
			trapped = append(trapped, make([]byte, 1<<24))
		}
	case how == "stack":
		trapDepth(len(how))
	case how == "silent":
		// Far behind the end of memory: a fault of the VM's, without a word of Go's.
		*(*byte)(unsafe.Add(unsafe.Pointer(&trapped), 3<<30))++
	}
}

var trapped [][]byte

// trapDepth calls itself until there is no stack left.
//
//go:noinline
func trapDepth(n int) int { return trapDepth(n+1) + n }
