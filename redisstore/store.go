package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta"
)

// A Store keeps states in Redis or Valkey. It is a [comporta.Store], safe for
// concurrent use, and one limit together with all stores of the same prefix on
// the same server or cluster, in whatever process. Its clock is the server's.
//
// A request costs one round trip, which concurrent requests share.
type Store struct {
	client  Client
	cluster bool
	prefix  string
	timeout time.Duration
	batch   int
	most    int64 // entries of a log
	now     func() time.Time
	logger  *slog.Logger

	lanes     []lane
	breaker   *breaker
	instances *instances
	known     *known
	leases    *leases
	counters  counters
	beats     atomic.Int64
	secret    atomic.Pointer[heldSecret]
	offset    atomic.Int64 // server's time less the monotonic clock, in µs

	mu      sync.RWMutex
	numbers map[*comporta.Rule]*numbers
}

// New is a store on a client, which stays the caller's to close, after the store.
// It waits for no server: one that is down is an error of the calls. From then on
// the store announces itself to the others, until Close.
func New(client Client, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: a store needs a client: see the packages rueidis and goredis below this one")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Store{
		client: client, cluster: client.Cluster(), now: o.Now, logger: o.Logger,
		prefix:  either(o.Prefix, "comporta"),
		timeout: either(o.Timeout, 50*time.Millisecond),
		batch:   either(o.Batch, 128),
		most:    int64(either(o.MaxLogEntries, 1_000_000)),
		numbers: make(map[*comporta.Rule]*numbers),
		known:   newKnown(either(o.MaxKnown, 65_536)),
	}
	s.counters.turned()
	if s.logger == nil {
		s.logger = slog.Default()
	}
	s.lanes = make([]lane, 1)
	if s.cluster {
		s.lanes = make([]lane, 256)
	}
	for i := range s.lanes {
		s.lanes[i].store = s
	}
	s.offset.Store(began.UnixMicro())
	s.instances = newInstances(instancesOptions{
		client: client, prefix: s.prefix, every: either(o.Heartbeat, time.Second), deadline: s.timeout, now: monotonic,
		heard: s.heard, failed: s.counters.wrong,
	})
	s.breaker = newBreaker(breakerOptions{
		failures: either(o.Failures, 5), every: either(o.Probe, 200*time.Millisecond), deadline: s.timeout, now: monotonic,
		probe: s.instances.beat,
		down:  func(cause string, err error) { logDown(s.logger, cause, err) },
		up: func(after time.Duration) {
			s.counters.turned()
			logUp(s.logger, after)
			s.keepSecret()
		},
	})
	s.instances.start(s.breaker)
	s.leases = newLeases(s)
	s.leases.start()
	return s, nil
}

// Close ends what the store does of itself and tells the other instances that
// this one is gone. It does not close the client.
func (s *Store) Close() error {
	s.leases.close()
	s.instances.close()
	s.breaker.close()
	return nil
}

// heard is told the server's time at each heartbeat.
func (s *Store) heard(server, sent, _ int64) {
	s.learn(server, sent)
	if s.beats.Add(1)%10 == 0 {
		s.keepSecret()
	}
}

// Secret is the one secret of all instances of the prefix: mine where it is
// given, which is an error where another instance was given another or none; else
// one that the first instance made and that is kept in the server.
func (s *Store) Secret(ctx context.Context, mine []byte) ([]byte, error) {
	secret, err := sharedSecret(ctx, s.client, s.prefix, mine)
	if err == nil {
		s.secret.Store(&heldSecret{secret, len(mine) > 0})
	}
	return secret, err
}

// A heldSecret is the shared secret that this instance uses.
type heldSecret struct {
	secret []byte
	given  bool
}

// keepSecret tells the server the secret again, which may have come back empty.
func (s *Store) keepSecret() {
	held := s.secret.Load()
	if held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	if err := keepSecret(ctx, s.client, s.prefix, held.secret, held.given); err != nil {
		s.logger.Error("redisstore: the shared secret", "error", err)
	}
}

// Take is [comporta.Store]'s: one round trip, all or nothing. In a cluster,
// limits whose identities lie in different slots are taken slot by slot and
// given back when a later one denies: never more is admitted than any limit
// allows, and for a moment more may be refused.
//
// An error is [ErrDown] where nothing was asked. A [ServerError] says that the
// server refused, and nothing was spent. After any other it is not known.
func (s *Store) Take(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	if len(takes) == 0 {
		return nil
	}
	if err := comporta.CheckTakes(takes); err != nil {
		return err
	}
	if len(takes) > mostTakes {
		return fmt.Errorf("redisstore: %d limits in one step: at most %d", len(takes), mostTakes)
	}
	takes = comporta.CurrentTakes(takes)
	if slices.ContainsFunc(takes, leasable) {
		return s.takeLeased(ctx, takes, out)
	}
	return s.decide(ctx, takes, out)
}

// decide is Take without leases.
func (s *Store) decide(ctx context.Context, takes []comporta.Take, out []comporta.Taken) error {
	if s.remembers(takes, out) {
		return nil
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.cluster && spans(takes) {
		return s.takeApart(ctx, takes, out)
	}
	return s.take(ctx, takes, out, false)
}

// remembers answers takes that are known to be denied, without asking.
func (s *Store) remembers(takes []comporta.Take, out []comporta.Taken) bool {
	if s.now != nil || !s.known.answer(takes, out, monotonic()) {
		return false
	}
	s.counters.remembered.add()
	return true
}

// TakeOne is Take for one limit. A denial that is remembered costs no allocation.
func (s *Store) TakeOne(ctx context.Context, key comporta.Key, rule *comporta.Rule, cost int64) (comporta.Decision, error) {
	if err := comporta.CheckCost(cost); err != nil {
		return comporta.Decision{}, fmt.Errorf("comporta: limit %q: %w", key.Limit, err)
	}
	rule = rule.Current()
	if rule.Lease() != nil {
		var out [1]comporta.Taken
		err := s.Take(ctx, []comporta.Take{{Key: key, Rule: rule, Cost: cost}}, out[:])
		return out[0].Decision, err
	}
	if s.now == nil && cost > 0 {
		if d, ok := s.known.denied(&key, rule, cost, monotonic()); ok {
			s.counters.remembered.add()
			return d, nil
		}
	}
	if err := s.ready(ctx); err != nil {
		return comporta.Decision{}, err
	}
	r := newRequest(1)
	r.takes[0] = comporta.Take{Key: key, Rule: rule, Cost: cost}
	if err := s.ask(ctx, r, key.Identity); err != nil {
		return comporta.Decision{}, err
	}
	s.note(r)
	d := r.out[0].Decision
	r.free()
	return d, nil
}

// Settle is [comporta.Store]'s: settlements share round trips; each is carried
// out or not by itself.
func (s *Store) Settle(ctx context.Context, settlements []comporta.Settlement, out []comporta.Taken) error {
	if err := comporta.CheckSettlements(settlements); err != nil {
		return err
	}
	for i := range settlements {
		current := settlements[i]
		current.Rule = current.Rule.Current()
		if s.leases.settle(&current, &out[i]) {
			continue
		}
		if err := s.ready(ctx); err != nil {
			return err
		}
		if err := s.settle(ctx, &current, &out[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.breaker.allow()
}

// take asks for takes of one slot.
func (s *Store) take(ctx context.Context, takes []comporta.Take, out []comporta.Taken, denied bool) error {
	r := newRequest(len(takes))
	copy(r.takes, takes)
	r.denied = denied
	if err := s.ask(ctx, r, takes[0].Key.Identity); err != nil {
		return err
	}
	copy(out, r.out)
	s.note(r)
	r.free()
	return nil
}

// note remembers what was answered to takes.
func (s *Store) note(r *request) {
	for i := range r.takes {
		t := &r.takes[i]
		s.known.note(&t.Key, t.Rule, t.Cost, &r.out[i].Decision, r.sent, r.replied)
	}
}

// Known is the last decision that the store gave about a key, as it was then, and
// how long ago that was; not ok where none is remembered.
func (s *Store) Known(key comporta.Key) (d comporta.Decision, age time.Duration, ok bool) {
	return s.known.last(&key, monotonic())
}

// Instances is how many instances share the store, as last known; at least 1.
func (s *Store) Instances() int { return s.instances.count() }

func (s *Store) settle(ctx context.Context, settlement *comporta.Settlement, out *comporta.Taken) error {
	r := newRequest(1)
	own := *settlement
	r.settlement = &own
	if err := s.ask(ctx, r, own.Key.Identity); err != nil {
		return err
	}
	*out = r.out[0]
	s.known.drop(&own.Key, r.replied)
	r.free()
	return nil
}

// tries is how often a request is asked that a script could not do anything
// about: each time the server's time, or that the key is unusual, is known better.
const tries = 4

// ask asks by the lane of an identity. The request is the caller's again unless
// there is an error.
func (s *Store) ask(ctx context.Context, r *request, identity string) error {
	lane, slot := s.laneOf(identity)
	r.slot = slot
	for try := 1; ; try++ {
		err := lane.ask(ctx, r)
		if err == nil || try == tries {
			return err
		}
		var outside *outsideWindows
		switch {
		case err == errCareful:
			r.careful = true
		case !errors.As(err, &outside):
			return err
		}
		r.err, r.next = nil, nil
		if try == 1 { // others are before it in line now, with later deadlines
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.timeout-time.Duration(monotonic()-r.entered))
			defer cancel()
		}
	}
}

// laneOf is the lane of an identity, and its slot in a cluster.
func (s *Store) laneOf(identity string) (*lane, uint16) {
	if !s.cluster {
		return &s.lanes[0], 0
	}
	slot := slotOf(identity)
	return &s.lanes[int(slot)%len(s.lanes)], slot
}

// about is what the server's clock shows, as far as known.
func (s *Store) about(now int64) comporta.Instant {
	if s.now != nil {
		return comporta.InstantOf(s.now())
	}
	// Calendars end: whatever a server says, it is no time beyond them.
	return comporta.Instant(min(max(0, now/1000+s.offset.Load()), 1<<53))
}

// learn takes the server's time, in µs, from a reply to what was sent at an instant.
func (s *Store) learn(server, sent int64) { s.offset.Store(server - sent/1000) }

// rulesKept is how many rules are kept as numbers: a program that makes rules all
// the time must not fill the memory.
const rulesKept = 4096

func (s *Store) numbersOf(rule *comporta.Rule) *numbers {
	s.mu.RLock()
	n := s.numbers[rule]
	s.mu.RUnlock()
	if n != nil {
		return n
	}
	n = newNumbers(rule, s.most)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.numbers) >= rulesKept {
		clear(s.numbers)
	}
	s.numbers[rule] = n
	return n
}
