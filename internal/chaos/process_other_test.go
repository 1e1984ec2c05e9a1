//go:build !linux

package chaos

import "syscall"

// attributes: where the kernel offers nothing of the kind, a program outlives a
// test process that is killed.
func attributes() *syscall.SysProcAttr { return nil }
