package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/comporta/comporta/internal/redistest"
)

// sentinelFails are failures of a primary with replicas and sentinels.
func sentinelFails(t *testing.T, r *report) {
	s := redistest.StartSentinel(t)
	f := startFleet(t, s.URL(), "chaos", deadline)
	primary, killed := s.Primary(), false
	r.suffer(t, f, []failure{
		{
			name: "replicas hang, `min-replicas-to-write 1`", bound: kept, most: limit + members*share, down: true,
			strike: func() {
				primary.MustDo("CONFIG", "SET", "min-replicas-to-write", "1")
				primary.MustDo("CONFIG", "SET", "min-replicas-max-lag", "1")
				for _, replica := range s.Servers[1:] {
					replica.Pause()
				}
				redistest.Until(t, patient, func() error { return replicated(primary, "0") })
			},
			mend: func() {
				for _, replica := range s.Servers[1:] {
					replica.Resume()
				}
				redistest.Until(t, patient, func() error { return replicated(primary, "2") })
			},
		},
		{
			name: "primary killed, Sentinel promotes a replica", bound: trailing, most: limit + members*share, down: true, trails: true,
			aim: func(string) {
				if killed { // once more
					primary.Restart()
					primary = s.Primary()
				}
				primary.MustDo("CONFIG", "SET", "min-replicas-to-write", "0")
				redistest.Until(t, 4*patient, func() error { return fit(s) })
			},
			strike: func() {
				follow(t, primary, s.Servers)
				primary.Kill()
				killed = true
			},
			mend: func() { s.AwaitFailover(primary) },
		},
	})
}

// replicated says whether a primary finds so many replicas near enough.
func replicated(primary *redistest.Server, want string) error {
	if got := field(primary, "min_slaves_good_slaves"); got != want {
		return fmt.Errorf("it finds %s replicas near, not %s", got, want)
	}
	return nil
}

// fit says whether the sentinels would promote a replica.
func fit(s *redistest.Sentinels) error {
	for _, one := range s.Sentinels {
		for _, replica := range one.MustDo("SENTINEL", "REPLICAS", redistest.Master).([]any) {
			fields := replica.([]any)
			if at := slices.Index(fields, any("flags")); fields[at+1] != "slave" {
				return fmt.Errorf("%s finds a replica %v", one.Addr, fields[at+1])
			}
		}
	}
	return nil
}

// follow waits until its replicas have what a primary holds now.
func follow(t *testing.T, primary *redistest.Server, replicas []*redistest.Server) {
	t.Helper()
	var sent int
	if _, err := fmt.Sscan(field(primary, "master_repl_offset"), &sent); err != nil {
		t.Fatal(err)
	}
	for _, one := range replicas {
		if one == primary {
			continue
		}
		redistest.Until(t, patient, func() error {
			var received int
			if _, err := fmt.Sscan(field(one, "slave_repl_offset"), &received); err != nil || received < sent {
				return fmt.Errorf("%s has received %d of %d bytes (%v)", one.Addr, received, sent, err)
			}
			return nil
		})
	}
}

// field is one of INFO replication.
func field(server *redistest.Server, name string) string {
	for line := range strings.SplitSeq(server.MustDo("INFO", "replication").(string), "\r\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return value
		}
	}
	return ""
}
