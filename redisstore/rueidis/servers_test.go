package rueidis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
)

func TestACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	c := open(t, cluster.URL())
	if !c.Cluster() {
		t.Error("it does not say that it is a cluster")
	}
	t.Run("a call goes where its key lives", func(t *testing.T) {
		for i := range 50 {
			key := fmt.Sprintf("{%d}", i)
			if _, err := c.Do(t.Context(), key, "EVAL", "return redis.call('INCR', KEYS[1])", "1", key+"n"); err != nil {
				t.Error(err)
			}
			if _, err := c.Do(t.Context(), "", "PING"); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("keys of two slots are an error of the server", func(t *testing.T) {
		_, err := c.Do(t.Context(), "{a}", "EVAL", "return 1", "2", "{a}", "{b}")
		if server, ok := err.(redisstore.ServerError); !ok || server.Code() != "CROSSSLOT" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("each primary can be asked by itself", func(t *testing.T) {
		nodes, err := c.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, server := range cluster.Nodes {
			node := nodes[server.Addr]
			if (node != nil) != (i < 3) {
				t.Errorf("node %d: %v", i, node)
			} else if node != nil {
				if _, err := node.Do(t.Context(), "", "SET", fmt.Sprintf("{%d}x", i), "1"); err != nil && err.(redisstore.ServerError).Code() != "MOVED" {
					t.Error(err)
				}
			}
		}
		if len(nodes) != 3 {
			t.Errorf("%d nodes", len(nodes))
		}
	})
	t.Run("a slot that moves is followed", func(t *testing.T) {
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
	})
	t.Run("one that hangs holds up nobody else", func(t *testing.T) {
		hangs := cluster.Primary(cluster.Slot("{a}"))
		hangs.Pause()
		for i, replica := range cluster.Nodes[3:] { // no failover
			if cluster.Nodes[i] == hangs {
				replica.Pause()
				defer replica.Resume()
			}
		}
		defer hangs.Resume()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		start := time.Now()
		if _, err := c.Do(ctx, "{a}", "GET", "{a}"); err == nil {
			t.Error("a paused server answered")
		}
		if took := time.Since(start); took > deadline+100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("a failover is followed", func(t *testing.T) {
		cluster.AwaitHealth()
		heals(t, c, 2*time.Second, "{f}")
		slot := cluster.Slot("{f}")
		primary := cluster.Failover(slot)
		t.Logf("asked for: healed %v after", heals(t, c, time.Second, "{f}"))
		primary.Kill()
		cluster.AwaitFailover(slot, primary)
		t.Logf("after a crash: healed %v after", heals(t, c, time.Second, "{f}"))
	})
}

func TestSentinels(t *testing.T) {
	s := redistest.StartSentinel(t)
	c := open(t, s.URL())
	heals(t, c, 2*time.Second, "a")
	nodes, err := c.Nodes(t.Context())
	if node := nodes[s.Primary().Addr]; err != nil || len(nodes) != 1 || node == nil {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
	primary := s.Failover()
	t.Logf("asked for: healed %v after", heals(t, c, time.Second, "a"))
	primary.Pause()
	next := s.AwaitFailover(primary)
	t.Logf("after a hang: healed %v after", heals(t, c, time.Second, "a"))
	if next.MustDo("GET", "a") == nil {
		t.Error("the key is elsewhere")
	}
	primary.Resume()
	if _, err := do(open(t, "redis-sentinel://"+s.Sentinels[0].Addr+"/other"), "a", "GET", "a"); err == nil {
		t.Error("sentinels that know no such primary gave one")
	} else {
		t.Log(err)
	}
}

func TestAServerIsNoCluster(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, "redis-cluster://"+s.Addr)
	if _, err := c.Do(t.Context(), "a", "GET", "a"); err == nil || !strings.Contains(err.Error(), "cluster support disabled") {
		t.Errorf("got %v", err)
	}
}
