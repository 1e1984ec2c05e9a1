package jwt

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/comporta/comporta/identity"
)

func TestTheCacheIsBounded(t *testing.T) {
	s := newSource(t, ours().set(t), func(o *Options) { o.MaxCached = 10 })
	often := bearer(ours().token(t, "EdDSA", valid("often")))
	for i := range 100 {
		proves(t, s, bearer(ours().token(t, "EdDSA", valid(fmt.Sprint(i)))), fmt.Sprint(i), "pro")
		if i > 0 && s.Stage(often) != identity.Look {
			t.Fatalf("after %d others: one that is asked for all the time was forgotten", i)
		}
		proves(t, s, often, "often", "pro")
		if n := s.Stats().Cached; n > 10 {
			t.Fatalf("%d tokens are remembered", n)
		}
	}
}

// Keys that are read again as they were forget nothing; others forget everything.
func TestNewKeysForgetWhatTheOldOnesProved(t *testing.T) {
	s := newSource(t, ours().set(t), nil)
	r := bearer(ours().token(t, "ES256", valid("alice")))
	proves(t, s, r, "alice", "pro")
	if err := s.Load(t.Context()); err != nil || s.Stage(r) != identity.Look {
		t.Errorf("the same keys: %v, %v", err, s.Stage(r))
	}
	write(t, s.o.File, theirs().set(t))
	if err := s.Load(t.Context()); err != nil || s.Stage(r) != identity.Credential {
		t.Errorf("other keys: %v, %v", err, s.Stage(r))
	}
	refused(t, s, r, errSignature)
}

// What is remembered is what would be verified, at every instant.
func TestTheCacheChangesNoAnswer(t *testing.T) {
	keys := ours().set(t)
	var at time.Time
	clock := func(o *Options) { o.Now = func() time.Time { return at } }
	remembers, forgets := newSource(t, keys, clock), newSource(t, keys, clock)
	tokens := make([]*identity.Request, 8)
	for i := range tokens {
		p := payload(fmt.Sprintf("%d", i), fmt.Sprint(now.Unix()+int64(i*40)), fmt.Sprintf(`,"nbf":%d`, now.Unix()+int64(i*20)))
		tokens[i] = bearer(ours().token(t, "EdDSA", p))
	}
	rapid.Check(t, func(t *rapid.T) {
		at = now.Add(time.Duration(rapid.IntRange(-100, 400).Draw(t, "second")) * time.Second)
		r := tokens[rapid.IntRange(0, len(tokens)-1).Draw(t, "token")]
		forgets.ring.Store(&ring{keys: remembers.ring.Load().keys, cache: newCache(2)})
		who, shown, err := remembers.Prove(t.Context(), r)
		wantWho, wantShown, wantErr := forgets.Prove(t.Context(), r)
		if who != wantWho || shown != wantShown || err != wantErr {
			t.Fatalf("%v, %v, %v; verified anew: %v, %v, %v", who, shown, err, wantWho, wantShown, wantErr)
		}
	})
}

// Keys change under traffic: each answer is that of the old keys or of the new.
func TestKeysChangeUnderTraffic(t *testing.T) {
	sets := []string{
		set(ecKey(t, &ours().ec.PublicKey, `,"kid":"ES256"`)),
		set(ecKey(t, &theirs().ec.PublicKey, `,"kid":"ES256"`)),
		set(ecKey(t, &ours().ec.PublicKey, `,"kid":"ES256"`), ecKey(t, &theirs().ec.PublicKey, `,"kid":"ES256"`)),
	}
	p := publish(t, sets[2])
	s := p.source(t, nil)
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, s)
	requests := map[string]*identity.Request{
		"alice": bearer(ours().token(t, "ES256", valid("alice"))),
		"bob":   bearer(theirs().token(t, "ES256", valid("bob"))),
	}
	forged := bearer(sign(t, "ES256", newIssuer().ec, `{"alg":"ES256","kid":"ES256"}`, valid("alice")))
	stop := make(chan struct{})
	var traffic sync.WaitGroup
	for name, r := range requests {
		want, err := s.For(name)
		if err != nil {
			t.Fatal(err)
		}
		want.Plan = "pro"
		traffic.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if who, shown, err := s.Prove(t.Context(), r); shown && who != want || !shown && !errors.Is(err, identity.ErrUnproved) {
					t.Errorf("%s: %v, %v, %v", name, who, shown, err)
				}
				if who, shown, _ := s.Prove(t.Context(), forged); shown {
					t.Errorf("forged: %v", who)
				}
				s.Stage(r)
				s.Stats()
			}
		})
	}
	for i := range 60 {
		p.say(200, sets[i%len(sets)])
		if err := s.Load(t.Context()); err != nil {
			t.Error(err)
		}
		// What holds after Load holds for all of its keys.
		_, alice, _ := s.Prove(t.Context(), requests["alice"])
		_, bob, _ := s.Prove(t.Context(), requests["bob"])
		if alice != (i%3 != 1) || bob != (i%3 != 0) {
			t.Errorf("set %d: alice %v, bob %v", i%3, alice, bob)
		}
	}
	close(stop)
	traffic.Wait()
}
