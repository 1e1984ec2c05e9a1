// Package goredis lets a store use a github.com/redis/go-redis/v9 client that a
// program has already.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/comporta/comporta/redisstore"
	"github.com/redis/go-redis/v9"
)

// A Client is a [redisstore.Client] and [redisstore.Nodes]. It is safe for
// concurrent use.
type Client struct {
	run     processor
	cluster *redis.ClusterClient // nil where there is none
	keyless atomic.Uint32        // calls without a key: each has a slot by its number
	closed  atomic.Bool
}

// processor is what go-redis' clients and those of single nodes have in common.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// New adapts a *redis.Client (of one server, or of sentinels) or a
// *redis.ClusterClient; a ring is an error, since it forgets limits when a server
// leaves it. So is a client that lets calls outlast their deadline: it needs
// ContextTimeoutEnabled. Its MaxRetries do not matter: no command of a store is
// ever sent twice.
//
// The client stays the program's: Close does not close it.
func New(rdb redis.UniversalClient) (*Client, error) {
	var bounded bool
	c := &Client{run: rdb}
	switch rdb := rdb.(type) {
	case *redis.Client:
		bounded = rdb.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		bounded = rdb.Options().ContextTimeoutEnabled
		c.cluster = rdb
	default:
		return nil, fmt.Errorf("redisstore: a store needs a *redis.Client or a *redis.ClusterClient, not a %T", rdb)
	}
	if !bounded {
		return nil, errors.New("redisstore: set ContextTimeoutEnabled in the options of the go-redis client: without it calls outlast their deadline")
	}
	return c, nil
}

var errClosed = errors.New("redisstore: the client is closed")

// Do implements [redisstore.Client]. Calls do not share round trips: each takes a
// connection of the pool for its time.
func (c *Client) Do(ctx context.Context, key string, args ...string) (any, error) {
	if c.closed.Load() {
		return nil, errClosed
	}
	if len(args) == 0 {
		return nil, errors.New("redisstore: a command without words")
	}
	cmd := newCommand(ctx, args)
	if c.cluster == nil {
		return cmd.run(ctx, c.run)
	}
	server, err := c.route(ctx, key, cmd, args)
	if err == nil {
		var reply any
		if reply, err = cmd.run(ctx, server); err == nil {
			return reply, nil
		}
	}
	if server := redisstore.ServerError(""); !errors.As(err, &server) {
		c.cluster.ReloadState(ctx) // in the background, and not too often: where is the primary now?
	}
	return nil, err
}

// route says who takes a command in a cluster: the cluster's client, where it can
// find the slot in the command, or else the server of the key's slot. It would
// send some commands that have no key to all servers, and add up their replies.
func (c *Client) route(ctx context.Context, key string, cmd command, args []string) (processor, error) {
	if key == "" {
		key = strconv.Itoa(int(c.keyless.Add(1)))
	} else if at := position(args, key); at > 0 {
		cmd.SetFirstKeyPos(int8(at))
		return c.cluster, nil
	}
	server, err := c.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, failure(err)
	}
	return server, nil
}

// position finds a word whose slot is the key's, as surely as its hash tag is; 0
// where there is none among the first hundred.
func position(args []string, key string) int {
	tag := hashTag(key)
	for i, word := range args[:min(len(args), 100)] {
		if i > 0 && hashTag(word) == tag {
			return i
		}
	}
	return 0
}

// hashTag is what decides on a key's slot: what stands in its first braces, or
// all where nothing does.
func hashTag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// Cluster implements [redisstore.Client].
func (c *Client) Cluster() bool { return c.cluster != nil }

// Close makes calls after it fail.
func (c *Client) Close() { c.closed.Store(true) }

// Nodes implements [redisstore.Nodes].
func (c *Client) Nodes(ctx context.Context) (map[string]redisstore.Client, error) {
	if c.closed.Load() {
		return nil, errClosed
	}
	nodes := make(map[string]redisstore.Client)
	if c.cluster == nil {
		nodes[c.run.(*redis.Client).Options().Addr] = c
		return nodes, nil
	}
	var mu sync.Mutex
	err := c.cluster.ForEachMaster(ctx, func(_ context.Context, one *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes[one.Options().Addr] = &Client{run: one}
		return nil
	})
	if err != nil {
		return nil, failure(err)
	}
	return nodes, nil
}

// A command is never sent again after it may have run: go-redis asks NoRetry.
type command struct{ *redis.Cmd }

func (command) NoRetry() bool { return true }

func newCommand(ctx context.Context, args []string) command {
	boxed := make([]any, len(args))
	// go-redis looks for keys among strings only. Scripts, which have one near the
	// beginning, may have a thousand words: a pointer to each need not be made.
	plain := len(args)
	if strings.HasPrefix(args[0], "EVAL") {
		plain = min(4, plain)
	}
	for i := range args {
		if i < plain {
			boxed[i] = args[i]
		} else {
			boxed[i] = &args[i]
		}
	}
	return command{redis.NewCmd(ctx, boxed...)}
}

func (c command) run(ctx context.Context, server processor) (any, error) {
	if err := server.Process(ctx, c); err != nil && !errors.Is(err, redis.Nil) {
		return nil, failure(err)
	}
	return value(c.Val())
}
