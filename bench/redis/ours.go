package main

import (
	"context"
	"fmt"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/rueidis"
)

const (
	plain    = "comporta"
	lease10  = "comporta, leases of 10"
	lease100 = "comporta, leases of 100"
	memory   = "memstore" // ours too, within the process
)

// others are ours.
var others = []side{
	{name: plain, open: openComporta(nil)},
	{name: lease10, open: openComporta(&comporta.Lease{Size: 10})},
	{name: lease100, open: openComporta(&comporta.Lease{Size: 100})},
	{name: memory, open: openMemory},
}

// openComporta is the store with its client as it comes, but for a deadline that
// a busy machine does not reach.
func openComporta(lease *comporta.Lease) func(string, int, allowance) (*limiter, error) {
	return func(address string, database int, a allowance) (*limiter, error) {
		at, err := redisstore.ParseAddress(fmt.Sprintf("redis://%s/%d", address, database))
		if err != nil {
			return nil, err
		}
		client, err := rueidis.Open(at, rueidis.Options{})
		if err != nil {
			return nil, err
		}
		store, err := redisstore.New(client, redisstore.Options{Timeout: 10 * time.Second})
		if err != nil {
			client.Close()
			return nil, err
		}
		return ours(store, a, lease, func() {
			store.Close()
			client.Close()
		})
	}
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
