package chaos

import (
	"strconv"
	"strings"
	"testing"

	"github.com/comporta/comporta/internal/redistest"
)

// What a client may get of its limit where it is asked by all gateways.
const (
	exactly  = "limit"
	kept     = "limit + 5 · ⌈limit / 5⌉"
	emptied  = "2 · limit + 5 · ⌈limit / 5⌉"
	trailing = "limit + 5 · ⌈limit / 5⌉ + what no replica had received"
)

// singleFails are failures of one server.
func singleFails(t *testing.T, r *report) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	other := redistest.Start(t, "--maxmemory-policy", "noeviction")
	f := startFleet(t, server.URL(), server.Prefix, deadline)
	r.suffer(t, f, []failure{
		{
			name: "Redis hangs (SIGSTOP) under 4,000 requests, and goes on", bound: kept, most: limit + members*share, down: true,
			strike: server.Pause, during: func() { f.burst(50, 400, same(aside, "198.51.100.1")) }, mend: server.Resume,
		},
		{name: "killed, started again empty", bound: emptied, most: 2*limit + members*share, down: true, lost: true, strike: server.Kill, mend: server.Restart},
		{
			name: "made a replica of an empty server, and a primary again", bound: emptied, most: 2*limit + members*share, down: true, lost: true,
			strike: func() { server.MustDo("REPLICAOF", other.Host, strconv.Itoa(other.Port)) },
			mend:   func() { server.MustDo("REPLICAOF", "NO", "ONE") },
		},
		{
			name: "SCRIPT FLUSH, ten times", bound: exactly, most: limit,
			strike: func() {}, during: func() { server.MustDo("SCRIPT", "FLUSH") }, mend: func() {},
		},
		{
			name: "maxmemory reached, noeviction", bound: kept, most: limit + members*share, down: true,
			strike: func() { fill(server) },
			mend:   func() { server.MustDo("CONFIG", "SET", "maxmemory", "0"); server.MustDo("DEL", "filler") },
		},
	})
}

// fill gives a server more than its maxmemory.
func fill(server *redistest.Server) {
	server.MustDo("SET", "filler", strings.Repeat("x", 8<<20))
	server.MustDo("CONFIG", "SET", "maxmemory", "4mb")
}
