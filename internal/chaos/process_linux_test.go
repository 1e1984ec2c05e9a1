package chaos

import "syscall"

// attributes make the kernel kill a program whose starter dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
