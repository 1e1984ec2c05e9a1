package identity_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta/identity"
)

// keySource is a source of keys that can be down.
type keySource struct {
	mu    sync.Mutex
	keys  map[[32]byte]identity.Key
	down  bool
	calls int
}

var errDown = errors.New("the source is down")

func newKeySource(keys ...identity.Key) *keySource {
	s := &keySource{keys: map[[32]byte]identity.Key{}}
	for _, k := range keys {
		s.keys[k.Sum] = k
	}
	return s
}

func (s *keySource) lookup(_ context.Context, sum [32]byte) (identity.Key, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.down {
		return identity.Key{}, false, errDown
	}
	k, is := s.keys[sum]
	k.Sum = [32]byte{}
	return k, is, nil
}

func sumOf(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

func cached(t testing.TB, lookup identity.Lookup, o identity.CachedOptions) *identity.Cached {
	t.Helper()
	c, err := identity.NewCached(lookup, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// handClock is set by hand.
type handClock struct{ now time.Time }

func newHandClock() *handClock                       { return &handClock{time.Unix(1_800_000_000, 0)} }
func (c *handClock) read() time.Time                 { return c.now }
func (c *handClock) wait(d time.Duration)            { c.now = c.now.Add(d) }
func (c *handClock) options() identity.CachedOptions { return identity.CachedOptions{Now: c.read} }

// answers holds what is answered for a key, after how many calls of the source in all.
func answers(t *testing.T, c *identity.Cached, s *keySource, secret, id string, calls int) {
	t.Helper()
	k, is, err := c.Find(t.Context(), sumOf(secret))
	if err != nil || is != (id != "") || k.ID != id || is && k.Sum != sumOf(secret) {
		t.Errorf("%s: %v, %v, %v, want %q", secret, k, is, err, id)
	}
	if s.calls != calls {
		t.Errorf("%s: the source was asked %d times, want %d", secret, s.calls, calls)
	}
}

func TestWhatTheSourceSaidIsRemembered(t *testing.T) {
	s, now := newKeySource(keyOf("acme", "pro", "k")), newHandClock()
	c := cached(t, s.lookup, now.options())
	if c.Known(sumOf("k")) {
		t.Error("known before it was asked for")
	}
	answers(t, c, s, "k", "acme", 1)
	answers(t, c, s, "x", "", 2)
	now.wait(identity.DefaultUnknownTTL - 1)
	answers(t, c, s, "x", "", 2)
	now.wait(1)
	if c.Known(sumOf("x")) || !c.Known(sumOf("k")) {
		t.Error("what is remembered is not as long as it should be")
	}
	s.keys[sumOf("x")] = keyOf("new", "", "x")
	answers(t, c, s, "x", "new", 3)
	now.wait(identity.DefaultKeyTTL - identity.DefaultUnknownTTL - 1)
	answers(t, c, s, "k", "acme", 3)
	now.wait(1)
	delete(s.keys, sumOf("k"))
	answers(t, c, s, "k", "", 4)
	answers(t, c, s, "k", "", 4)
	if got, want := c.Stats(), (identity.CachedStats{Known: 1, Unknown: 1, Asked: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWhatHoldsWhileTheSourceIsDown(t *testing.T) {
	for on, known := range map[identity.OnLookupError]string{identity.Stale: "acme", identity.Unknown: "", identity.Refuse: "503"} {
		s, now := newKeySource(keyOf("acme", "pro", "k"), keyOf("late", "", "l")), newHandClock()
		o := now.options()
		o.OnError = on
		c := cached(t, s.lookup, o)
		said := func(secret string) string {
			k, is, err := c.Find(t.Context(), sumOf(secret))
			wrong, refused := errors.AsType[*identity.RequestError](err)
			switch {
			case refused && !is && wrong.Status == 503:
				return "503"
			case err != nil || !is && k != (identity.Key{}):
				t.Errorf("%v, %v, %v", k, is, err)
			}
			return k.ID
		}
		said("k")
		s.down = true
		if got := said("k"); got != "acme" {
			t.Errorf("%v: remembered, and yet %q", on, got)
		}
		now.wait(identity.DefaultKeyTTL)
		never := ""
		if on == identity.Refuse {
			never = "503"
		}
		for range 3 {
			if k, l := said("k"), said("l"); k != known || l != never {
				t.Errorf("%v: a key that was known is %q, one that was not %q; want %q, %q", on, k, l, known, never)
			}
		}
		if s.calls != 3 || !c.Known(sumOf("k")) || !c.Known(sumOf("l")) {
			t.Errorf("%v: the source was asked %d times", on, s.calls)
		}
		if got := c.Stats(); got.Asked != 3 || got.Failed != 2 || got.Problem != errDown {
			t.Errorf("%v: %+v", on, got)
		}
		s.down = false
		now.wait(time.Second)
		if k, l := said("k"), said("l"); k != "acme" || l != "late" || c.Stats().Problem != nil {
			t.Errorf("%v: it is up again, and a key that was known is %q, one that was not %q", on, k, l)
		}
	}
}

// A source that is down is tried once a second, whatever is asked for.
func TestASourceThatIsDownIsLeftAlone(t *testing.T) {
	s, now := newKeySource(keyOf("acme", "", "k")), newHandClock()
	c := cached(t, s.lookup, now.options())
	answers(t, c, s, "k", "acme", 1)
	s.down = true
	for i := range 1000 {
		answers(t, c, s, fmt.Sprint("random", i), "", min(i, 4)+2)
	}
	if unknown := sumOf("never asked for"); !c.Known(unknown) {
		t.Error("it would be asked")
	}
	for i := range 10 {
		now.wait(time.Second)
		for j := range 10 {
			answers(t, c, s, fmt.Sprint("random", i, j), "", 7+i)
		}
	}
	now.wait(identity.DefaultKeyTTL)
	answers(t, c, s, "k", "acme", 17)
	s.down = false
	now.wait(time.Second)
	answers(t, c, s, "x", "", 18)
	answers(t, c, s, "y", "", 19) // all is well
}

// While one look-up tries a source that is down, nobody else waits for it.
func TestNobodyWaitsForASourceThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cached(t, func(ctx context.Context, _ [32]byte) (identity.Key, bool, error) {
			<-ctx.Done()
			return identity.Key{}, false, ctx.Err()
		}, identity.CachedOptions{})
		for i := range 5 {
			c.Find(t.Context(), sumOf(fmt.Sprint("random", i)))
		}
		time.Sleep(time.Second)
		var trying sync.WaitGroup
		trying.Go(func() { c.Find(t.Context(), sumOf("k")) })
		synctest.Wait()
		start := time.Now()
		for i := range 100 {
			c.Find(t.Context(), sumOf(fmt.Sprint("other", i)))
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("they waited for %v", took)
		}
		trying.Wait()
		if got := c.Stats(); got.Asked != 6 {
			t.Errorf("%+v", got)
		}
	})
}

// An attacker's random keys cost the source one call each, are remembered within
// the bound, and push out no key that is known.
func TestRandomKeysPushOutNobody(t *testing.T) {
	most, random := 1000, 100_000
	if raced {
		random = 10_000
	}
	s, now := newKeySource(keyOf("acme", "pro", "k")), newHandClock()
	o := now.options()
	o.Max = most
	c := cached(t, s.lookup, o)
	answers(t, c, s, "k", "acme", 1)
	for i := range random {
		answers(t, c, s, fmt.Sprint("random", i), "", i+2)
		if got := c.Stats(); got.Known != 1 || got.Unknown > most {
			t.Fatalf("%+v", got)
		}
	}
	for i := random - most; i < random; i++ {
		answers(t, c, s, fmt.Sprint("random", i), "", random+1)
	}
	answers(t, c, s, "k", "acme", random+1)

	// By the default bound, all of them are asked for once in their time.
	s = newKeySource()
	c = cached(t, s.lookup, now.options())
	for range 2 {
		for i := range random {
			c.Find(t.Context(), sumOf(fmt.Sprint("random", i)))
		}
	}
	if s.calls != random {
		t.Errorf("the source was asked %d times", s.calls)
	}
}

func TestOneLookUpIsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := cached(t, func(ctx context.Context, sum [32]byte) (identity.Key, bool, error) {
			calls.Add(1)
			time.Sleep(100 * time.Millisecond)
			return identity.Key{ID: "acme"}, true, ctx.Err()
		}, identity.CachedOptions{})
		begun, end := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for i := range 50 {
			ctx := t.Context()
			if i == 0 {
				ctx = begun
			}
			waiting.Go(func() {
				if k, is, err := c.Find(ctx, sumOf("k")); !is || err != nil || k.ID != "acme" {
					t.Errorf("%v, %v, %v", k, is, err)
				}
			})
			synctest.Wait()
		}
		end() // who began it is gone, the others wait for it
		hurry, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if k, is, err := c.Find(hurry, sumOf("k")); is || err != nil {
			t.Errorf("who cannot wait has no stated answer: %v, %v, %v", k, is, err)
		}
		waiting.Wait()
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

func TestALookUpEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cached(t, func(ctx context.Context, _ [32]byte) (identity.Key, bool, error) {
			<-ctx.Done()
			return identity.Key{}, false, ctx.Err()
		}, identity.CachedOptions{Timeout: 200 * time.Millisecond})
		start := time.Now()
		if k, is, err := c.Find(t.Context(), sumOf("k")); is || err != nil {
			t.Errorf("%v, %v, %v", k, is, err)
		}
		if took := time.Since(start); took != 200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		c.Find(t.Context(), sumOf("k"))
		if time.Since(start) != 200*time.Millisecond {
			t.Error("the next one waits too")
		}
	})
}

// Random keys fill the places of their own kind; known keys are looked up beside them,
// and the crowd is not taken for a source that is down.
func TestACrowdOfRandomKeysIsInNobodysWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		known, other := sumOf("k"), sumOf("l")
		c := cached(t, func(ctx context.Context, sum [32]byte) (identity.Key, bool, error) {
			if sum == known || sum == other {
				return identity.Key{ID: "acme"}, true, nil
			}
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(400 * time.Millisecond)
			return identity.Key{}, false, nil
		}, identity.CachedOptions{OnError: identity.Refuse})
		c.Find(t.Context(), known)
		c.Find(t.Context(), other)
		time.Sleep(identity.DefaultKeyTTL)
		var crowd sync.WaitGroup
		for i := range 1000 {
			crowd.Go(func() { c.Find(t.Context(), sumOf(fmt.Sprint("random", i))) })
		}
		synctest.Wait()
		if k, is, err := c.Find(t.Context(), known); !is || err != nil {
			t.Errorf("%v, %v, %v", k, is, err)
		}
		time.Sleep(600 * time.Millisecond) // most of the crowd has given up
		if k, is, err := c.Find(t.Context(), other); !is || err != nil {
			t.Errorf("%v, %v, %v", k, is, err)
		}
		crowd.Wait()
		if most.Load() != 64 {
			t.Errorf("%d look-ups at a time", most.Load())
		}
		if got := c.Stats(); got.Failed == 0 || got.Asked != 1004 {
			t.Errorf("%+v", got)
		}
	})
}

func TestWhatASourceMayNotSay(t *testing.T) {
	for _, k := range []identity.Key{{}, {ID: "a\nb"}, {ID: "acme", Plan: " "}, {ID: strings.Repeat("a", identity.MaxID+1)}} {
		c := cached(t, func(context.Context, [32]byte) (identity.Key, bool, error) { return k, true, nil }, identity.CachedOptions{})
		if found, is, err := c.Find(t.Context(), sumOf("k")); is || err != nil || c.Stats().Problem == nil {
			t.Errorf("%q: %v, %v, %v", k.ID, found, is, err)
		}
	}
}

// A source that panics holds nobody up but the one request.
func TestASourceThatPanics(t *testing.T) {
	panics := true
	c := cached(t, func(context.Context, [32]byte) (identity.Key, bool, error) {
		if panics {
			panic("on purpose")
		}
		return identity.Key{ID: "acme"}, true, nil
	}, identity.CachedOptions{})
	func() {
		defer func() { recover() }()
		c.Find(t.Context(), sumOf("k"))
	}()
	panics = false
	if _, is, err := c.Find(t.Context(), sumOf("k")); !is || err != nil {
		t.Errorf("%v, %v", is, err)
	}
}

func TestCachedOptionsThatAreNone(t *testing.T) {
	for _, o := range []identity.CachedOptions{{TTL: -1}, {UnknownTTL: -1}, {Timeout: -1}, {Max: -1}, {OnError: 3}} {
		if _, err := identity.NewCached(newKeySource().lookup, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// What is dear is said before: a look-up is a credential until it is remembered.
func TestStagesOfKeys(t *testing.T) {
	s := newKeySource(keyOf("acme", "pro", "k"))
	a := apiKey(t, everywhere)
	r := showing("", "X-Api-Key: k")
	if a.Stage(r) != identity.Look {
		t.Error("a table is dear")
	}
	c := cached(t, s.lookup, identity.CachedOptions{})
	a.Use(c)
	for _, none := range []*identity.Request{showing(""), showing("", "X-Api-Key: k", "X-Api-Key: o"), showing("key=%")} {
		if a.Stage(none) != identity.Look {
			t.Error("nothing to look up, and yet dear")
		}
	}
	if a.Stage(r) != identity.Credential || s.calls != 0 {
		t.Errorf("a look-up is at hand, after %d calls", s.calls)
	}
	if who, shown, err := a.Prove(t.Context(), r); !shown || err != nil || who != (identity.Who{ID: "api_key:acme", Plan: "pro"}) {
		t.Errorf("%v, %v, %v", who, shown, err)
	}
	if a.Stage(r) != identity.Look {
		t.Error("what is remembered is dear")
	}
	refusing := cached(t, newDown().lookup, identity.CachedOptions{OnError: identity.Refuse})
	a.Use(refusing)
	if who, shown, err := a.Prove(t.Context(), r); shown || err == nil || errors.Is(err, identity.ErrUnproved) {
		t.Errorf("%v, %v, %v", who, shown, err)
	}
	if who, err := a.For("acme"); err != nil || who != (identity.Who{ID: "api_key:acme"}) || !a.TellsPlans() {
		t.Errorf("%v, %v", who, err)
	}
}

func newDown() *keySource {
	s := newKeySource()
	s.down = true
	return s
}

// Known, unknown and failing keys under traffic, in a cache that is too small for them.
func TestCachedUnderTraffic(t *testing.T) {
	lookup := func(_ context.Context, sum [32]byte) (identity.Key, bool, error) {
		switch sum[0] % 4 {
		case 0:
			return identity.Key{}, false, nil
		case 1:
			return identity.Key{}, false, errDown
		}
		return identity.Key{ID: fmt.Sprintf("%x", sum)}, true, nil
	}
	c := cached(t, lookup, identity.CachedOptions{Max: 20, TTL: time.Microsecond, UnknownTTL: time.Microsecond})
	var traffic sync.WaitGroup
	for g := range 8 {
		traffic.Go(func() {
			for i := range 600 {
				sum := sumOf(fmt.Sprint((i * (g + 1)) % 60))
				k, is, err := c.Find(t.Context(), sum)
				if err != nil || is && (k.ID != fmt.Sprintf("%x", sum) || k.Sum != sum) || is && sum[0]%4 < 2 {
					t.Errorf("%v, %v, %v", k, is, err)
				}
				c.Known(sum)
				if got := c.Stats(); got.Known > 20 || got.Unknown > 20 {
					t.Errorf("%+v", got)
				}
			}
		})
	}
	traffic.Wait()
}

func BenchmarkCached(b *testing.B) {
	s := newKeySource(keyOf("acme", "pro", "sk_live_0123456789012345678901234567890123456789"))
	a := apiKey(b, everywhere)
	a.Use(cached(b, s.lookup, identity.CachedOptions{TTL: time.Hour}))
	r := showing("", "X-Api-Key: sk_live_0123456789012345678901234567890123456789")
	b.ReportAllocs()
	for b.Loop() {
		if a.Stage(r); !showsKey(a, r) {
			b.Fatal("not shown")
		}
	}
}

func showsKey(a *identity.APIKey, r *identity.Request) bool {
	_, shown, _ := a.Prove(context.Background(), r)
	return shown
}
