package jwt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta/identity"
)

// refused holds that a request proves nothing, for that reason.
func refused(t *testing.T, s *Source, r *identity.Request, why reason) {
	t.Helper()
	who, shown, err := s.Prove(t.Context(), r)
	if shown || who != (identity.Who{}) || !errors.Is(err, identity.ErrUnproved) || err != why {
		t.Errorf("proves %v, %v, %v; want %q", who, shown, err, why)
	}
	if id, shown := s.Identity(r); shown || id != "" {
		t.Errorf("shows %q", id)
	}
}

// proves holds that a request proves that user.
func proves(t *testing.T, s *Source, r *identity.Request, name, plan string) {
	t.Helper()
	known, err := s.For(name)
	if err != nil {
		t.Fatal(err)
	}
	known.Plan = plan
	who, shown, err := s.Prove(t.Context(), r)
	if !shown || err != nil {
		t.Fatalf("proves nothing: %v", err)
	}
	if diff := cmp.Diff(known, who); diff != "" {
		t.Errorf("who (-want +got):\n%s", diff)
	}
}

func TestEveryAlgorithmProvesItsUser(t *testing.T) {
	for _, alg := range Algorithms() {
		t.Run(alg, func(t *testing.T) {
			var s *Source
			if alg == "HS256" {
				s = newSource(t, string(ours().secret)+"\n", func(o *Options) { o.SecretFile, o.File = o.File, "" })
			} else {
				s = newSource(t, ours().set(t), nil)
			}
			r := bearer(ours().token(t, alg, valid("alice")))
			if got := s.Stage(r); got != identity.Credential {
				t.Errorf("stage %v before it was seen", got)
			}
			proves(t, s, r, "alice", "pro")
			if got := s.Stage(r); got != identity.Look {
				t.Errorf("stage %v after it was seen", got)
			}
			proves(t, s, r, "alice", "pro")
			id, shown := s.Identity(r)
			if !shown || len(id) != len("user:")+22 || strings.Contains(id, "alice") {
				t.Errorf("identity %q", id)
			}
		})
	}
}

// The last letter of a signature has bits to spare: were they ignored, one token had
// sixteen texts.
func TestATokenHasOneText(t *testing.T) {
	s := newSource(t, ours().set(t), nil)
	token := ours().token(t, "EdDSA", valid("alice"))
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	end := len(token) - 1
	at := strings.IndexByte(letters, token[end])
	refused(t, s, bearer(token[:end]+letters[at+1:at+2]), errForm)
	proves(t, s, bearer(token), "alice", "pro")
}

// A victim and a stranger who names it: what the stranger sends is never the victim's.
func TestOnlyTheIssuerNamesUsers(t *testing.T) {
	s := newSource(t, ours().set(t), nil)
	victim := `{"iss":"https://id.example.com","aud":"api","sub":"account 7","exp":%d}`
	good := fmt.Sprintf(victim, now.Add(time.Hour).Unix())
	proves(t, s, bearer(ours().token(t, "RS256", good)), "account 7", "free")

	parts := strings.Split(ours().token(t, "RS256", good), ".")
	forged := map[string]struct {
		token string
		why   reason
	}{
		"another's key":       {theirs().token(t, "RS256", good), errSignature},
		"another's EC key":    {theirs().token(t, "ES256", good), errSignature},
		"another's Ed key":    {theirs().token(t, "EdDSA", good), errSignature},
		"expired":             {ours().token(t, "RS256", fmt.Sprintf(victim, now.Add(-time.Hour).Unix())), errExpired},
		"no signature":        {parts[0] + "." + parts[1] + ".", errForm},
		"another's payload":   {parts[0] + "." + b64([]byte(valid("mallory"))) + "." + parts[2], errSignature},
		"a signature cut off": {parts[0] + "." + parts[1] + "." + parts[2][:len(parts[2])-2], errSignature},
		"two parts":           {parts[0] + "." + parts[1], errForm},
		"four parts":          {strings.Join(parts, ".") + ".x", errForm},
		"a line end in it":    {parts[0] + "." + parts[1] + "." + parts[2][:8] + "\n" + parts[2][8:], errForm},
		"padded":              {parts[0] + "." + parts[1] + "." + parts[2] + "==", errForm},
		"two bearers":         {strings.Join(parts, ".") + ", Bearer " + strings.Join(parts, "."), errForm},
		"too long":            {strings.Join(parts, ".") + strings.Repeat("A", MaxToken), errLong},
	}
	for _, none := range []string{"none", "None", "NONE", "nOnE", "none ", "", "null", "\u006eone"} {
		h := b64(fmt.Appendf(nil, `{"alg":%q,"kid":"rsa"}`, none)) + "." + parts[1] + "."
		forged["alg "+none] = struct {
			token string
			why   reason
		}{h + parts[2], errAlgorithm}
		forged["alg "+none+" unsigned"] = struct {
			token string
			why   reason
		}{h, errForm}
	}
	for name, f := range forged {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				refused(t, s, bearer(f.token), f.why)
			}
		})
	}
	proves(t, s, bearer(strings.Join(parts, ".")), "account 7", "free")
	if n := s.Stats().Cached; n != 1 {
		t.Errorf("%d tokens are remembered, want the victim's alone", n)
	}
}

func TestWhatIsNoBearerShowsNothing(t *testing.T) {
	s := newSource(t, ours().set(t), nil)
	token := ours().token(t, "ES256", valid("alice"))
	for _, lines := range [][]string{nil, {""}, {"Basic YTpi"}, {"Bearerx y"}, {token}} {
		r := &identity.Request{Header: map[string][]string{"Authorization": lines}}
		if who, shown, err := s.Prove(t.Context(), r); shown || err != nil || who.ID != "" || s.Stage(r) != identity.Look {
			t.Errorf("%q: %v, %v, %v", lines, who, shown, err)
		}
	}
}

func TestSeveralHeadersProveNothing(t *testing.T) {
	s := newSource(t, ours().set(t), nil)
	a, b := ours().token(t, "ES256", valid("alice")), ours().token(t, "ES256", valid("bob"))
	lines := func(l ...string) *identity.Request {
		return &identity.Request{Header: map[string][]string{"Authorization": l}}
	}
	refused(t, s, lines("Bearer "+a, "Bearer "+b), errSeveral)
	refused(t, s, lines("Basic YTpi", "Bearer "+b), errSeveral)
	proves(t, s, lines("Bearer "+a, "Bearer "+a), "alice", "pro")
	proves(t, s, lines("", "bEARER   "+a+" "), "alice", "pro")
}

func TestTokenInAHeaderOfItsOwn(t *testing.T) {
	s := newSource(t, ours().set(t), func(o *Options) { o.Header = "x-user-token" })
	r := &identity.Request{Header: map[string][]string{s.HeaderName(): {ours().token(t, "EdDSA", valid("alice"))}}}
	proves(t, s, r, "alice", "pro")
	r.Header = map[string][]string{"Authorization": {"Bearer x.y.z"}}
	if _, shown, err := s.Prove(t.Context(), r); shown || err != nil {
		t.Errorf("another header: %v, %v", shown, err)
	}
}

func TestNoKeysProveNothing(t *testing.T) {
	o := options(t)
	o.File = "testdata/there/is/none.json"
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := bearer(ours().token(t, "RS256", valid("alice")))
	refused(t, s, r, errNoKeys)
	if err := s.Load(context.Background()); err == nil || err.Error() != "the key set testdata/there/is/none.json: no such file or directory" {
		t.Errorf("Load: %v", err)
	}
	refused(t, s, r, errNoKeys)
	if stats := s.Stats(); stats.Keys != 0 || stats.Problem == nil || !stats.Loaded.IsZero() {
		t.Errorf("stats: %+v", stats)
	}
}
