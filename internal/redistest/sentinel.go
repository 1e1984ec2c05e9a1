package redistest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Master is the name under which sentinels know the primary.
const Master = "comporta"

// Sentinels are three sentinels that watch a primary with two replicas.
type Sentinels struct {
	Servers   []*Server // the first began as primary
	Sentinels []*Server

	t testing.TB
}

// StartSentinel starts a primary, two replicas and three sentinels of which two
// must agree, with more arguments for the first three, and waits until all know
// all. A server is taken for dead after half a second.
func StartSentinel(t testing.TB, args ...string) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t}
	primary := StartOwn(t, args...)
	s.Servers = []*Server{primary}
	follow := slices.Concat([]string{"--replicaof", primary.Host + " " + strconv.Itoa(primary.Port)}, args)
	for range 2 {
		s.Servers = append(s.Servers, StartOwn(t, follow...))
	}
	for _, replica := range s.Servers[1:] {
		Until(t, 2*patience, func() error { return follows(replica) })
	}
	for range 3 {
		s.Sentinels = append(s.Sentinels, s.startSentinel(primary))
	}
	s.awaitHealth()
	return s
}

func (s *Sentinels) startSentinel(primary *Server) *Server {
	s.t.Helper()
	// A sentinel keeps what it learns in its configuration, which must be a file.
	name := filepath.Join(s.t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf(`bind %[1]s
sentinel monitor %[2]s %[1]s %[3]d 2
sentinel down-after-milliseconds %[2]s 500
sentinel failover-timeout %[2]s 3000
`, loopback, Master, primary.Port)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	one := begin(s.t, func(port int) []string {
		return []string{name, "--sentinel", "--port", strconv.Itoa(port)}
	})
	// While a primary is down they ask replicas for INFO each second, and promote none
	// whose last is older than five PING periods.
	hasten(one, "INFO-PERIOD", "100", "PING-PERIOD", "250", "ASK-PERIOD", "100", "PUBLISH-PERIOD", "100")
	return one
}

// hasten sets periods in milliseconds. A sentinel of an old version refuses: the
// tests then wait longer.
func hasten(sentinel *Server, periods ...string) {
	_, _ = sentinel.Do(append([]string{"SENTINEL", "DEBUG"}, periods...)...)
}

// follows says whether a replica is linked to its primary.
func follows(replica *Server) error {
	role, err := replica.Do("ROLE")
	if err != nil {
		return err
	}
	if state := role.([]any); state[0] != "slave" || state[3] != "connected" {
		return fmt.Errorf("%s does not follow its primary: %v", replica.Addr, state)
	}
	return nil
}

// awaitHealth waits until every sentinel knows the others and both replicas.
func (s *Sentinels) awaitHealth() {
	s.t.Helper()
	for _, one := range s.Sentinels {
		Until(s.t, 3*patience, func() error {
			info, err := one.Do("INFO", "sentinel")
			if err != nil {
				return err
			}
			if want := "status=ok,address=" + s.Servers[0].Addr + ",slaves=2,sentinels=3"; !strings.Contains(info.(string), want) {
				return fmt.Errorf("%s: no %s in:\n%s", one.Addr, want, info)
			}
			return nil
		})
	}
	// They have met. From here on the usual period: after four of them they make a
	// new primary a replica again, of which the one that promoted it hears within
	// a second.
	for _, one := range s.Sentinels {
		hasten(one, "PUBLISH-PERIOD", "2000")
	}
}

// URL is its address as a policy writes it.
func (s *Sentinels) URL() string {
	var all []string
	for _, one := range s.Sentinels {
		all = append(all, one.Addr)
	}
	return "redis-sentinel://" + strings.Join(all, ",") + "/" + Master
}

// Primary is the primary that the first sentinel names.
func (s *Sentinels) Primary() *Server {
	s.t.Helper()
	reply := s.Sentinels[0].MustDo("SENTINEL", "GET-MASTER-ADDR-BY-NAME", Master).([]any)
	i := slices.IndexFunc(s.Servers, func(one *Server) bool { return strconv.Itoa(one.Port) == reply[1] })
	return s.Servers[i]
}

// Failover makes a replica the primary, and waits until all sentinels say so and
// the old primary, if it runs, follows it. It returns the new primary. Where the
// old one was killed or paused before, the sentinels may have begun already.
func (s *Sentinels) Failover() *Server {
	s.t.Helper()
	old := s.Primary()
	return s.awaitFailover(old, func() {
		_, _ = s.Sentinels[0].Do("SENTINEL", "FAILOVER", Master) // refused while one goes on, or no replica is fit yet
	})
}

// AwaitFailover waits until the sentinels have replaced a primary that was killed
// or paused. It returns the new one.
func (s *Sentinels) AwaitFailover(old *Server) *Server {
	s.t.Helper()
	return s.awaitFailover(old, func() {})
}

func (s *Sentinels) awaitFailover(old *Server, push func()) *Server {
	s.t.Helper()
	var primary *Server
	// On a busy machine the sentinels may miss each other's votes, and vote again
	// after twice the failover-timeout.
	Until(s.t, 12*patience, func() error {
		if primary = s.Primary(); primary == old {
			push()
			return errors.New("the sentinels keep their primary")
		}
		for _, one := range s.Sentinels {
			reply, err := one.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", Master)
			if err != nil {
				return err
			}
			if reply.([]any)[1] != strconv.Itoa(primary.Port) {
				return fmt.Errorf("%s names another primary", one.Addr)
			}
		}
		if old.up.Load() {
			return follows(old)
		}
		return nil
	})
	return primary
}
