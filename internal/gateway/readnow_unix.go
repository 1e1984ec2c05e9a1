//go:build unix

package gateway

import "syscall"

const canReadNow = true

// readNow reads what is there; EAGAIN if nothing is.
func readNow(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}
