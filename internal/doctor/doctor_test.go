package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta/redisstore"
)

// alone is a client that no check of this file asks.
type alone struct{ redisstore.Client }

func (alone) Cluster() bool { return false }

func TestWhatAServerTellsOfItselfIsJudged(t *testing.T) {
	for _, c := range []struct {
		info  string // name:value pairs
		check func(*examination, info)
		level Level
		want  string
	}{
		{"redis_version:6.2.0", (*examination).version, OK, "Redis 6.2.0"},
		{"redis_version:6.0.16", (*examination).version, Fail, "too old"},
		{"redis_version:7.2.4 valkey_version:7.2.5", (*examination).version, OK, "Valkey 7.2.5"},
		{"redis_version:7.2.4 valkey_version:8.1.0", (*examination).version, OK, "Valkey 8.1.0"},
		{"redis_version:7", (*examination).version, Fail, "too old"},
		{"", (*examination).version, Fail, "too old"},

		{"maxmemory:0 maxmemory_policy:noeviction", (*examination).memory, Warn, "ended by the system"},
		{"maxmemory:0 maxmemory_policy:allkeys-lru", (*examination).memory, Warn, "allkeys-lru would drop"},
		{"maxmemory:1000000 maxmemory_policy:allkeys-lru", (*examination).memory, Fail, "drops counts that are live"},
		{"maxmemory:1000000 maxmemory_policy:volatile-lru", (*examination).memory, Fail, "drops counts that are live"},
		{"maxmemory:1000000 maxmemory_policy:volatile-ttl", (*examination).memory, Warn, "soonest to expire"},
		{"maxmemory:1000000 used_memory:900000 maxmemory_policy:noeviction", (*examination).memory, Warn, "879 KiB of 977 KiB"},
		{"maxmemory:1000000 used_memory:100000 maxmemory_policy:noeviction", (*examination).memory, OK, "98 KiB of 977 KiB"},

		{"loading:1", (*examination).persistence, Warn, "reads its data"},
		{"rdb_last_bgsave_status:err aof_enabled:1 appendfsync:always", (*examination).persistence, Fail, "takes no writes"},
		{"aof_last_write_status:err aof_enabled:1 appendfsync:always", (*examination).persistence, Fail, "takes no writes"},
		{"aof_enabled:1 appendfsync:always", (*examination).persistence, OK, "loses nothing"},
		{"aof_enabled:1 appendfsync:everysec", (*examination).persistence, OK, "a second of counts"},
		{"aof_enabled:1 appendfsync:no", (*examination).persistence, Warn, "half a minute"},
		{"aof_enabled:1", (*examination).persistence, OK, "may not see"},
		{"aof_enabled:0", (*examination).persistence, Warn, "may not see"},
		{"aof_enabled:0 save:", (*examination).persistence, Warn, "nothing is kept"},
		{"aof_enabled:0 save:3600", (*examination).persistence, Warn, "snapshots alone (save 3600)"},

		{"role:slave", (*examination).replication, Fail, "a replica, which takes no writes"},
		{"role:master connected_slaves:0", (*examination).replication, OK, "no replica"},
		{"role:master connected_slaves:2 min-replicas-to-write:0", (*examination).replication, OK, "2 replicas; a failover loses"},
		{"role:master connected_slaves:1 min-replicas-to-write:1", (*examination).replication, OK, "a write needs 1"},

		{"latest_fork_usec:25001", (*examination).fork, Warn, "25 ms; requests wait 50ms"},
		{"latest_fork_usec:310", (*examination).fork, OK, "0.31 ms"},
	} {
		e := &examination{Options: Options{Client: alone{}, Address: &redisstore.Address{}, Timeout: 50 * time.Millisecond}}
		i := parseInfo("# A section\r\n" + strings.ReplaceAll(c.info, " ", "\r\n"))
		c.check(e, i)
		if len(e.findings) == 0 {
			t.Errorf("%s: nothing was found", c.info)
			continue
		}
		if f := e.findings[0]; f.Level != c.level || !strings.Contains(f.Text, c.want) || (f.Do == "") != (f.Level == OK) {
			t.Errorf("%s: %+v", c.info, f)
		}
	}
}

func TestNoReplicaIsWarnedOfWhereOneIsMeant(t *testing.T) {
	e := &examination{Options: Options{Client: alone{}, Address: &redisstore.Address{Kind: redisstore.Sentinel, Master: "main"}}}
	e.replication(info{"role": "master"})
	if f := e.findings[0]; f.Level != Warn || !strings.Contains(f.Text, "nothing takes over") {
		t.Errorf("got %+v", f)
	}
}

func TestWhoCanListenIsSaid(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"redis://127.0.0.1", "ok encryption"},
		{"redis://[::1]", "ok encryption"},
		{"unix:///run/redis.sock", "ok encryption"},
		{"redis://:p@10.0.0.1", "warn encryption"},
		{"redis://redis.internal", "warn encryption, warn password"},
		{"rediss://10.0.0.1", "ok encryption, warn password"},
		{"redis-cluster://:p@127.0.0.1,10.0.0.1", "warn encryption"},
	} {
		a, err := redisstore.ParseAddress(c.url)
		if err != nil {
			t.Fatal(err)
		}
		e := &examination{Options: Options{Address: a}}
		e.transport()
		var got []string
		for _, f := range e.findings {
			got = append(got, f.Level.String()+" "+f.Check)
		}
		if said := strings.Join(got, ", "); said != c.want {
			t.Errorf("%s: %s, want %s", c.url, said, c.want)
		}
	}
}

func TestAPatternFindsThePrefixAlone(t *testing.T) {
	if got := escaped(`a*b?[c]\`); got != `a\*b\?\[c\]\\` {
		t.Errorf("got %s", got)
	}
}
