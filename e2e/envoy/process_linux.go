package envoy

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets Envoy end when this program does, however it ends. The
// kernel ties it to the thread that starts the process, which has to stay.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
