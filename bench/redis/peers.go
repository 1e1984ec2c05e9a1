package main

import (
	"context"
	"math"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislimiter"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/redis"
)

// peers are what one would use instead, each with its client as it comes.
var peers = []side{
	{name: "redis_rate", open: openRedisRate},
	{name: "redis_rate, auto-pipelined", open: openPipelinedRedisRate},
	{name: "throttled", open: openThrottled},
	{name: "ulule", open: openUlule},
	{name: "rueidislimiter", open: openRueidisLimiter},
	{name: "a GCRA script by rueidis", open: openScript},
}

func goRedis(address string, database int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address, DB: database})
}

func openRedisRate(address string, database int, a allowance) (*limiter, error) {
	client := goRedis(address, database)
	return redisRate(redis_rate.NewLimiter(client), client, a), nil
}

// openPipelinedRedisRate gives redis_rate go-redis's client that sends in one
// pipeline what several callers ask at a time.
func openPipelinedRedisRate(address string, database int, a allowance) (*limiter, error) {
	client := goRedis(address, database)
	pipelined, err := client.AutoPipeline()
	if err != nil {
		client.Close()
		return nil, err
	}
	return redisRate(redis_rate.NewLimiter(pipelined), client, a), nil
}

func redisRate(l *redis_rate.Limiter, client *redis.Client, a allowance) *limiter {
	limit := redis_rate.Limit{Rate: a.units, Burst: a.units, Period: a.window}
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			r, err := l.Allow(ctx, key, limit)
			if err != nil {
				return false, err
			}
			return r.Allowed > 0, nil
		},
		close: func() { client.Close() },
	}
}

// openThrottled lets it try as often as it takes: by itself it gives up after ten
// lost races.
func openThrottled(address string, database int, a allowance) (*limiter, error) {
	client := goRedis(address, database)
	store, err := throttledstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(a.units, a.window), MaxBurst: a.units - 1}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	l.SetMaxCASAttemptsLimit(math.MaxInt)
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			limited, _, err := l.RateLimitCtx(ctx, key, 1)
			return !limited, err
		},
		close: func() { client.Close() },
	}, nil
}

// openUlule is a fixed window, as it has no other.
func openUlule(address string, database int, a allowance) (*limiter, error) {
	client := goRedis(address, database)
	store, err := ululestore.NewStore(client)
	if err != nil {
		client.Close()
		return nil, err
	}
	l := ulule.New(store, ulule.Rate{Limit: int64(a.units), Period: a.window})
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			c, err := l.Get(ctx, key)
			return !c.Reached, err
		},
		close: func() { client.Close() },
	}, nil
}

func rueidisOption(address string, database int) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{address}, SelectDB: database}
}

// openRueidisLimiter is a fixed window, as it has no other.
func openRueidisLimiter(address string, database int, a allowance) (*limiter, error) {
	var client rueidis.Client // it makes the client but never closes it
	l, err := rueidislimiter.NewRateLimiter(rueidislimiter.RateLimiterOption{
		ClientOption: rueidisOption(address, database),
		ClientBuilder: func(o rueidis.ClientOption) (_ rueidis.Client, err error) {
			client, err = rueidis.NewClient(o)
			return client, err
		},
		Limit: a.units, Window: a.window,
	})
	if err != nil {
		return nil, err
	}
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			r, err := l.Allow(ctx, key)
			return r.Allowed, err
		},
		close: client.Close,
	}, nil
}
