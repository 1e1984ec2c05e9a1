package redistest

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// loopback is where all servers listen.
const loopback = "127.0.0.1"

// program is the server's path.
func program(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("COMPORTA_REDIS_SERVER"); path != "" {
		return path
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("redistest: neither redis-server nor valkey-server is on the PATH: run scripts/tools.sh as root, which installs it with apt, or name the program in COMPORTA_REDIS_SERVER")
	return ""
}

// A process is one life of a server.
type process struct {
	*os.Process
	ended chan struct{} // closed when it has ended and was waited for
}

// run starts a program that writes into log. One goroutine, with a thread of its
// own, starts it and waits for it: the kernel's promise to kill the program is
// bound to the life of the thread that started it.
func run(log *os.File, path string, args ...string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	p := &process{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.Process = cmd.Process
		started <- err
		if err == nil {
			_ = cmd.Wait() // killed, as a rule
			close(p.ended)
		}
	}()
	return p, <-started
}

// kill ends it, paused or not, and waits until it is gone.
func (p *process) kill() {
	_ = p.Signal(syscall.SIGKILL) // an error means that it has ended
	<-p.ended
}
