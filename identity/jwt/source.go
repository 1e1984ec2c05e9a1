package jwt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/comporta/comporta/identity"
)

// prefix begins every user's identity.
const prefix = "user:"

// A Source tells users apart by their tokens. It is an identity.Prover and an
// identity.Named.
//
// It knows no key until [Source.Load] or [Source.Run] has read some; until then no
// token proves anything. It is safe for concurrent use.
type Source struct {
	o      Options // checked
	client *http.Client
	ring   atomic.Pointer[ring] // nil before the first keys
	wake   chan struct{}        // has Run load at once; holds one

	loading sync.Mutex // one Load at a time

	mu      sync.Mutex
	running bool
	flight  chan struct{} // closed when the keys were asked for again; nil where nobody waits
	asked   time.Time     // when a token last had the keys asked for
	loaded  time.Time
	problem error
}

// ring is a set of keys and the tokens that were verified with it. Keys that change
// make a new one, so that nothing is remembered that they would not verify.
type ring struct {
	sum   digest // of what was read
	keys  []key
	cache *cache
}

// Stats is how a Source is doing.
type Stats struct {
	// Keys is how many verify tokens now.
	Keys int
	// Cached is about how many tokens are remembered.
	Cached int
	// Loaded is when the keys were last read as they are published; zero is never.
	Loaded time.Time
	// Problem is what was wrong when they were last to be read, even where older keys
	// are still in use or others of the set are; nil is nothing.
	Problem error
}

// New checks the options. It opens and asks nothing.
func New(o Options) (*Source, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	return &Source{o: o, client: o.client(), wake: make(chan struct{}, 1)}, nil
}

// Identity is "user:" and the hash of the user's name.
func (s *Source) Identity(r *identity.Request) (string, bool) {
	who, shown, err := s.Prove(context.Background(), r)
	return who.ID, shown && err == nil
}

// Stage is Credential where a signature would have to be verified: not for a request
// without token, one that is plainly none, or one that was verified before.
func (s *Source) Stage(r *identity.Request) identity.Stage {
	token, shown, err := s.find(r)
	if !shown || err != nil {
		return identity.Look
	}
	ring := s.ring.Load()
	if ring == nil || ring.cache.get(digestOf(token)) != nil {
		return identity.Look
	}
	return identity.Credential
}

// Prove is the user whose token the request shows. A token that is forged, expired or
// meant for somebody else is an error that is ErrUnproved and says which.
//
// It costs under a microsecond for a token that was seen before, else a signature. A
// token that names an unknown key may wait until the URL was asked, once in [Ask]
// and as long as its Timeout or ctx allows.
func (s *Source) Prove(ctx context.Context, r *identity.Request) (identity.Who, bool, error) {
	token, shown, err := s.find(r)
	if !shown || err != nil {
		return identity.Who{}, false, err
	}
	ring := s.ring.Load()
	if ring == nil {
		return identity.Who{}, false, errNoKeys
	}
	sum := digestOf(token)
	if p := ring.cache.get(sum); p != nil {
		return p.at(s.o.Now())
	}
	ring, c, err := s.verify(ctx, ring, token)
	if err != nil {
		return identity.Who{}, false, err
	}
	p := &proved{s.who(c.subject, c.plan), c.from, c.until}
	who, shown, err := p.at(s.o.Now())
	if shown {
		ring.cache.put(sum, p)
	}
	return who, shown, err
}

// verify reads the claims of a token whose signature holds, and says with which keys.
func (s *Source) verify(ctx context.Context, with *ring, token string) (*ring, claims, error) {
	p, ok := split(token)
	if !ok {
		return nil, claims{}, errForm
	}
	h, err := readHeader(p.header)
	if err != nil {
		return nil, claims{}, err
	}
	if !slices.Contains(s.o.Algorithms, h.alg) {
		return nil, claims{}, errAlgorithm
	}
	keys, named := candidates(with.keys, h.kid, h.alg)
	if len(keys) == 0 && !named && s.refetched(ctx) {
		with = s.ring.Load()
		keys, _ = candidates(with.keys, h.kid, h.alg)
	}
	if len(keys) == 0 {
		return nil, claims{}, errKey
	}
	method := algorithmOf(h.alg).method
	if !slices.ContainsFunc(keys, func(k *key) bool { return method.Verify(p.signed, p.signature, k.value) == nil }) {
		return nil, claims{}, errSignature
	}
	payload, ok := decode(p.payload)
	if !ok {
		return nil, claims{}, errClaims
	}
	c, err := s.o.readClaims(payload)
	return with, c, err
}

// For is the user of that name, as the claim has it. Its plan is in tokens alone.
func (s *Source) For(name string) (identity.Who, error) {
	if !validSubject(name) {
		return identity.Who{}, fmt.Errorf("a user's name is a text of 1 to %d bytes, as the claim %s has it", MaxSubject, s.o.Claim)
	}
	return s.who(name, ""), nil
}

func (s *Source) who(name, plan string) identity.Who {
	shown := name
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		shown = strconv.Quote(name) // operators read it
	}
	return identity.Who{ID: s.o.Secret.ID(prefix, name), Plan: plan, Name: prefix + shown}
}

// TellsPlans says whether plans come with tokens.
func (s *Source) TellsPlans() bool { return s.o.PlanClaim != "" }

func (s *Source) String() string { return "user" }

// HeaderName is the header that holds the token, in canonical form.
func (s *Source) HeaderName() string { return s.o.Header }

// Stats says how the keys are.
func (s *Source) Stats() Stats {
	s.mu.Lock()
	stats := Stats{Loaded: s.loaded, Problem: s.problem}
	s.mu.Unlock()
	if ring := s.ring.Load(); ring != nil {
		stats.Keys, stats.Cached = len(ring.keys), ring.cache.size()
	}
	if stats.Keys == 0 && stats.Problem == nil {
		stats.Problem = errors.New("no keys were read yet")
	}
	return stats
}
