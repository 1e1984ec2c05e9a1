// Package process starts the programs that a benchmark measures, and stops them.
package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Process is a program that this one started and will stop.
type Process struct {
	name   string
	cmd    *exec.Cmd
	log    string // its file of complaints
	exited chan struct{}
}

// Start starts a program that listens on the port, and waits until it does.
func Start(name, dir, port, program string, args ...string) (*Process, error) {
	log := filepath.Join(dir, name+".log")
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &Process{name: name, cmd: exec.Command(program, args...), log: log, exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stderr = dir, f // standard output, where access logs go, is dropped
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	if err := p.await(port); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// await waits until the process accepts connections.
func (p *Process) await(port string) error {
	deadline := time.After(10 * time.Second)
	for {
		if c, err := net.Dial("tcp", Address(port)); err == nil {
			return c.Close()
		}
		select {
		case <-p.exited:
			said, _ := os.ReadFile(p.log)
			return fmt.Errorf("%s ended at once: %s", p.name, strings.TrimSpace(string(said)))
		case <-deadline:
			return fmt.Errorf("%s does not listen on %s", p.name, Address(port))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the process, and kills it when it will not end.
func (p *Process) Stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(3 * time.Second):
		p.cmd.Process.Kill()
		<-p.exited
	}
}

// clockTick is the unit of CPU times under /proc: USER_HZ, 100 a second on Linux
// whatever the kernel's own.
const clockTick = 10 * time.Millisecond

// CPU is what the process and its children have spent on processors so far.
func (p *Process) CPU() (time.Duration, error) {
	pids, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	total, found := time.Duration(0), false
	for _, path := range pids {
		s, err := readStat(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		if s.pid == p.cmd.Process.Pid || s.parent == p.cmd.Process.Pid {
			total, found = total+s.cpu, true
		}
	}
	if !found {
		return 0, fmt.Errorf("%s has ended", p.name)
	}
	return total, nil
}

// OwnCPU is what this process has spent on processors so far.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type stat struct {
	pid, parent int
	cpu         time.Duration // in user mode and in the kernel
}

// readStat reads a file of proc_pid_stat(5): fields 1, 4, 14 and 15. The second,
// a name in brackets, may hold anything.
func readStat(path string) (s stat, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	pid, rest, ok := strings.Cut(string(text), " (")
	fields := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
	if !ok || len(fields) < 13 {
		return s, fmt.Errorf("%s is not understood", path)
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	s.cpu = time.Duration(user+system) * clockTick
	var err3, err4 error
	s.pid, err3 = strconv.Atoi(pid)
	s.parent, err4 = strconv.Atoi(fields[1])
	return s, errors.Join(err1, err2, err3, err4)
}

// FreePort is a port of the loopback address that nobody listens on now.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", Address("0"))
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// Address is the port at the loopback address.
func Address(port string) string { return net.JoinHostPort("127.0.0.1", port) }
