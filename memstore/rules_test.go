package memstore

import (
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// ruleOf is a new rule of a limit of so many a minute.
func ruleOf(t *testing.T, units int64) *comporta.Rule {
	t.Helper()
	rule, err := comporta.Limit{Limit: units, Window: time.Minute}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// A thousand reloads are a thousand rules, of which keys are under the last alone.
func TestOldRulesDoNotPileUp(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	s, err := New(Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	key := comporta.Key{Limit: "a", Identity: "address:192.0.2.1"}
	held := comporta.Key{Limit: "b", Identity: "address:192.0.2.1"}
	old := ruleOf(t, 7)
	if _, err := s.TakeOne(t.Context(), held, old, 3); err != nil {
		t.Fatal(err)
	}
	for i := range int64(1000) {
		// Of the same numbers as before too, as when something else is changed.
		for _, rule := range []*comporta.Rule{ruleOf(t, 100_000+i), ruleOf(t, 100_000+i)} {
			d, err := s.TakeOne(t.Context(), key, rule, 1)
			if err != nil || !d.Allowed || d.Limit != 100_000+i {
				t.Fatalf("reload %d: %+v, %v", i, d, err)
			}
		}
		if i%10 == 9 {
			s.Sweep()
		}
	}
	if n := len(s.rules.byRule); n > 10 {
		t.Errorf("%d rules are remembered", n)
	}
	if n := s.rules.last; n > 30 {
		t.Errorf("%d numbers were needed", n)
	}
	if d, err := s.TakeOne(t.Context(), held, old, 0); err != nil || d.Remaining != 4 {
		t.Errorf("a key that nobody asked about: %+v, %v", d, err)
	}
}

// Numbers are given anew under traffic, and no key is ever read under another's rule.
func TestNumbersAreGivenAnewUnderTraffic(t *testing.T) {
	s, err := New(Options{Sweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range int64(4) {
		all.Go(func() {
			key := comporta.Key{Limit: "a", Identity: string(rune('a' + i%2))}
			for n := int64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				full := 1000 + i*1_000_000 + n%20
				d, err := s.TakeOne(t.Context(), key, ruleOf(t, full), 1)
				if err != nil || d.Limit != full {
					t.Errorf("%+v, %v", d, err)
					return
				}
				if d, err = s.TakeOne(t.Context(), key, ruleOf(t, full), full+1); err != nil || d.Allowed || d.Limit != full {
					t.Errorf("a denial: %+v, %v", d, err)
					return
				}
			}
		})
	}
	for range 30 {
		s.Sweep()
	}
	close(stop)
	all.Wait()
}
