package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/telemetry"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/rueidis"
)

// A backend keeps the counts: the store, and what belongs to it.
type backend struct {
	store comporta.Store
	// local decides while the store fails; nil for one that does not.
	local comporta.Store
	stats func() telemetry.StoreStats
	// shared is nil for a store that this process has to itself.
	shared func() telemetry.SharedStats
	secret *secretKeeper
	client redisstore.Client // nil without Redis
	close  func() error
}

// openBackend opens the store that the policy names. Stores are known by name
// here alone.
func openBackend(cfg *config.Config, log *slog.Logger) (*backend, error) {
	if cfg.Store.Redis != nil {
		return openRedis(cfg, log)
	}
	store, err := openMemory(cfg, log)
	if err != nil {
		return nil, err
	}
	return &backend{
		store: store, stats: func() telemetry.StoreStats { return statsOf(store) },
		secret: &secretKeeper{agree: agreeAlone, log: log}, close: store.Close,
	}, nil
}

// A secretKeeper gives policies their secret: the first one's for as long as the
// process lives, since what is counted is counted under it.
type secretKeeper struct {
	agree func(ctx context.Context, mine []byte) ([]byte, error)
	log   *slog.Logger
	key   []byte // nil until a policy needs it
}

// give gives a policy the secret. It is called by one goroutine at a time.
func (k *secretKeeper) give(ctx context.Context, cfg *config.Config) error {
	return cfg.ShareSecret(func(mine []byte) ([]byte, error) {
		if k.key != nil {
			if mine != nil && !bytes.Equal(mine, k.key) {
				k.log.Warn("the secret file holds another secret than is in force: restart to apply, which makes every client a new one", "file", cfg.SecretFile)
			}
			return k.key, nil
		}
		key, err := k.agree(ctx, mine)
		if err == nil {
			k.key = key
		}
		return key, err
	})
}

// agreeAlone is the secret of who shares it with nobody.
func agreeAlone(_ context.Context, mine []byte) ([]byte, error) {
	if mine != nil {
		return mine, nil
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return key, nil
}

func openMemory(cfg *config.Config, log *slog.Logger) (*memstore.Store, error) {
	return memstore.New(memstore.Options{
		MaxKeys: cfg.Store.MaxKeys, MaxLogBytes: cfg.Store.MaxLogBytes, Save: cfg.Store.Save, Logger: log,
	})
}

func openRedis(cfg *config.Config, log *slog.Logger) (*backend, error) {
	c := cfg.Store.Redis
	if err := cfg.LoadPasswords(); err != nil {
		return nil, err
	}
	local, err := openMemory(cfg, log)
	if err != nil {
		return nil, err
	}
	// A server that is silent for as long as calls may wait is not silent yet.
	client, err := rueidis.Open(c.Address, rueidis.Options{Silence: max(time.Second, 2*c.Timeout)})
	if err != nil {
		return nil, errors.Join(err, local.Close())
	}
	store, err := redisstore.New(client, redisstore.Options{Prefix: c.Prefix, Timeout: c.Timeout, MaxKnown: c.MaxKnown, Logger: log})
	if err != nil {
		client.Close()
		return nil, errors.Join(err, local.Close())
	}
	s := &secretary{store: store, log: log, address: c.Address}
	return &backend{
		store: store, local: local,
		stats: func() telemetry.StoreStats {
			all := statsOf(local)
			all.ClockFaults += store.Stats().ClockFaults
			return all
		},
		secret: &secretKeeper{agree: s.agree, log: log}, client: client,
		shared: func() telemetry.SharedStats { return sharedStatsOf(store) },
		close: func() error {
			s.close()
			err := store.Close()
			client.Close()
			return errors.Join(err, local.Close())
		},
	}, nil
}

// A secretary sees that all instances have the same secret.
type secretary struct {
	store   *redisstore.Store
	log     *slog.Logger
	address *redisstore.Address

	stop  context.CancelFunc // ends asking later; nil where that is not done
	ended sync.WaitGroup
}

// How long a start waits for Redis where there is no secret without it, and how
// often it asks.
const (
	startPatience = 5 * time.Second
	askEvery      = 200 * time.Millisecond
)

// agree is the secret of all. Who has a secret file need not wait for Redis: it
// is asked later whether the others have the same.
func (s *secretary) agree(ctx context.Context, mine []byte) ([]byte, error) {
	key, err := s.askOnce(ctx, mine)
	if err == nil || !unreachable(err) {
		return key, err
	}
	if mine != nil {
		s.log.Warn("redis cannot be reached: starting without it, as on_error says", "redis", s.address.String(), "error", err)
		later, stop := context.WithCancel(context.Background())
		s.stop = stop
		s.ended.Go(func() { s.askLater(later, mine) })
		return mine, nil
	}
	s.log.Warn("redis cannot be reached: waiting for it", "redis", s.address.String(), "error", err, "at_most", startPatience.String())
	waiting, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	key, err = s.ask(waiting, nil)
	if err != nil && unreachable(err) {
		meaning, todo := redisstore.Explain(err)
		err = fmt.Errorf("redis at %v cannot be reached: %s; %s. To start without it, give all gateways the same secret_file", s.address, meaning, todo)
	}
	return key, err
}

// ask asks until there is an answer or ctx ends; the error is then the last one.
func (s *secretary) ask(ctx context.Context, mine []byte) ([]byte, error) {
	every := time.NewTicker(askEvery)
	defer every.Stop()
	for {
		key, err := s.askOnce(ctx, mine)
		if err == nil || !unreachable(err) {
			return key, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-every.C:
		}
	}
}

// askOnce asks with a bound of its own, not that of ctx, whose end would hide
// what is wrong.
func (s *secretary) askOnce(ctx context.Context, mine []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return s.store.Secret(ctx, mine)
}

func (s *secretary) askLater(ctx context.Context, mine []byte) {
	if _, err := s.ask(ctx, mine); err != nil && ctx.Err() == nil {
		s.log.Error("this gateway counts apart from the others: give all of them the same secret_file and restart it", "error", err)
	}
}

func (s *secretary) close() {
	if s.stop != nil {
		s.stop()
	}
	s.ended.Wait()
}

// unreachable says whether it was Redis that failed, and not what it knows that
// speaks against us: that will not pass.
func unreachable(err error) bool { return !errors.Is(err, redisstore.ErrSecret) }

func statsOf(store *memstore.Store) telemetry.StoreStats {
	s := store.Stats()
	return telemetry.StoreStats{Keys: s.Keys, LogBytes: s.LogBytes, Evictions: s.Evicted, Overflows: s.Overflowed, ClockFaults: s.ClockFaults}
}

func sharedStatsOf(store *redisstore.Store) telemetry.SharedStats {
	is, s := store.Status(), store.Stats()
	return telemetry.SharedStats{
		Up: is.Up, Since: is.Since, Cause: is.Cause, Instances: is.Instances,
		Calls: s.Calls, Takes: s.Takes, Settlements: s.Settlements, Remembered: s.Remembered, Replaced: s.Replaced, Errors: s.Errors,
		Leases: s.Leases.Granted, Leased: s.Leases.Leased, Served: s.Leases.Served, Returned: s.Leases.Returned, Lost: s.Leases.Lost,
	}
}
