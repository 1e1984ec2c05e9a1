package redistest_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

func TestAServerPausesResumesAndStartsEmpty(t *testing.T) {
	s := redistest.Start(t, "--maxmemory", "100mb")
	s.MustDo("SET", s.Prefix+"a", "1")
	if got := s.MustDo("CONFIG", "GET", "maxmemory").([]any); got[1] != "104857600" {
		t.Errorf("maxmemory is %v: the argument was lost", got)
	}
	if _, err := s.Do("NONSENSE"); !errors.As(err, new(redistest.Error)) {
		t.Errorf("an unknown command gave %v", err)
	}
	s.Pause()
	c, err := net.Dial("tcp", s.Addr) // the kernel accepts for it
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "PING\r\n")
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if reply, err := bufio.NewReader(c).ReadString('\n'); err == nil {
		t.Errorf("a paused server answered %q", reply)
	}
	s.Resume()
	if got := s.MustDo("GET", s.Prefix+"a"); got != "1" {
		t.Errorf("after the pause: %v", got)
	}
	s.Restart()
	if got := s.MustDo("GET", s.Prefix+"a"); got != nil {
		t.Errorf("after a restart: %v", got)
	}
}

func TestServersEndWithAKilledTest(t *testing.T) {
	const word = "COMPORTA_TEST_VICTIM"
	if os.Getenv(word) != "" {
		fmt.Println("pid", redistest.StartOwn(t).PID())
		select {} // until killed
	}
	victim := exec.Command(os.Args[0], "-test.run=^TestServersEndWithAKilledTest$", "-test.v")
	victim.Env = append(os.Environ(), word+"=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if _, number, ok := strings.Cut(lines.Text(), "pid "); ok {
			pid, _ = strconv.Atoi(number)
		}
	}
	if pid == 0 {
		t.Fatal("the victim named no server")
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	redistest.Until(t, 5*time.Second, func() error {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z ") { // dead, though perhaps nobody waits for it
			return nil
		}
		return fmt.Errorf("server %d still runs: %s (%v)", pid, state, syscall.Kill(pid, 0))
	})
}

func TestAClusterMovesSlotsAndFailsOver(t *testing.T) {
	c := redistest.StartCluster(t)
	key := "{a}1"
	slot := c.Slot(key)
	from := c.Primary(slot)
	from.MustDo("SET", key, "1")
	to := c.Primary((slot + 8000) % 16384)
	finish := c.BeginMove(slot, to)
	if _, err := from.Do("GET", "{a}2"); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
		t.Errorf("a key that is not there: %v, want ASK", err)
	}
	finish()
	if got := to.MustDo("GET", key); got != "1" {
		t.Errorf("the key did not move: %v", got)
	}
	if _, err := from.Do("GET", key); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
		t.Errorf("the old primary: %v, want MOVED", err)
	}
	primary := c.Failover(slot)
	if got := primary.MustDo("GET", key); got != "1" || primary == to {
		t.Errorf("after the failover: %v from %s", got, primary.Addr)
	}
}

func TestSentinelsFailOver(t *testing.T) {
	s := redistest.StartSentinel(t)
	first := s.Primary()
	second := s.Failover()
	if first == second {
		t.Fatal("the primary is the same")
	}
	second.MustDo("SET", "a", "1")
	second.Kill()
	if third := s.AwaitFailover(second); third == second {
		t.Fatal("a dead primary is still one")
	}
}
