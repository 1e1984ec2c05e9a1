package gateway

import "syscall"

// refuseNew lets the kernel drop what would begin a connection (TCP segments with
// SYN and without ACK), by a socket filter. Those that have begun still come, so
// that closing the listener a little later resets nobody who has sent a request;
// who comes anew tries again and then finds the port closed.
func (l *listener) refuseNew() {
	const flags, syn, ack = 13, 0x02, 0x10 // the byte of a TCP header, and two of its bits
	raw, err := l.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		//lint:ignore SA1019 it is five instructions: no reason for another module
		_ = syscall.AttachLsf(int(fd), []syscall.SockFilter{
			{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: flags},
			{Code: syscall.BPF_ALU | syscall.BPF_AND | syscall.BPF_K, K: syn | ack},
			{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: syn, Jf: 1},
			{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
			{Code: syscall.BPF_RET | syscall.BPF_K, K: 0xffff_ffff},
		})
	})
}
