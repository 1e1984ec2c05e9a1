package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A Cluster is three primaries that share the slots, each with a replica.
type Cluster struct {
	Nodes []*Server // the first three began as primaries, the next as their replicas in order

	t testing.TB
}

const slots = 16_384

// StartCluster starts a cluster, with more arguments for each node, and waits
// until every node finds it well. A node is taken for dead after half a second.
// It takes over two seconds: a fresh primary takes no writes before.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	args = slices.Concat([]string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", "500", "--cluster-replica-validity-factor", "0",
		"--repl-ping-replica-period", "1",
	}, args)
	for range 6 {
		c.Nodes = append(c.Nodes, StartOwn(t, args...))
	}
	for i, n := range c.Nodes {
		n.MustDo("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		for _, other := range c.Nodes[:i] {
			n.MustDo("CLUSTER", "MEET", other.Host, strconv.Itoa(other.Port))
		}
	}
	for i, n := range c.Nodes[:3] {
		add := []string{"CLUSTER", "ADDSLOTS"}
		for slot := slots * i / 3; slot < slots*(i+1)/3; slot++ {
			add = append(add, strconv.Itoa(slot))
		}
		n.MustDo(add...)
	}
	for i, replica := range c.Nodes[3:] {
		id := c.Nodes[i].MustDo("CLUSTER", "MYID").(string)
		Until(t, 2*patience, func() error {
			_, err := replica.Do("CLUSTER", "REPLICATE", id)
			return err
		})
	}
	c.AwaitHealth()
	return c
}

// AwaitHealth waits until all nodes run, know all, find the cluster well, and
// three of them follow the others.
func (c *Cluster) AwaitHealth() {
	c.t.Helper()
	for _, n := range c.Nodes {
		Until(c.t, 3*patience, func() error {
			info, err := n.Do("CLUSTER", "INFO")
			if err != nil {
				return err
			}
			for _, want := range []string{"cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:6", "cluster_size:3"} {
				if !strings.Contains(info.(string), want+"\r\n") {
					return fmt.Errorf("%s: no %s in:\n%s", n.Addr, want, info)
				}
			}
			for i := range 3 {
				if all, err := c.view(n, slots*i/3); err != nil {
					return err
				} else if len(all) < 2 {
					return fmt.Errorf("%s knows no replica of %s", n.Addr, all[0].Addr)
				}
			}
			return nil
		})
	}
	for i := range 3 {
		for _, replica := range c.servers(slots * i / 3)[1:] {
			Until(c.t, 2*patience, func() error { return follows(replica) })
		}
	}
}

// Addrs are the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	var all []string
	for _, n := range c.Nodes {
		all = append(all, n.Addr)
	}
	return all
}

// URL is its address as a policy writes it.
func (c *Cluster) URL() string { return "redis-cluster://" + strings.Join(c.Addrs(), ",") }

// Slot is the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.t.Helper()
	return int(c.Nodes[0].MustDo("CLUSTER", "KEYSLOT", key).(int64))
}

// Primary is the primary of a slot, as the first node that runs knows it.
func (c *Cluster) Primary(slot int) *Server { c.t.Helper(); return c.servers(slot)[0] }

// Replica is a replica of the slot's primary.
func (c *Cluster) Replica(slot int) *Server {
	c.t.Helper()
	all := c.servers(slot)
	if len(all) < 2 {
		c.t.Fatalf("redistest: slot %d has no replica now", slot)
	}
	return all[1]
}

func (c *Cluster) servers(slot int) (found []*Server) {
	c.t.Helper()
	Until(c.t, 2*patience, func() (err error) {
		for _, n := range c.Nodes {
			if n.up.Load() {
				found, err = c.view(n, slot)
				return err
			}
		}
		return errors.New("no node runs")
	})
	return found
}

// view is a slot's primary and its replicas as one node sees them.
func (c *Cluster) view(n *Server, slot int) ([]*Server, error) {
	ranges, err := n.Do("CLUSTER", "SLOTS")
	if err != nil {
		return nil, err
	}
	for _, r := range ranges.([]any) {
		r := r.([]any) // first slot, last slot, then servers: host, port, …
		if int64(slot) < r[0].(int64) || int64(slot) > r[1].(int64) {
			continue
		}
		var found []*Server
		for _, server := range r[2:] {
			port := server.([]any)[1].(int64)
			i := slices.IndexFunc(c.Nodes, func(s *Server) bool { return int64(s.Port) == port })
			found = append(found, c.Nodes[i])
		}
		return found, nil
	}
	return nil, fmt.Errorf("%s knows no primary of slot %d", n.Addr, slot)
}

// MoveSlot moves a slot and its keys to another primary.
func (c *Cluster) MoveSlot(slot int, to *Server) { c.t.Helper(); c.BeginMove(slot, to)() }

// BeginMove begins to move a slot: keys that are not in the old primary are
// asked for at the new one (ASK). The func that it returns moves the keys and
// the slot.
func (c *Cluster) BeginMove(slot int, to *Server) (finish func()) {
	c.t.Helper()
	from, number := c.Primary(slot), strconv.Itoa(slot)
	fromID, toID := from.MustDo("CLUSTER", "MYID").(string), to.MustDo("CLUSTER", "MYID").(string)
	to.MustDo("CLUSTER", "SETSLOT", number, "IMPORTING", fromID)
	from.MustDo("CLUSTER", "SETSLOT", number, "MIGRATING", toID)
	return func() {
		c.t.Helper()
		for {
			keys := from.MustDo("CLUSTER", "GETKEYSINSLOT", number, "100").([]any)
			if len(keys) == 0 {
				break
			}
			move := []string{"MIGRATE", to.Host, strconv.Itoa(to.Port), "", "0", "5000", "KEYS"}
			for _, key := range keys {
				move = append(move, key.(string))
			}
			from.MustDo(move...)
		}
		for _, n := range []*Server{to, from} { // the new owner first: it may not be left without one
			n.MustDo("CLUSTER", "SETSLOT", number, "NODE", toID)
		}
		c.awaitPrimary(slot, to)
	}
}

// Failover makes a replica the primary of a slot, and of its neighbours. With a
// primary that lives, nothing is lost; where it does not, use [Server.Kill] and
// [Cluster.AwaitFailover]. It returns the new primary.
func (c *Cluster) Failover(slot int) *Server {
	c.t.Helper()
	replica := c.Replica(slot)
	replica.MustDo("CLUSTER", "FAILOVER")
	c.awaitPrimary(slot, replica)
	return replica
}

// AwaitFailover waits until the cluster has replaced a slot's primary that was
// killed or paused. It returns the new one.
func (c *Cluster) AwaitFailover(slot int, old *Server) *Server {
	c.t.Helper()
	var primary *Server
	Until(c.t, 2*patience, func() error {
		if primary = c.Primary(slot); primary == old {
			return fmt.Errorf("%s is still the primary of slot %d", old.Addr, slot)
		}
		return nil
	})
	c.awaitPrimary(slot, primary)
	return primary
}

// awaitPrimary waits until every node that runs says the same.
func (c *Cluster) awaitPrimary(slot int, want *Server) {
	c.t.Helper()
	Until(c.t, 2*patience, func() error {
		for _, n := range c.Nodes {
			if !n.up.Load() {
				continue
			}
			found, err := c.view(n, slot)
			if err != nil {
				return err
			}
			if found[0] != want {
				return fmt.Errorf("%s does not yet know %s as the primary of slot %d", n.Addr, want.Addr, slot)
			}
		}
		return nil
	})
}
