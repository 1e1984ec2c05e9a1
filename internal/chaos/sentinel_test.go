package chaos

import (
	"fmt"
	"strings"
	"testing"

	"github.com/comporta/comporta/internal/redistest"
)

// sentinelFails is a failover that sentinels decide on.
func sentinelFails(t *testing.T, r *report) {
	s := redistest.StartSentinel(t)
	f := startFleet(t, s.URL(), "chaos", deadline)
	old := s.Primary()
	r.suffer(t, f, []failure{{
		name: "primary killed, Sentinel promotes a replica", bound: trailing, most: limit + members*share, down: true, trails: true,
		strike: func() { follow(t, old, s.Servers); old.Kill() },
		mend:   func() { s.AwaitFailover(old) },
	}})
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
