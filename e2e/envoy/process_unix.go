//go:build unix && !linux

package envoy

import (
	"os/exec"
	"syscall"
)

// detach puts Envoy into a process group of its own, so that an interrupt at
// the terminal reaches this program alone. When this program is killed, Envoy
// goes on: only Linux can help that.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
