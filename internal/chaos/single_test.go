package chaos

import (
	"strconv"
	"strings"
	"testing"

	"github.com/comporta/comporta/internal/redistest"
)

func TestSingle(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	other := redistest.Start(t, "--maxmemory-policy", "noeviction")
	f := startFleet(t, server.URL(), server.Prefix)
	all := []struct {
		name string
		failure
	}{
		{"paused", failure{most: limit + members*share, down: true, strike: server.Pause, mend: server.Resume}},
		{"killed", failure{most: 2*limit + members*share, down: true, lost: true, strike: server.Kill, mend: server.Restart}},
		{"read-only", failure{most: 2*limit + members*share, down: true, lost: true,
			strike: func() { server.MustDo("REPLICAOF", other.Host, strconv.Itoa(other.Port)) },
			mend:   func() { server.MustDo("REPLICAOF", "NO", "ONE") },
		}},
		{"script flush", failure{most: limit, strike: func() { server.MustDo("SCRIPT", "FLUSH") }, mend: func() {}}},
		{"full", failure{most: limit + members*share, down: true,
			strike: func() { fill(t, server) },
			mend:   func() { server.MustDo("CONFIG", "SET", "maxmemory", "0"); server.MustDo("DEL", "filler") },
		}},
	}
	for i, x := range all {
		t.Run(x.name, func(t *testing.T) { t.Logf("%+v", f.suffer(t, i, x.failure)) })
	}
}

// fill fills a server up to its maxmemory.
func fill(t *testing.T, server *redistest.Server) {
	t.Helper()
	server.MustDo("CONFIG", "SET", "maxmemory", "16mb")
	for {
		if _, err := server.Do("APPEND", "filler", strings.Repeat("x", 1<<18)); err != nil {
			if !strings.HasPrefix(err.Error(), "OOM") {
				t.Fatal(err)
			}
			return
		}
	}
}
