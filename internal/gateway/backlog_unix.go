//go:build unix

package gateway

import "syscall"

// refuseNew makes the queue of connections that wait to be accepted as short as
// can be, so that closing the listener resets none that stands in it. Further
// clients try again for a second and then find the port closed.
func (l *listener) refuseNew() {
	raw, err := l.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), 0) })
}
