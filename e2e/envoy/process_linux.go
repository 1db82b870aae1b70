package envoy

import (
	"os/exec"
	"syscall"
)

// detach puts Envoy into a process group of its own, so that an interrupt at
// the terminal reaches this program alone, and lets it end when this program
// does, however it ends. The kernel ties the latter to the thread that starts
// the process, which has to stay.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
