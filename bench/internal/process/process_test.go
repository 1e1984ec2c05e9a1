package process

import (
	"os"
	"testing"
	"time"
)

func TestReadStatOfThisProcess(t *testing.T) {
	s, err := readStat("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if s.pid != os.Getpid() || s.parent != os.Getppid() || s.cpu < 0 || s.cpu > time.Hour {
		t.Errorf("%+v of process %d under %d", s, os.Getpid(), os.Getppid())
	}
}
