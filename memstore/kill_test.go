package memstore_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
)

const killedFile = "COMPORTA_TEST_KILLED_FILE"

// A process that is killed loses what it counted in the last second at most, of
// every algorithm, and the next goes on from there: three times over.
func TestAKilledProcessLosesASecondAtMost(t *testing.T) {
	if path := os.Getenv(killedFile); path != "" {
		takeUntilKilled(t, path)
		return
	}
	if testing.Short() {
		t.Skip("it takes some seconds of a real process")
	}
	path := filepath.Join(t.TempDir(), "comporta.state")
	kept := make(map[comporta.Algorithm]int64)
	late := 0 // rounds in which a machine that is busy with other tests wrote too late
	for round := range 3 {
		sure, most := killAfter(t, path, 1500*time.Millisecond)
		s := open(t, memstore.Options{Save: path})
		lost := false
		for _, r := range longRules(t) {
			before := kept[r.Algorithm()]
			kept[r.Algorithm()] = r.Full() - take(t, s, r, "saved", r.Algorithm().String(), 0).Remaining
			more := kept[r.Algorithm()] - before
			if lost = lost || more < sure; more < sure || more > most {
				t.Logf("round %d: %v: %d units are kept; %d were taken a second before the kill, %d in all", round, r.Algorithm(), more, sure, most)
			}
			if more > most {
				t.Errorf("round %d: %v: more is kept than was taken", round, r.Algorithm())
			}
		}
		if lost {
			late++
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if late > 1 {
		t.Errorf("%d of 3 rounds lost more than a second", late)
	}
	if left, _ := filepath.Glob(path + "?*"); len(left) != 1 { // the lock file
		t.Errorf("it leaves behind %v", left)
	}
}

// killAfter runs a process that takes, kills it, and is how much of each limit
// it had taken a second before, and at the end.
func killAfter(t *testing.T, path string, after time.Duration) (sure, most int64) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), killedFile+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	type heard struct {
		at    time.Time
		units int64
	}
	var all []heard
	var end time.Time
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			t.Fatalf("it says %q", lines.Text())
		}
		all = append(all, heard{time.Now(), n})
		if end.IsZero() && all[len(all)-1].at.Sub(all[0].at) > after {
			end = time.Now()
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	child.Wait()
	if end.IsZero() {
		t.Fatal("it ended by itself")
	}
	for _, h := range all {
		if end.Sub(h.at) > time.Second {
			sure = h.units
		}
	}
	return sure, all[len(all)-1].units + 1 // one may have been taken and not told
}

// takeUntilKilled takes a unit of each limit, again and again, and tells how many.
func takeUntilKilled(t *testing.T, path string) {
	s, err := memstore.New(memstore.Options{Save: path})
	if err != nil {
		t.Fatal(err)
	}
	rules := longRules(t)
	for n := 1; ; n++ {
		for _, r := range rules {
			take(t, s, r, "saved", r.Algorithm().String(), 1)
		}
		fmt.Println(n)
	}
}

// longRules are a limit of each algorithm that gives nothing back meanwhile.
func longRules(t *testing.T) (rules []*comporta.Rule) {
	for _, a := range comporta.Algorithms() {
		rules = append(rules, compile(t, "1000000/9000h", a))
	}
	return rules
}
