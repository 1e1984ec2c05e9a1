package rueidis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/comporta/comporta/redisstore"
	"github.com/redis/rueidis"
)

// Nodes implements [redisstore.Nodes]: the primaries as they are now. When one of
// the clients fails, ask again.
func (c *Client) Nodes(ctx context.Context) (map[string]redisstore.Client, error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	defer s.leave()
	nodes := make(map[string]redisstore.Client)
	for addr, client := range s.client.Nodes() {
		nodes[addr] = &node{s, client}
	}
	if !c.Cluster() {
		return nodes, nil
	}
	primaries, err := primaries(ctx, nodes)
	if err != nil {
		return nil, err
	}
	for addr := range nodes {
		if !primaries[addr] {
			delete(nodes, addr)
		}
	}
	return nodes, nil
}

// primaries are the addresses of those that have slots, as whoever answers first
// knows them.
func primaries(ctx context.Context, nodes map[string]redisstore.Client) (map[string]bool, error) {
	type answer struct {
		primaries map[string]bool
		err       error
	}
	answers := make(chan answer, len(nodes))
	for addr, n := range nodes {
		go func() {
			slots, err := n.Do(ctx, "", "CLUSTER", "SLOTS")
			if err != nil {
				answers <- answer{err: err}
				return
			}
			found, err := parsePrimaries(addr, slots)
			answers <- answer{found, err}
		}()
	}
	err := fmt.Errorf("redisstore: the cluster has no nodes")
	for range nodes {
		a := <-answers
		if a.err == nil {
			return a.primaries, nil
		}
		err = a.err
	}
	return nil, err
}

// parsePrimaries reads the reply to CLUSTER SLOTS: lists of first slot, last
// slot, and servers, the primary first, each of which is a list of host, port and
// more. A host of "" is the one that was asked.
func parsePrimaries(asked string, slots any) (map[string]bool, error) {
	found := make(map[string]bool)
	list, _ := slots.([]any)
	for _, r := range list {
		r, _ := r.([]any)
		if len(r) < 3 {
			return nil, fmt.Errorf("redisstore: no reply to CLUSTER SLOTS: %v", slots)
		}
		server, _ := r[2].([]any)
		if len(server) < 2 {
			return nil, fmt.Errorf("redisstore: no reply to CLUSTER SLOTS: %v", slots)
		}
		host, _ := server[0].(string)
		port, _ := server[1].(int64)
		if host == "" {
			host, _, _ = net.SplitHostPort(asked)
		}
		found[net.JoinHostPort(host, strconv.FormatInt(port, 10))] = true
	}
	return found, nil
}

var errReplaced = errors.New("redisstore: the connections were made anew: ask for the nodes again")

// A node is one server of a session.
type node struct {
	session *session
	client  rueidis.Client
}

func (n *node) Do(ctx context.Context, _ string, args ...string) (any, error) {
	if err := check(args); err != nil {
		return nil, err
	}
	if !n.session.enter() {
		return nil, errReplaced
	}
	return n.session.do(ctx, n.client, n.client.B().Arbitrary(args...).Build())
}

func (n *node) Cluster() bool { return false }

func (n *node) Close() {}
