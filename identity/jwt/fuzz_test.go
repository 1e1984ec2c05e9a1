package jwt

import (
	"errors"
	"strings"
	"testing"

	"github.com/comporta/comporta/identity"
)

// Whatever is shown, it proves alice or nothing: she is all that the issuer named.
func FuzzOnlyWhatWasSignedIsProved(f *testing.F) {
	s := newSource(f, ours().set(f), nil)
	alice, err := s.For("alice")
	if err != nil {
		f.Fatal(err)
	}
	alice.Plan = "pro"
	token := ours().token(f, "ES256", valid("alice"))
	parts := strings.Split(token, ".")
	f.Add(token)
	f.Add(theirs().token(f, "ES256", valid("bob")))
	f.Add(parts[0] + "." + b64([]byte(valid("bob"))) + "." + parts[2])
	f.Add(b64([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		who, shown, err := s.Prove(t.Context(), bearer(token))
		switch {
		case shown && (who != alice || err != nil):
			t.Fatalf("proves %v, %v", who, err)
		case !shown && (who != identity.Who{} || err != nil && !errors.Is(err, identity.ErrUnproved)):
			t.Fatalf("shows nothing, and %v, %v", who, err)
		}
	})
}

// What the issuer signed is read without harm, and what it proves is a user and a plan
// within their bounds.
func FuzzClaims(f *testing.F) {
	s := newSource(f, ours().set(f), nil)
	for _, seed := range []string{valid("alice"), payload("7", "1e10", `,"nbf":0.5`), `{"sub":"a","sub":"b"}`, `[{}]`, `{"exp":1e999}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := s.o.readClaims(data)
		if err == nil && (!validSubject(c.subject) || c.plan == "" || len(c.plan) > maxPlan || c.until.Unix() < 0) {
			t.Fatalf("reads %+v", c)
		}
		if err != nil && !errors.Is(err, identity.ErrUnproved) {
			t.Fatal(err)
		}
	})
}

func FuzzKeySets(f *testing.F) {
	f.Add([]byte(ours().set(f)))
	f.Add([]byte(set(octKey(ours().secret, `,"kid":"a"`))))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, _, err := readSet(data, Algorithms(), true)
		if (len(keys) == 0) != (err != nil) {
			t.Fatalf("%d keys and %v", len(keys), err)
		}
		for _, k := range keys {
			for _, alg := range k.algorithms {
				if !algorithmOf(alg).fits(k.value) {
					t.Fatalf("%s with a %T", alg, k.value)
				}
				_ = algorithmOf(alg).method.Verify("a.b", make([]byte, 64), k.value)
			}
		}
	})
}
