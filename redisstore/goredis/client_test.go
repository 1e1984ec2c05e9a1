package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/goredis"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

const deadline = 50 * time.Millisecond

func adapt(t *testing.T, rdb redis.UniversalClient) *goredis.Client {
	t.Helper()
	t.Cleanup(func() { rdb.Close() })
	c, err := goredis.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func single(t *testing.T, addr string) *goredis.Client {
	t.Helper()
	return adapt(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}))
}

// do asks within the deadline.
func do(c redisstore.Client, key string, args ...string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	return c.Do(ctx, key, args...)
}

// heals waits until calls with the key work.
func heals(t *testing.T, c redisstore.Client, bound time.Duration, key string) {
	t.Helper()
	redistest.Until(t, bound, func() error {
		_, err := do(c, key, "INCR", key)
		return err
	})
}

func TestClientsThatWouldNotDo(t *testing.T) {
	for name, rdb := range map[string]redis.UniversalClient{
		"not a *redis.Ring":     redis.NewRing(&redis.RingOptions{}),
		"ContextTimeoutEnabled": redis.NewClient(&redis.Options{}),
	} {
		defer rdb.Close()
		if _, err := goredis.New(rdb); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q in it", err, name)
		}
	}
}

func TestRepliesAreOfFourKinds(t *testing.T) {
	s := redistest.Start(t)
	for _, protocol := range []int{2, 3} {
		c := adapt(t, redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, Protocol: protocol}))
		for _, tc := range []struct {
			args []string
			want any
		}{
			{[]string{"SET", s.Prefix + "a", "x"}, "OK"},
			{[]string{"GET", s.Prefix + "a"}, "x"},
			{[]string{"GET", s.Prefix + "none"}, nil},
			{[]string{"STRLEN", s.Prefix + "a"}, int64(1)},
			{[]string{"EVAL", "return {1, ARGV[2], false, {}, {'b', 2.9}}", "1", s.Prefix, "x", "a\r\n\x00"}, []any{int64(1), "a\r\n\x00", nil, []any{}, []any{"b", int64(2)}}},
			{[]string{"CONFIG", "GET", "appendonly"}, []any{"appendonly", "no"}},
			{[]string{"EVALSHA", strings.Repeat("0", 40), "1", "k"}, redisstore.ServerError("NOSCRIPT No matching script.")}, // Redis adds what to do, Valkey does not
			{[]string{"GET"}, redisstore.ServerError("ERR wrong number of arguments for 'get' command")},
			{[]string{"EVAL", "return redis.error_reply('MINE is this')", "0"}, redisstore.ServerError("MINE is this")},
			{[]string{"HGET", s.Prefix + "a", "f"}, redisstore.ServerError("WRONGTYPE Operation against a key holding the wrong kind of value")},
		} {
			got, err := c.Do(t.Context(), s.Prefix, tc.args...)
			if want, ok := tc.want.(redisstore.ServerError); ok {
				if said, ok := err.(redisstore.ServerError); !ok || !strings.HasPrefix(string(said), string(want)) || got != nil {
					t.Errorf("%v: %v, %v; want %v", tc.args, got, err, want)
				}
				continue
			}
			if err != nil || !cmp.Equal(got, tc.want) {
				t.Errorf("%v: %#v, %v; want %#v", tc.args, got, err, tc.want)
			}
		}
		if _, err := c.Do(t.Context(), ""); err == nil {
			t.Error("nothing was sent")
		}
	}
}

func TestAPausedServerCostsTheDeadline(t *testing.T) {
	s := redistest.StartOwn(t)
	c := single(t, s.Addr)
	heals(t, c, time.Second, "a")
	s.Pause()
	for range 3 {
		start := time.Now()
		if _, err := do(c, "a", "INCR", "a"); err == nil {
			t.Error("a paused server answered")
		}
		if took := time.Since(start); took > deadline+100*time.Millisecond {
			t.Errorf("a call took %v", took)
		}
	}
	s.Resume()
	heals(t, c, time.Second, "a")
}

func TestACommandThatMayHaveRunIsNotSentAgain(t *testing.T) {
	s := redistest.StartOwn(t)
	proxy := redistest.StartProxy(t, s.Addr)
	c := single(t, proxy.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	proxy.Cut("INCR")
	for range 20 {
		if _, err := c.Do(ctx, "n", "INCR", "n"); err == nil {
			t.Error("the proxy let a reply through")
		}
	}
	if got := s.MustDo("GET", "n"); got != "20" {
		t.Errorf("20 commands ran %v times", got)
	}
}

// A name that leads from a server that became a replica to the new primary.
func TestAReplicaAtTheAddressIsLeft(t *testing.T) {
	old, fresh := redistest.StartOwn(t), redistest.StartOwn(t)
	proxy := redistest.StartProxy(t, old.Addr)
	c := single(t, proxy.Addr)
	heals(t, c, time.Second, "a")
	proxy.Lead(fresh.Addr)
	old.MustDo("REPLICAOF", fresh.Host, strconv.Itoa(fresh.Port))
	_, err := do(c, "a", "INCR", "a")
	if server := redisstore.ServerError(""); !errors.As(err, &server) || server.Code() != "READONLY" {
		t.Errorf("the replica replied %v", err)
	}
	heals(t, c, time.Second, "a")
}

func TestClosedIsClosed(t *testing.T) {
	s := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
	c := adapt(t, rdb)
	nodes, err := c.Nodes(t.Context())
	if err != nil || nodes[s.Addr] == nil || len(nodes) != 1 {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
	c.Close()
	if _, err := c.Do(t.Context(), "", "PING"); err == nil {
		t.Error("a closed client sent a command")
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the program's own client: %v", err)
	}
}

func TestACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	c := adapt(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ContextTimeoutEnabled: true}))
	if !c.Cluster() {
		t.Error("it does not say that it is a cluster")
	}
	for i := range 50 {
		key := fmt.Sprintf("{%d}", i)
		if _, err := c.Do(t.Context(), key, "EVAL", "return redis.call('INCR', KEYS[1])", "1", key); err != nil {
			t.Error(err)
		}
		if _, err := c.Do(t.Context(), key, "EVAL", "return 1", "0"); err != nil {
			t.Error(err)
		}
		if got, err := c.Do(t.Context(), "", "PING"); err != nil || got != "PONG" {
			t.Error(got, err)
		}
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 3 {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
	for addr, node := range nodes {
		if got, err := node.Do(t.Context(), "", "ROLE"); err != nil || got.([]any)[0] != "master" {
			t.Errorf("%s: %v, %v", addr, got, err)
		}
	}
	slot := cluster.Slot("{m}")
	finish := cluster.BeginMove(slot, cluster.Primary((slot+8000)%16384))
	for i := range 3 { // not there yet: the old primary says ASK
		if _, err := c.Do(t.Context(), "{m}", "SET", fmt.Sprintf("{m}%d", i), "1"); err != nil {
			t.Error(err)
		}
	}
	finish()
	for i := range 3 { // MOVED
		if got, err := c.Do(t.Context(), "{m}", "GET", fmt.Sprintf("{m}%d", i)); err != nil || got != "1" {
			t.Error(got, err)
		}
	}
	primary := cluster.Failover(slot)
	heals(t, c, time.Second, "{m}")
	primary.Kill()
	cluster.AwaitFailover(slot, primary)
	heals(t, c, time.Second, "{m}")
}

func TestSentinels(t *testing.T) {
	s := redistest.StartSentinel(t)
	var addrs []string
	for _, one := range s.Sentinels {
		addrs = append(addrs, one.Addr)
	}
	c := adapt(t, redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: redistest.Master, SentinelAddrs: addrs, ContextTimeoutEnabled: true,
	}))
	heals(t, c, 2*time.Second, "a")
	primary := s.Failover()
	heals(t, c, time.Second, "a")
	primary.Kill()
	s.AwaitFailover(primary)
	heals(t, c, time.Second, "a")
}
