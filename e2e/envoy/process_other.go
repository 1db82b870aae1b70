//go:build !linux

package envoy

import "os/exec"

// dieWithParent has no counterpart here: an Envoy whose parent was killed goes on.
func dieWithParent(*exec.Cmd) {}
