package identity

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// The defaults of CachedOptions.
const (
	DefaultKeyTTL     = time.Minute
	DefaultUnknownTTL = 10 * time.Second
	DefaultKeyTimeout = 500 * time.Millisecond
	DefaultMaxKeys    = 100_000
)

const (
	// flock is how many look-ups run at a time for keys that are known, and how many
	// for others: who sends random keys keeps nobody from being looked up again.
	flock = 64
	// pause is how long a key is not looked up again after that failed; after brittle
	// failures in a row none is, but for one that tries.
	pause   = time.Second
	brittle = 5
)

// A Lookup asks a source for the key with a sum: the key, whether there is one, or
// that it could not be asked. It returns by the end of ctx; the key's Sum need not
// be set. Its errors hold neither the sum nor what the source was sent.
type Lookup = func(ctx context.Context, sum [sha256.Size]byte) (Key, bool, error)

// OnLookupError is what holds for a key whose source cannot be asked.
type OnLookupError uint8

const (
	// Stale is what the source said last, for as long as it is remembered; a key of
	// which it said nothing is unknown.
	Stale OnLookupError = iota
	// Unknown is that nobody knows the key.
	Unknown
	// Refuse refuses the request with 503.
	Refuse
)

// CachedOptions are the bounds of a Cached. What is zero has a default.
type CachedOptions struct {
	// TTL is how long a key that the source knows is not asked for again, and so how
	// long one that was taken away still works: DefaultKeyTTL unless said.
	TTL time.Duration
	// UnknownTTL is the same for a key that the source does not know, and so how long
	// a new key may have to wait: DefaultUnknownTTL unless said.
	UnknownTTL time.Duration
	// Timeout bounds a look-up: DefaultKeyTimeout unless said.
	Timeout time.Duration
	// Max bounds the known keys that are remembered, and apart from them the unknown
	// ones, which take about 200 bytes each: DefaultMaxKeys unless said.
	Max int
	// OnError is what holds while the source cannot be asked: Stale unless said.
	OnError OnLookupError
	// Now is the clock: the system's unless said.
	Now func() time.Time
}

// Cached is a [Keyring] that asks a source and remembers what it said.
//
// Requests with the same key wait for one look-up. Where one has failed, the key
// is asked for again after a second; where several failed in a row, the source is left
// alone but for one look-up a second, and requests do not wait for it.
type Cached struct {
	lookup Lookup
	o      CachedOptions
	lanes  [2]chan struct{} // hold a place for each look-up that runs: for unknown keys, for known ones

	mu       sync.Mutex
	known    *lru[knownKey]
	unknown  *lru[unknownKey]
	flights  map[digest]*flight
	failures int       // in a row
	rest     time.Time // while they are too many, the source is asked nothing before
	asked    uint64
	failed   uint64
	problem  error
}

type knownKey struct {
	key   Key
	until time.Time // it is asked for again from then on
	retry time.Time // and not before
}

type unknownKey struct {
	until  time.Time
	failed bool // the source could not be asked
}

// A found is what Find answers.
type found struct {
	key Key
	is  bool
	err error
}

// A flight is a look-up that runs.
type flight struct {
	done chan struct{} // closed when found is set
	found
}

var (
	// errSource refuses a request whose key cannot be looked up.
	errSource = &RequestError{Status: http.StatusServiceUnavailable, Detail: "API keys cannot be verified at the moment."}
	errBusy   = errors.New("too many look-ups of API keys at once: the source is too slow for them")
)

// NewCached checks the options. It asks nothing.
func NewCached(lookup Lookup, o CachedOptions) (*Cached, error) {
	if o.TTL < 0 || o.UnknownTTL < 0 || o.Timeout < 0 || o.Max < 0 {
		return nil, errors.New("the times and the number of keys to remember are not below 0")
	}
	if o.OnError > Refuse {
		return nil, fmt.Errorf("%d is nothing that holds while keys cannot be looked up: Stale, Unknown or Refuse", o.OnError)
	}
	o.TTL = cmp.Or(o.TTL, DefaultKeyTTL)
	o.UnknownTTL = cmp.Or(o.UnknownTTL, DefaultUnknownTTL)
	o.Timeout = cmp.Or(o.Timeout, DefaultKeyTimeout)
	o.Max = cmp.Or(o.Max, DefaultMaxKeys)
	if o.Now == nil {
		o.Now = wall
	}
	return &Cached{
		lookup: lookup, o: o,
		lanes:   [2]chan struct{}{make(chan struct{}, flock), make(chan struct{}, flock)},
		known:   newLRU[knownKey](o.Max),
		unknown: newLRU[unknownKey](o.Max),
		flights: make(map[digest]*flight),
	}, nil
}

// Find is the key as the source last said, which is asked where that is too long
// ago. The look-up goes on for others when ctx ends; the one who began it waits for
// at most Timeout.
func (c *Cached) Find(ctx context.Context, sum digest) (Key, bool, error) {
	c.mu.Lock()
	if a, at := c.recallLocked(sum, c.o.Now()); at {
		c.mu.Unlock()
		return a.key, a.is, a.err
	}
	f, flying := c.flights[sum]
	if !flying {
		f = &flight{done: make(chan struct{})}
		c.flights[sum] = f
		c.rest = c.o.Now().Add(pause) // while this one tries, where the source is down
	}
	c.mu.Unlock()
	if !flying {
		c.fly(ctx, sum, f)
		return f.key, f.is, f.err
	}
	select {
	case <-f.done:
		return f.key, f.is, f.err
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		a := c.statedLocked(c.known.get(sum))
		return a.key, a.is, a.err
	}
}

// Known says that the source need not be asked: the answer is remembered, or
// the source is down.
func (c *Cached) Known(sum digest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, at := c.recallLocked(sum, c.o.Now())
	return at
}

// recallLocked is what is answered without asking, where that is possible.
func (c *Cached) recallLocked(sum digest, now time.Time) (a found, at bool) {
	k := c.known.get(sum)
	if k != nil && now.Before(k.until) {
		return found{key: k.key, is: true}, true
	}
	if c.failures >= brittle && now.Before(c.rest) || k != nil && now.Before(k.retry) {
		return c.statedLocked(k), true
	}
	if u := c.unknown.get(sum); u != nil && now.Before(u.until) {
		if u.failed {
			return c.statedLocked(nil), true
		}
		return found{}, true
	}
	return found{}, false
}

// statedLocked is the answer while the source cannot be asked.
func (c *Cached) statedLocked(k *knownKey) found {
	switch {
	case c.o.OnError == Refuse:
		return found{err: errSource}
	case c.o.OnError == Stale && k != nil:
		return found{key: k.key, is: true}
	}
	return found{}
}

// fly looks a key up for all who wait.
func (c *Cached) fly(ctx context.Context, sum digest, f *flight) {
	defer func() {
		c.mu.Lock()
		delete(c.flights, sum)
		c.mu.Unlock()
		close(f.done)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.Timeout)
	defer cancel()
	c.mu.Lock()
	lane := c.lanes[0]
	if c.known.get(sum) != nil {
		lane = c.lanes[1]
	}
	c.mu.Unlock()
	select {
	case lane <- struct{}{}:
		defer func() { <-lane }()
	case <-ctx.Done():
		f.found = c.learn(sum, found{err: errBusy})
		return
	}
	key, is, err := c.lookup(ctx, sum)
	key.Sum = sum
	if err == nil && is {
		err = key.check()
	}
	f.found = c.learn(sum, found{key, is, err})
}

// learn keeps what a look-up found, and is what it is answered with.
func (c *Cached) learn(sum digest, a found) found {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Now()
	c.asked++
	c.problem = a.err
	switch {
	case a.err != nil:
		c.failed++
		if a.err != errBusy { // which tells of a crowd, not of the source
			c.failures++
		}
		c.rest = now.Add(pause)
		k := c.known.get(sum)
		if k != nil {
			k.retry = c.rest
		} else {
			c.unknown.put(sum, unknownKey{c.rest, true})
		}
		return c.statedLocked(k)
	case a.is:
		c.unknown.drop(sum)
		c.known.put(sum, knownKey{key: a.key, until: now.Add(c.o.TTL)})
	default:
		c.known.drop(sum)
		c.unknown.put(sum, unknownKey{until: now.Add(c.o.UnknownTTL)})
	}
	c.failures = 0
	return a
}

// CachedStats is how a Cached is doing.
type CachedStats struct {
	// Known and Unknown are how many keys are remembered.
	Known, Unknown int
	// Asked counts look-ups, and Failed those of them that failed.
	Asked, Failed uint64
	// Problem is why the last look-up failed; nil where it did not.
	Problem error
}

// Stats says how it is doing.
func (c *Cached) Stats() CachedStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CachedStats{len(c.known.at), len(c.unknown.at), c.asked, c.failed, c.problem}
}
