package redistest

import "syscall"

// attributes make the kernel kill a server whose starter dies. The starter is an
// operating system's thread: see run.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
