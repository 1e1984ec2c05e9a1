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
	f := startFleet(t, server.URL(), server.Prefix, deadline)
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
			strike: func() { fill(server) },
			mend:   func() { server.MustDo("CONFIG", "SET", "maxmemory", "0"); server.MustDo("DEL", "filler") },
		}},
	}
	for i, x := range all {
		t.Run(x.name, func(t *testing.T) { t.Logf("%+v", f.suffer(t, i, x.failure)) })
	}
}

// fill gives a server more than its maxmemory.
func fill(server *redistest.Server) {
	server.MustDo("SET", "filler", strings.Repeat("x", 8<<20))
	server.MustDo("CONFIG", "SET", "maxmemory", "4mb")
}
