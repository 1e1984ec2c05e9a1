package policy_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// The clients of the model: who holds a card of a kind, who is named in a body.
type town struct {
	key, user *card
	name      *identity.Claimed
	reads     int // of bodies
}

// visit is a request in plain words.
type visit struct {
	peer, key, user, name string // "" is not shown; a name that is "?" is in a broken body
	dear                  bool
}

func (t *town) request(v visit) *identity.Request {
	path := "/a/2"
	if v.dear {
		path = "/a/1"
	}
	r := request("POST", path, v.peer)
	for header, value := range map[string]string{"X-Key": v.key, "X-User": v.user} {
		if value != "" {
			r.Header[header] = []string{value}
		}
	}
	if v.name == "" {
		return r
	}
	r.Header["Content-Type"] = []string{"application/x-www-form-urlencoded"}
	body := "username=" + v.name
	if v.name == "?" {
		body = "username=a&username=b"
	}
	r.Body = func(context.Context, int) ([]byte, bool, error) {
		t.reads++
		return []byte(body), true, nil
	}
	return r
}

// proof is what a source says of a visit, and at which stage.
type proof struct {
	who   identity.Who
	shown bool
	stage identity.Stage
	wrong bool
}

func (t *town) ask(s identity.Source, v visit) proof {
	held, of := "", (*card)(nil)
	switch s := s.(type) {
	case *identity.Address:
		return proof{who: identity.Who{ID: "address:" + v.peer}, shown: true}
	case *identity.Claimed:
		if v.name == "" || v.name == "?" {
			return proof{stage: map[bool]identity.Stage{true: identity.Body}[v.name == "?"], wrong: v.name == "?"}
		}
		who, _ := s.For(v.name)
		return proof{who: who, shown: true, stage: identity.Body}
	case *card:
		if held, of = v.key, s; s == t.user {
			held = v.user
		}
	}
	p := proof{}
	if held != "" {
		p.stage = of.stage
	}
	if p.shown = held != "" && held != "forged"; p.shown {
		p.who, _ = of.For(held)
	}
	return p
}

// promises is a policy in its plainest form, and what it remembers.
type promises struct {
	town
	policy  *policy.Policy
	runTime []*policy.Override
	model
	blocks map[comporta.Key]comporta.Instant // until when
}

// counted is a limit that a visit is under.
type counted struct {
	limit   *policy.Limit
	id      string
	peer    string
	from    string
	rule    *comporta.Rule
	free    bool // by numbers without a bound
	cost    int64
	claimed bool
	shadow  bool
	blocked time.Duration
	fresh   bool // a claimed key that is new
}

func (c *counted) key() comporta.Key { return comporta.Key{Limit: c.limit.Name, Identity: c.id} }
func (c *counted) lenient() bool     { return c.shadow || c.limit.OnLimit != policy.Refuse }

// said is a part of a verdict, as far as the model tells it.
type said struct {
	Name, Identity, From string
	Allowed, Lenient     bool
	Blocked, Warned      bool
	Remaining            int64
}

// tally is a verdict, as far as the model tells it.
type tally struct {
	Allowed, Listed bool
	Status          int
	Retry, Delay    time.Duration
	Said            []said
}

// numbers are those that hold for a client of a limit.
func (p *promises) numbers(l *policy.Limit, who identity.Who, address string, byAddress bool, now comporta.Instant) (comporta.Limit, string) {
	var best *policy.Override
	bits := -1
	for _, o := range append(slices.Clone(p.policy.Overrides), p.runTime...) {
		if _, speaks := o.Limits[l.Name]; !speaks || !o.Until.IsZero() && comporta.InstantOf(o.Until) <= now {
			continue
		}
		of := -1
		switch n := o.Who.Network; {
		case !n.IsValid() && o.Who.Who.ID == who.ID:
			of = 1000
		case n.IsValid() && byAddress && n.Contains(netip.MustParseAddr(address)):
			of = n.Bits()
		}
		if of >= 0 && of >= bits {
			best, bits = o, of
		}
	}
	if best != nil {
		return l.With(best.Limits[l.Name]), fmt.Sprintf("override (line %d)", best.Line)
	}
	if said, ok := p.policy.Plans[who.Plan][l.Name]; ok {
		return l.With(said), "plan " + who.Plan
	}
	return l.Limit, "limit"
}

// count settles who a limit counts the visit against, at a stage. It reports known
// false where that takes a dearer one.
func (p *promises) count(l *policy.Limit, v visit, stage identity.Stage, now comporta.Instant, wrong *int) (c *counted, known bool) {
	options := []identity.Source{l.Per}
	if first, is := l.Per.(identity.First); is {
		options = slices.Clone(first)
	}
	claims := identity.Has(l.Per, func(s identity.Source) bool { return s == identity.Source(p.name) })
	if l.OnMissing == policy.ByAddress || l.OnMissing == policy.Skip && claims {
		options = append(options, socket)
	}
	for _, option := range options {
		parts := []identity.Source{option}
		if all, is := option.(identity.All); is {
			parts = all
		}
		var ids []string
		plan := ""
		shown := true
		for _, part := range parts {
			said := p.ask(part, v)
			if said.stage > stage {
				return nil, false
			}
			if said.wrong && *wrong == 0 {
				*wrong = 400
			}
			if shown = said.shown; !shown {
				break
			}
			ids = append(ids, said.who.ID)
			if plan == "" {
				plan = said.who.Plan
			}
		}
		if !shown {
			continue
		}
		who := identity.Who{ID: ids[0], Plan: plan}
		if len(ids) > 1 {
			who.ID = identity.Join(ids...)
		}
		c := &counted{limit: l, id: who.ID, peer: v.peer, claimed: slices.Contains(parts, identity.Source(p.name)), cost: 1}
		if v.dear && len(l.Cost) > 0 {
			c.cost = l.Cost[0].Units
		}
		c.shadow = l.Mode == policy.Shadow || l.Share > 0 && p.policy.Secret.Percent(l.Name, c.id) >= l.Share
		c.by(p.numbers(l, who, v.peer, len(parts) == 1 && parts[0] == identity.Source(socket), now))
		return c, true
	}
	if l.OnMissing == policy.Forbid && *wrong == 0 {
		*wrong = 401
	}
	return nil, true
}

func (c *counted) by(n comporta.Limit, from string) {
	if c.lenient() && n.Charge == comporta.Attempts {
		n.Charge = comporta.Admitted // what is not refused is no mere attempt
	}
	rule, err := n.Compile()
	if err != nil {
		panic(err)
	}
	c.rule, c.from, c.free = rule, from, n.Unlimited
}

// check is what a visit is answered, and at which stage.
func (p *promises) check(v visit, now comporta.Instant) (a tally, stage identity.Stage) {
	in := func(list []policy.Listed) bool {
		return slices.ContainsFunc(list, func(l policy.Listed) bool {
			return l.Network.IsValid() && l.Network.Contains(netip.MustParseAddr(v.peer))
		})
	}
	if in(p.policy.Deny) {
		return tally{Status: 403}, 0
	}
	pass := in(p.policy.Allow)
	limits := p.policy.Limits
	for ; ; stage++ {
		var known []*counted
		all, wrong := true, 0
		listed := true
		for _, l := range slices.Concat(p.policy.Allow, p.policy.Deny) {
			if l.Network.IsValid() {
				continue
			}
			said := p.ask(l.Source, v)
			switch {
			case said.stage > stage:
				listed, all = false, false
			case said.shown && slices.ContainsFunc(p.policy.Deny, func(d policy.Listed) bool { return d.Who.ID == said.who.ID }):
				return tally{Status: 403}, stage
			case said.shown && slices.ContainsFunc(p.policy.Allow, func(d policy.Listed) bool { return d.Who.ID == said.who.ID }):
				pass = true
			}
		}
		if pass {
			limits = nil
		}
		for _, l := range limits {
			c, done := p.count(l, v, stage, now, &wrong)
			all = all && done
			if c != nil {
				known = append(known, c)
			}
		}
		denied := slices.ContainsFunc(p.policy.Deny, func(d policy.Listed) bool { return !d.Network.IsValid() })
		if pass && (listed || !denied) {
			return tally{Allowed: true, Listed: true}, stage
		}
		if all || wrong > 0 {
			return p.decide(known, wrong, now), stage
		}
		if !pass && p.refuses(known, now) {
			return p.decide(known, 0, now), stage
		}
	}
}

// refuses says whether one of the limits, as it stands, refuses the visit.
func (p *promises) refuses(all []*counted, now comporta.Instant) bool {
	return slices.ContainsFunc(all, func(c *counted) bool {
		if c.free || c.lenient() || c.limit.Limit.MaxWait > 0 {
			return false
		}
		return p.blocks[c.key()] > now || p.take(c.key(), c.rule, now, 0, true).Remaining < c.cost
	})
}

// decide takes under limits, all or nothing.
func (p *promises) decide(all []*counted, wrong int, now comporta.Instant) (a tally) {
	if wrong > 0 {
		all = slices.DeleteFunc(all, func(c *counted) bool { return !c.free && c.limit.Limit.Charge == comporta.Failures })
	}
	held := false
	for _, c := range all {
		if c.free {
			continue
		}
		p.claim(c, now)
		if c.free {
			continue
		}
		if until := p.blocks[c.key()]; until > now && !c.shadow {
			c.blocked, c.fresh = time.Duration(until-now)*time.Microsecond, false
		}
		held = held || c.blocked > 0 && c.limit.OnLimit == policy.Refuse
	}
	a.Allowed = !held
	for _, c := range all {
		a.Allowed = a.Allowed && (c.lenient() || p.take(c.key(), c.rule, now, c.cost, false).Allowed)
	}
	for _, c := range all {
		s := p.takeOne(c, a.Allowed, held, now, &a)
		a.Said = append(a.Said, s)
	}
	if a.Allowed {
		a.Retry = 0
	} else {
		a.Delay = 0
	}
	if wrong > 0 && a.Allowed {
		a.Allowed, a.Status, a.Delay = false, wrong, 0
	}
	return a
}

// claim says whether a claimed client is new, and counts one too many by the address.
func (p *promises) claim(c *counted, now comporta.Instant) {
	full := p.take(c.key(), c.rule, now, 0, true).FullAfter == 0
	if !c.claimed || strings.HasPrefix(c.from, "override") || !full || p.blocks[c.key()] > now && !c.shadow {
		return
	}
	key, rule := p.fresh(c)
	if c.fresh = p.take(key, rule, now, 0, false).Remaining > 0; !c.fresh {
		c.id = "address:" + c.peer
		c.by(p.numbers(c.limit, identity.Who{ID: c.id}, c.peer, true, now))
	}
}

func (p *promises) fresh(c *counted) (comporta.Key, *comporta.Rule) {
	rule, err := p.policy.Claimed.NewKeys.Compile()
	if err != nil {
		panic(err)
	}
	return comporta.Key{Limit: c.limit.Name + ".new", Identity: "address:" + c.peer}, rule
}

// takeOne is a limit's part where the outcome is known.
func (p *promises) takeOne(c *counted, allowed, held bool, now comporta.Instant, a *tally) said {
	s := said{Name: c.limit.Name, Identity: c.id, From: c.from, Lenient: c.lenient(), Blocked: c.blocked > 0}
	tries := c.limit.Limit.Charge == comporta.Attempts && !c.free && !c.lenient()
	d := p.take(c.key(), c.rule, now, c.cost, false)
	switch {
	case c.free:
	case allowed && d.Allowed || tries:
		d = p.take(c.key(), c.rule, now, c.cost, true)
	case !d.Allowed && !held:
		p.take(c.key(), c.rule, now, c.cost, true)
	default:
		d.Remaining = p.take(c.key(), c.rule, now, 0, true).Remaining
	}
	wait := p.take(c.key(), quiet(c.rule), now, c.cost, false).RetryAfter
	s.Allowed, s.Remaining = d.Allowed && c.blocked == 0, d.Remaining
	if c.blocked > 0 {
		wait, s.Remaining = max(wait, c.blocked), 0
	}
	makes := tries && c.cost > 0
	if !s.Allowed && c.limit.Block > 0 && !c.shadow && c.blocked == 0 {
		p.blocks[c.key()] = now.Add(c.limit.Block)
		wait, s.Remaining, makes = max(wait, c.limit.Block), 0, true
	}
	if c.fresh && (allowed && c.cost > 0 || makes) {
		key, rule := p.fresh(c)
		p.take(key, rule, now, 1, true)
	}
	if used := d.Limit - d.Remaining; c.limit.WarnAt > 0 && !c.limit.Settles() && !c.free && allowed && s.Allowed && c.cost > 0 {
		at := func(n int64) bool { return 100*n >= d.Limit*int64(c.limit.WarnAt) }
		s.Warned = at(used) && !at(used-c.cost)
	}
	if !s.Lenient {
		a.Retry, a.Delay = max(a.Retry, wait), max(a.Delay, d.Delay)
	}
	return s
}

func newTown(t testing.TB, s *identity.Secret) town {
	name, err := identity.NewClaimed("username", s, identity.ClaimedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return town{key: &card{kind: "key"}, user: &card{kind: "user", stage: identity.Credential}, name: name}
}

func tellOf(v *policy.Verdict) tally {
	a := tally{Allowed: v.Allowed, Listed: v.Listed, Retry: v.RetryAfter, Delay: v.Delay}
	if v.Refused != nil {
		a.Status = v.Refused.Status
	}
	for i := range v.Applied {
		p := &v.Applied[i]
		a.Said = append(a.Said, said{
			p.Limit.Name, p.Identity, p.From, p.Decision.Allowed, p.Lenient, p.Blocked, p.Warned, p.Decision.Remaining,
		})
	}
	return a
}

func TestEngineAgreesWithTheModelOfStages(t *testing.T) {
	s := secret(t)
	rapid.Check(t, func(r *rapid.T) {
		p := promises{town: newTown(t, s), model: model{cells: map[comporta.Key]*cell{}}, blocks: map[comporta.Key]comporta.Instant{}}
		p.policy = p.draw(r, s)
		h := open(t, *p.policy)
		var v policy.Verdict
		for i := range 30 {
			h.now = h.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 500, 1000, 7000}).Draw(r, "pause")) * time.Millisecond)
			if rapid.IntRange(0, 9).Draw(r, "set") == 0 {
				p.runTime = []*policy.Override{p.override(r, p.policy, 100+i)}
				if err := h.SetOverrides(p.runTime); err != nil {
					r.Fatal(err)
				}
			}
			visit := p.visit(r)
			want, reached := p.check(visit, comporta.InstantOf(h.now))
			p.user.proofs, p.reads = 0, 0
			h.Check(t.Context(), p.request(visit), &v)
			if v.Failed != nil {
				r.Fatal(v.Failed)
			}
			got := tellOf(&v)
			if got.Retry == want.Retry+time.Microsecond && slices.ContainsFunc(want.Said, func(s said) bool { return s.Blocked }) {
				got.Retry = want.Retry // worked out of what remains, which is rounded
			}
			if diff := cmp.Diff(want, got); diff != "" {
				r.Fatalf("%+v:\n%s", visit, diff)
			}
			if reached < identity.Credential && p.user.proofs > 0 || reached < identity.Body && p.reads > 0 {
				r.Fatalf("%+v: settled at stage %d, after %d proofs and %d bodies", visit, reached, p.user.proofs, p.reads)
			}
		}
	})
}
