//go:build !unix

package gateway

import "syscall"

const canReadNow = false

func readNow(uintptr, []byte) (int, error) { return 0, syscall.EINVAL }
