package main

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
	"github.com/go-chi/httprate"
	juju "github.com/juju/ratelimit"
	golimiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

// An allowance is the limit that every contender is given: so many units per
// window, all of them at once if one likes.
type allowance struct {
	Units  int
	Window time.Duration
}

// every is the time in which one unit comes back.
func (a allowance) every() time.Duration { return a.Window / time.Duration(a.Units) }

func (a allowance) limit(algorithm comporta.Algorithm) comporta.Limit {
	return comporta.Limit{Algorithm: algorithm, Limit: int64(a.Units), Window: a.Window}
}

// A contender keeps a budget for each key. Make is what a program does once,
// take what it does for each request: the call that its documentation shows.
type contender struct {
	name string
	ours bool
	// algorithms: it runs only where algorithms are compared.
	algorithms bool
	make       func(a allowance) (take func(key string) bool, err error)
}

const (
	// headline is the contender of ours that the table of ratios is about.
	headline   = "comporta.Limiter, token_bucket"
	slidingLog = "comporta.Limiter, sliding_log"
	takeOne    = "memstore.TakeOne, token_bucket" // the store without the limiter
)

var keyed = []contender{
	{name: "x/time in a sync.Map", make: xtimeSyncMap},
	{name: "x/time in a map", make: xtimeMap},
	{name: "juju in a map", make: jujuMap},
	{name: "throttled", make: throttledGCRA},
	{name: "ulule", make: ululeMemory},
	{name: "go-limiter", make: goLimiter},
	{name: "httprate's counter", make: httprateCounter},

	{name: headline, ours: true, make: viaLimiter(comporta.TokenBucket)},
	{name: "comporta.Limiter, leaky_bucket", ours: true, algorithms: true, make: viaLimiter(comporta.LeakyBucket)},
	{name: "comporta.Limiter, fixed_window", ours: true, algorithms: true, make: viaLimiter(comporta.FixedWindow)},
	{name: "comporta.Limiter, sliding_counter", ours: true, algorithms: true, make: viaLimiter(comporta.SlidingCounter)},
	{name: slidingLog, ours: true, algorithms: true, make: viaLimiter(comporta.SlidingLog)},
	{name: takeOne, ours: true, make: viaTakeOne(comporta.TokenBucket)},
}

func xtimeSyncMap(a allowance) (func(string) bool, error) {
	var limiters sync.Map
	return func(key string) bool {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, rate.NewLimiter(rate.Every(a.every()), a.Units))
		}
		return l.(*rate.Limiter).Allow()
	}, nil
}

func xtimeMap(a allowance) (func(string) bool, error) {
	var mu sync.Mutex
	limiters := make(map[string]*rate.Limiter)
	return func(key string) bool {
		mu.Lock()
		l, ok := limiters[key]
		if !ok {
			l = rate.NewLimiter(rate.Every(a.every()), a.Units)
			limiters[key] = l
		}
		mu.Unlock()
		return l.Allow()
	}, nil
}

func jujuMap(a allowance) (func(string) bool, error) {
	var mu sync.Mutex
	buckets := make(map[string]*juju.Bucket)
	return func(key string) bool {
		mu.Lock()
		b, ok := buckets[key]
		if !ok {
			b = juju.NewBucket(a.every(), int64(a.Units))
			buckets[key] = b
		}
		mu.Unlock()
		return b.TakeAvailable(1) == 1
	}, nil
}

func throttledGCRA(a allowance) (func(string) bool, error) {
	limiter, err := newThrottled(a)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	return func(key string) bool {
		limited, _, err := limiter.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited
	}, nil
}

// newThrottled keeps its keys in a plain map, which is faster than its LRU, and
// may try as often as it takes: by itself it gives up after ten lost races.
func newThrottled(a allowance) (*throttled.GCRARateLimiterCtx, error) {
	store, err := throttledstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(a.Units, a.Window), MaxBurst: a.Units - 1}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	limiter.SetMaxCASAttemptsLimit(math.MaxInt)
	return limiter, nil
}

func ululeMemory(a allowance) (func(string) bool, error) {
	limiter := newUlule(a)
	ctx := context.Background()
	return func(key string) bool {
		c, err := limiter.Get(ctx, key)
		return err == nil && !c.Reached
	}, nil
}

// newUlule sweeps once an hour only, so that no sweep falls into others' rounds.
func newUlule(a allowance) *ulule.Limiter {
	store := ululestore.NewStoreWithOptions(ulule.StoreOptions{Prefix: ulule.DefaultPrefix, CleanUpInterval: time.Hour})
	return ulule.New(store, ulule.Rate{Limit: int64(a.Units), Period: a.Window})
}

func goLimiter(a allowance) (func(string) bool, error) {
	store, err := newGoLimiter(a)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	return func(key string) bool {
		_, _, _, ok, err := store.Take(ctx, key)
		return err == nil && ok
	}, nil
}

func newGoLimiter(a allowance) (golimiter.Store, error) {
	return memorystore.New(&memorystore.Config{Tokens: uint64(a.Units), Interval: a.Window})
}

// httprateCounter asks httprate's local counter as its RateLimiter.OnLimit does,
// under the same lock, but writes no headers.
func httprateCounter(a allowance) (func(string) bool, error) {
	var mu sync.Mutex
	counter := httprate.NewLocalLimitCounter(a.Window)
	return func(key string) bool {
		now := time.Now().UTC()
		window := now.Truncate(a.Window)
		mu.Lock()
		defer mu.Unlock()
		cur, prev, err := counter.Get(key, window, window.Add(-a.Window))
		if err != nil {
			return false
		}
		left := float64(a.Window-now.Sub(window)) / float64(a.Window)
		if int(math.Round(float64(prev)*left+float64(cur)))+1 > a.Units {
			return false
		}
		return counter.IncrementBy(key, window, 1) == nil
	}, nil
}

func viaLimiter(algorithm comporta.Algorithm) func(allowance) (func(string) bool, error) {
	return func(a allowance) (func(string) bool, error) {
		store, err := newMemstore()
		if err != nil {
			return nil, err
		}
		limiter, err := comporta.NewLimiter(store, a.limit(algorithm))
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		return func(key string) bool {
			d, err := limiter.Take(ctx, key, 1)
			return err == nil && d.Allowed
		}, nil
	}
}

func viaTakeOne(algorithm comporta.Algorithm) func(allowance) (func(string) bool, error) {
	return func(a allowance) (func(string) bool, error) {
		store, err := newMemstore()
		if err != nil {
			return nil, err
		}
		rule, err := a.limit(algorithm).Compile()
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		return func(key string) bool {
			d, err := store.TakeOne(ctx, comporta.Key{Limit: "default", Identity: key}, rule, 1)
			return err == nil && d.Allowed
		}, nil
	}
}

// newMemstore does not sweep in the background: its sweeps, as its peers', would
// fall into others' rounds.
func newMemstore() (*memstore.Store, error) { return memstore.New(memstore.Options{Sweep: -1}) }
