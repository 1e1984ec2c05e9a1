package chaos

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// launch starts a program that ends with the test, or with its process if that is
// killed: one goroutine with a thread of its own starts it and waits for it, since
// the kernel ends it with the thread that started it. What it writes goes into files.
func launch(t testing.TB, out, errs, path string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(path, args...)
	// Without this, a collector that waits for its heap to grow looks like a leak.
	cmd.Env = append(os.Environ(), "GOGC=100")
	cmd.SysProcAttr = attributes()
	for name, to := range map[string]*io.Writer{out: &cmd.Stdout, errs: &cmd.Stderr} {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		*to = f
	}
	p := &process{errs: errs, ended: make(chan struct{})}
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
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// A process is a program that runs.
type process struct {
	*os.Process
	errs  string // the file of what it writes to its standard error
	ended chan struct{}
}

func (p *process) kill() {
	_ = p.Kill() // an error means that it has ended
	<-p.ended
}

// told is what it wrote to its standard error.
func (p *process) told(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(p.errs)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// find is the path of a program that an administrator may have on another PATH.
func find(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path := filepath.Join("/usr/sbin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: run scripts/tools.sh as root, which installs it with apt", name)
	}
	return path
}
