//go:build !linux

package redistest

import "syscall"

// attributes: where the kernel offers nothing of the kind, a server outlives a
// test process that is killed.
func attributes() *syscall.SysProcAttr { return nil }
