package comporta_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/storetest"
)

// frozen is a limiter over the model, at noon.
func frozen(t *testing.T, limits ...comporta.Limit) (*comporta.Limiter, *storetest.Clock) {
	t.Helper()
	clock := &storetest.Clock{}
	clock.Set(at(12, 0, 0))
	l, err := comporta.NewLimiter(&storetest.Model{Now: clock.Now}, limits...)
	if err != nil {
		t.Fatal(err)
	}
	return l, clock
}

func TestLimiterIsMadeOfWhatIsRight(t *testing.T) {
	store := &storetest.Model{Now: time.Now}
	good := comporta.Limit{Limit: 1, Window: time.Second}
	for _, tt := range []struct {
		store  comporta.Store
		limits []comporta.Limit
		want   string
	}{
		{nil, []comporta.Limit{good}, "comporta: a limiter needs a store"},
		{store, nil, "comporta: a limiter needs at least one limit"},
		{store, []comporta.Limit{good, good}, `comporta: two limits are named "default": give each a name of its own`},
		{store, []comporta.Limit{{Name: "login", Limit: 1}}, `comporta: limit "login": limit: a window of 0s is out of range: from 1ms to 400 days`},
	} {
		if _, err := comporta.NewLimiter(tt.store, tt.limits...); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

func TestLimiterOfOne(t *testing.T) {
	l, _ := frozen(t, comporta.Limit{Limit: 3, Window: time.Minute})
	ctx := t.Context()
	for i, cost := range []int64{1, 2} {
		if d, err := l.Take(ctx, "a", cost); err != nil || !d.Allowed || d.Limit != 3 {
			t.Errorf("take %d: %+v, %v", i, d, err)
		}
	}
	if d, err := l.Take(ctx, "a", 1); err != nil || d.Allowed || d.RetryAfter != 20*time.Second {
		t.Errorf("the fourth unit: %+v, %v", d, err)
	}
	if d, err := l.Peek(ctx, "a"); err != nil || !d.Allowed || d.Remaining != 0 {
		t.Errorf("a peek: %+v, %v", d, err)
	}
	if d, err := l.Peek(ctx, "b"); err != nil || d.Remaining != 3 {
		t.Errorf("another identity: %+v, %v", d, err)
	}
	if _, err := l.Take(ctx, "a", -1); err == nil {
		t.Error("a negative cost is no error")
	}
	if got := l.Rules(); len(got) != 1 || got[0].Limit().Name != "default" {
		t.Errorf("rules: %v", got)
	}
}

func TestLimiterOfSeveral(t *testing.T) {
	l, clock := frozen(t,
		comporta.Limit{Name: "free", Unlimited: true},
		comporta.Limit{Name: "second", Limit: 3, Window: time.Second},
		comporta.Limit{Name: "hour", Limit: 4, Window: time.Hour, Algorithm: comporta.FixedWindow},
	)
	ctx, out := t.Context(), make([]comporta.Taken, 3)
	if d, err := l.Peek(ctx, "a"); err != nil || d.Limit != 3 {
		t.Errorf("of full budgets the first that is limited is named: %+v, %v", d, err)
	}
	d, err := l.TakeAll(ctx, "a", 3, out)
	if err != nil || !d.Allowed || d.Limit != 3 || d.Remaining != 0 || out[2].Remaining != 1 {
		t.Errorf("three: %+v, %+v, %v", d, out, err)
	}
	if d, err := l.Take(ctx, "a", 1); err != nil || d.Allowed || d.RetryAfter != 333_334*time.Microsecond {
		t.Errorf("the fourth: %+v, %v", d, err)
	}
	clock.Advance(time.Second)
	if d, err := l.Take(ctx, "a", 2); err != nil || d.Allowed || d.Limit != 4 || d.RetryAfter != time.Hour-time.Second {
		t.Errorf("two of the hour's last one: %+v, %v", d, err)
	}
	if d, err := l.TakeAll(ctx, "a", 1, out); err != nil || !d.Allowed || d.Limit != 4 || out[1].Remaining != 2 {
		t.Errorf("a denial was charged: %+v, %+v, %v", d, out, err)
	}
	if d, err := l.Take(ctx, "a", 5); err != nil || d.Allowed || d.RetryAfter != comporta.Never {
		t.Errorf("more than either holds: %+v, %v", d, err)
	}
	if _, err := l.TakeAll(ctx, "a", 1, out[:2]); err == nil || err.Error() != "comporta: room for 2 decisions of 3 limits" {
		t.Errorf("too little room: %v", err)
	}
}

// TestLimiterAnswersForAll: the limit that is named need not be the one with the
// longest delay, nor a denial's the one with the longest retry.
func TestLimiterAnswersForAll(t *testing.T) {
	l, _ := frozen(t,
		comporta.Limit{Name: "queue", Limit: 1, Window: time.Second, Burst: 100, Algorithm: comporta.LeakyBucket},
		comporta.Limit{Name: "strict", Limit: 2, Window: time.Second},
		comporta.Limit{Name: "attempts", Limit: 3, Window: time.Minute, Algorithm: comporta.FixedWindow, Charge: comporta.Attempts},
	)
	for i, want := range []struct {
		limit        int64
		delay, retry time.Duration
	}{
		{2, 0, 0},
		{2, time.Second, 0},
		{2, 0, time.Minute}, // told by the second's limit, but that attempt was the minute's last
	} {
		d, err := l.Take(t.Context(), "a", 1)
		if err != nil || d.Limit != want.limit || d.Delay != want.delay || d.RetryAfter != want.retry {
			t.Errorf("request %d: %+v, %v; want %+v", i, d, err, want)
		}
	}
}

func TestLimiterSettles(t *testing.T) {
	l, _ := frozen(t,
		comporta.Limit{Name: "a", Limit: 10, Window: time.Hour},
		comporta.Limit{Name: "b", Limit: 20, Window: time.Hour, Algorithm: comporta.SlidingLog},
	)
	ctx, out := t.Context(), make([]comporta.Taken, 2)
	if _, err := l.TakeAll(ctx, "who", 6, out); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Settle(ctx, "who", out, 2); err != nil || d.Remaining != 8 {
		t.Errorf("settled to 2: %+v, %v", d, err)
	}
	if _, err := l.TakeAll(ctx, "who", 1, out); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Settle(ctx, "who", out, 9); err != nil || d.Remaining != 0 || !d.Allowed {
		t.Errorf("settled to 9: %+v, %v", d, err)
	}
	denied := make([]comporta.Taken, 2)
	if d, err := l.TakeAll(ctx, "who", 1, denied); err != nil || d.Allowed {
		t.Fatalf("in debt: %+v, %v", d, err)
	}
	if d, err := l.Settle(ctx, "who", denied, 0); err != nil || d.Remaining != 0 {
		t.Errorf("settling what was denied: %+v, %v", d, err)
	}
	if _, err := l.Settle(ctx, "who", out[:1], 0); err == nil || err.Error() != "comporta: settling takes the decisions of all 2 limits, not 1" {
		t.Errorf("one of two: %v", err)
	}
	if _, err := l.Settle(ctx, "who", out, -1); err == nil {
		t.Error("a negative cost is no error")
	}
}

func TestLimiterTellsTheStoresErrors(t *testing.T) {
	store := &storetest.Faults{Store: &storetest.Model{Now: time.Now}, Script: storetest.Always(storetest.Lost)}
	for _, limits := range [][]comporta.Limit{
		{{Limit: 1, Window: time.Second}},
		{{Limit: 1, Window: time.Second}, {Name: "two", Limit: 1, Window: time.Second}},
	} {
		l, err := comporta.NewLimiter(store, limits...)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := l.Take(t.Context(), "a", 1); !errors.Is(err, storetest.ErrFault) || d != (comporta.Decision{}) {
			t.Errorf("take: %+v, %v", d, err)
		}
		if err := l.Wait(t.Context(), "a", 1); !errors.Is(err, storetest.ErrFault) {
			t.Errorf("wait: %v", err)
		}
		taken := make([]comporta.Taken, len(limits))
		taken[0].Receipt = comporta.Receipt{At: 1, Cost: 1}
		if _, err := l.Settle(context.Background(), "a", taken, 0); !errors.Is(err, storetest.ErrFault) {
			t.Errorf("settle: %v", err)
		}
	}
}
