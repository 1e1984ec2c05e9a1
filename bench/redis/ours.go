package main

import (
	"context"
	"fmt"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/goredis"
	"github.com/comporta/comporta/redisstore/rueidis"
	"github.com/redis/go-redis/v9"
)

const (
	plain       = "comporta"
	overGoRedis = "comporta, go-redis"
	lease10     = "comporta, leases of 10"
	lease100    = "comporta, leases of 100"
	memory      = "memstore" // ours too, within the process
)

// others are ours.
var others = []side{
	{name: plain, open: openComporta(nil)},
	{name: overGoRedis, open: openOverGoRedis},
	{name: lease10, open: openComporta(&comporta.Lease{Size: 10})},
	{name: lease100, open: openComporta(&comporta.Lease{Size: 100})},
	{name: memory, open: openMemory},
}

// openComporta is the store with its client as it comes.
func openComporta(lease *comporta.Lease) func(string, int, allowance) (*limiter, error) {
	return func(address string, database int, a allowance) (*limiter, error) {
		at, err := redisstore.ParseAddress(fmt.Sprintf("redis://%s/%d", address, database))
		if err != nil {
			return nil, err
		}
		// Callers that never wait leave the client no processor for over a second.
		client, err := rueidis.Open(at, rueidis.Options{Silence: 20 * time.Second})
		if err != nil {
			return nil, err
		}
		return overRedis(client, client.Close, a, lease)
	}
}

// openOverGoRedis is the store with a client that a program has already.
func openOverGoRedis(address string, database int, a allowance) (*limiter, error) {
	client := redis.NewClient(&redis.Options{Addr: address, DB: database, ContextTimeoutEnabled: true})
	end := func() { client.Close() }
	adapted, err := goredis.New(client)
	if err != nil {
		end()
		return nil, err
	}
	return overRedis(adapted, end, a, nil)
}

// overRedis waits longer for the server than by itself, so that a busy machine is
// no error.
func overRedis(client redisstore.Client, end func(), a allowance, lease *comporta.Lease) (*limiter, error) {
	store, err := redisstore.New(client, redisstore.Options{Timeout: 10 * time.Second})
	if err != nil {
		end()
		return nil, err
	}
	return ours(store, a, lease, func() {
		store.Close()
		end()
	})
}

// openMemory is what decides without any server.
func openMemory(_ string, _ int, a allowance) (*limiter, error) {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		return nil, err
	}
	return ours(store, a, nil, func() { store.Close() })
}

// ours asks a store for one unit.
func ours(store comporta.Taker, a allowance, lease *comporta.Lease, end func()) (*limiter, error) {
	rule, err := comporta.Limit{Limit: int64(a.units), Window: a.window, Lease: lease}.Compile()
	if err != nil {
		end()
		return nil, err
	}
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			d, err := store.TakeOne(ctx, comporta.Key{Limit: "requests", Identity: key}, rule, 1)
			return d.Allowed, err
		},
		close: end,
	}, nil
}
