package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
)

// TestResetForgetsWhatIsRemembered: a client that is denied without asking, and
// whose units lie ahead, is new at once.
func TestResetForgetsWhatIsRemembered(t *testing.T) {
	s := openOn(t, redistest.Start(t), redisstore.Options{})
	plain, err := hourly(2).Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []*comporta.Rule{plain, leased(t, hourly(1000), comporta.Lease{Size: 100, TTL: time.Minute})} {
		for range 3 {
			takeHot(t, s, rule, rule.Full()/2)
			s.Quiet()
		}
		takeHot(t, s, rule, rule.Full())
		if err := s.Reset(t.Context(), []comporta.Key{hot}); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := s.Known(hot); ok || s.Held(hot) != 0 {
			t.Errorf("%v: after a reset the last answer is known (%v) and %d units lie ahead", rule.Limit(), ok, s.Held(hot))
		}
		if d := takeHot(t, s, rule, rule.Full()); !d.Allowed {
			t.Errorf("%v: after a reset a full budget is denied: %+v", rule.Limit(), d)
		}
		s.Quiet()
		if err := s.Reset(t.Context(), []comporta.Key{hot}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestResetInACluster resets keys of several slots at once.
func TestResetInACluster(t *testing.T) {
	store, err := redisstore.New(dial(t, redistest.StartCluster(t).URL()), redisstore.Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	rule := compile(t, hourly(5))
	var keys []comporta.Key
	for _, identity := range []string{"a", "b", "c"} {
		keys = append(keys, comporta.Key{Limit: "day", Identity: identity}, comporta.Key{Limit: "month", Identity: identity})
	}
	for _, key := range keys {
		if _, err := store.TakeOne(t.Context(), key, rule, 3); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Reset(t.Context(), keys[:5]); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		want := int64(5)
		if i == 5 {
			want = 2
		}
		if d, err := store.TakeOne(t.Context(), key, rule, 0); err != nil || d.Remaining != want {
			t.Errorf("%v: %d remain, want %d: %v", key, d.Remaining, want, err)
		}
	}
}

// TestResetSaysWhenItFails: as other calls do, and without asking while the store
// is down.
func TestResetSaysWhenItFails(t *testing.T) {
	s, client := openCuttable(t, redistest.Start(t), redisstore.Options{Failures: 2})
	if err := s.Reset(t.Context(), nil); err != nil {
		t.Errorf("resetting nothing: %v", err)
	}
	client.cut.Store(true)
	if err := s.Reset(t.Context(), []comporta.Key{hot}); err == nil || errors.Is(err, comporta.ErrUnspent) {
		t.Errorf("cut off: %v", err)
	}
	eventually(t, "the breaker opens", func() bool {
		return errors.Is(s.Reset(t.Context(), []comporta.Key{hot}), redisstore.ErrDown)
	})
}
