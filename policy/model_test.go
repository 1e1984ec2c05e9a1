package policy_test

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// model is an engine and its store in the plainest form: a list of limits and
// a map of cells, each limit decided by itself, and what several make of it
// worked out afterwards.
type model struct {
	limits []*modelled
	cells  map[comporta.Key]*cell
}

type cell struct {
	state comporta.State
	log   comporta.Entries
}

// modelled is a limit and the rules of its model: with outer, for the wider prefix.
type modelled struct {
	*policy.Limit
	rule, outer *comporta.Rule
	under       func(*identity.Request) bool
	cost        func(*identity.Request) int64
}

// answered is one limit's part in an answer.
type answered struct {
	Name, Identity string
	Decision       comporta.Decision
	shadow         bool
	shown          bool
}

// take decides for one key; keep says whether the cell changes.
func (m *model) take(key comporta.Key, rule *comporta.Rule, now comporta.Instant, cost int64, keep bool) comporta.Decision {
	held := m.cells[key]
	if held == nil {
		held = new(cell)
	}
	c := comporta.Cell{State: held.state, Log: held.log}
	var d comporta.Taken
	rule.Advance(&c, now, cost, &d)
	if keep && c.Changed {
		m.cells[key] = &cell{c.State, held.log.Apply(c.Edit)}
	}
	return d.Decision
}

// asked is one key that a request asks in the model.
type asked struct {
	key  comporta.Key
	rule *comporta.Rule
	cost int64
	of   *modelled
}

func (m *model) check(r *identity.Request, now comporta.Instant) (o comporta.Outcome, all []answered, named int) {
	var takes []asked
	for _, l := range m.limits {
		if !l.under(r) {
			continue
		}
		id, shown := identify(l.Per, r)
		if !shown {
			continue
		}
		takes = append(takes, asked{comporta.Key{Limit: l.Name, Identity: id}, l.rule, l.cost(r), l})
		if l.outer != nil && r.Peer.Is6() {
			id := "address:" + netip.PrefixFrom(r.Peer, 48).Masked().String()
			takes = append(takes, asked{comporta.Key{Limit: l.Name + ".outer", Identity: id}, l.outer, l.cost(r), l})
		}
	}
	o.Allowed = true
	for _, a := range takes {
		d := m.take(a.key, a.rule, now, a.cost, false)
		o.Allowed = o.Allowed && (d.Allowed || a.of.Mode == policy.Shadow)
	}
	var retry, delay time.Duration
	for _, a := range takes {
		d := m.take(a.key, a.rule, now, a.cost, false)
		switch attempts := a.rule.Limit().Charge == comporta.Attempts; {
		case o.Allowed && d.Allowed || attempts:
			d = m.take(a.key, a.rule, now, a.cost, true)
		case d.Allowed: // and another denies
			d = m.take(a.key, a.rule, now, 0, true)
		default:
			m.take(a.key, a.rule, now, a.cost, true) // a full budget is forgotten even so
		}
		shadow := a.of.Mode == policy.Shadow
		if !o.Allowed {
			if !shadow {
				retry = max(retry, m.take(a.key, quiet(a.rule), now, a.cost, false).RetryAfter)
			}
			d.Delay = 0
		} else if !shadow {
			delay = max(delay, d.Delay)
		}
		_, everyone := a.of.Per.(identity.Everyone)
		shown := !shadow && !everyone && !a.rule.Limit().Unlimited
		if a.of.Show != nil {
			shown = *a.of.Show
		}
		all = append(all, answered{a.key.Limit, a.key.Identity, d, shadow, shown})
	}
	o.RetryAfter, o.Delay = retry, delay
	return o, all, nameOf(all)
}

// quiet is the rule for asking what a request would be told: without charging it.
func quiet(r *comporta.Rule) *comporta.Rule {
	numbers := r.Limit()
	numbers.Charge = comporta.Admitted
	rule, err := numbers.Compile()
	if err != nil {
		panic(err)
	}
	return rule
}

// nameOf is the limit that headers name, as the words say it.
func nameOf(all []answered) int {
	named := -1
	var best [3]float64 // denial and its retry, share left, reset: more binds more
	for i, a := range all {
		if !a.shown || a.Decision.Limit == math.MaxInt64 {
			continue
		}
		var rank [3]float64
		switch {
		case !a.Decision.Allowed && !a.shadow:
			rank[0] = float64(a.Decision.RetryAfter)
		case a.Decision.Limit > 0:
			rank[1] = -float64(a.Decision.Remaining) / float64(a.Decision.Limit)
		}
		rank[2] = float64(a.Decision.ResetAfter)
		if named < 0 || less(best, rank) {
			named, best = i, rank
		}
	}
	return named
}

func less(a, b [3]float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// identify is who asks, in the plainest form.
func identify(s identity.Source, r *identity.Request) (string, bool) {
	switch s := s.(type) {
	case identity.Everyone:
		return "everyone", true
	case identity.Path:
		_, value, _ := strings.Cut(r.Path[1:], "/")
		return s.Identity(&identity.Request{PathValues: func(string) string { return value }})
	case *identity.Address:
		if r.Peer.Is6() {
			return "address:" + netip.PrefixFrom(r.Peer, 64).Masked().String(), true
		}
		return "address:" + r.Peer.String(), true
	}
	return s.Identity(r)
}

// The choices of a random policy: where it applies, and what that is in plain words.
var wheres = []struct {
	match, except string
	holds         func(r *identity.Request) bool
}{
	{"", "", func(*identity.Request) bool { return true }},
	{"POST /", "", func(r *identity.Request) bool { return r.Method == "POST" }},
	{"/a/", "", func(r *identity.Request) bool { return strings.HasPrefix(r.Path, "/a/") }},
	{"", "GET /a/{x}", func(r *identity.Request) bool { return r.Method != "GET" || !strings.HasPrefix(r.Path, "/a/") }},
	{"/{kind}/{id}", "", func(*identity.Request) bool { return true }},
}

// drawLimit draws a limit and its model.
func drawLimit(r *rapid.T, name string, sources []identity.Source) *modelled {
	pick := func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(r, what) }
	l := &policy.Limit{Name: name, Mode: policy.Mode(pick("mode", 2)), Per: sources[pick("per", len(sources))]}
	n := &l.Limit
	n.Algorithm = comporta.Algorithm(pick("algorithm", 5))
	n.Limit, n.Window = int64(pick("limit", 5)), time.Duration(1+pick("window", 20))*time.Second
	if n.Algorithm.Bucket() && n.Limit > 0 {
		n.Burst = int64(pick("burst", 5))
	}
	switch pick("charge", 4) {
	case 0:
		n.Charge = comporta.Attempts
	case 1:
		if n.Algorithm == comporta.TokenBucket {
			n.MaxWait = 2 * time.Second
		}
	case 2:
		*n = comporta.Limit{Unlimited: true}
	}
	if pick("show", 3) == 0 {
		l.Show = new(pick("shown", 2) == 0)
	}
	where := wheres[pick("where", len(wheres))]
	if _, path := l.Per.(identity.Path); path {
		where = wheres[len(wheres)-1]
	}
	must := func(text string) []*policy.Pattern {
		if text == "" {
			return nil
		}
		p, err := policy.ParsePattern(text)
		if err != nil {
			r.Fatal(err)
		}
		return []*policy.Pattern{p}
	}
	l.Match, l.Except = must(where.match), must(where.except)
	m := &modelled{Limit: l, under: where.holds, cost: func(*identity.Request) int64 { return 1 }}
	if pick("cost", 3) == 0 {
		units := int64(pick("units", 4))
		l.Cost = []policy.Cost{{Match: must("/a/1")[0], Units: units}}
		m.cost = func(r *identity.Request) int64 {
			if r.Path == "/a/1" {
				return units
			}
			return 1
		}
	}
	m.compile(r)
	return m
}

func (m *modelled) compile(r *rapid.T) {
	numbers := m.Limit.Limit
	if m.Mode == policy.Shadow && numbers.Charge == comporta.Attempts {
		numbers.Charge = comporta.Admitted // where it would deny it is never charged
	}
	var err error
	if m.rule, err = numbers.Compile(); err != nil {
		r.Fatal(err)
	}
	if _, address := m.Per.(*identity.Address); !address || numbers.Limit == 0 {
		return
	}
	numbers.Limit, numbers.Burst = 16*numbers.Limit, 16*numbers.Burst
	if m.outer, err = numbers.Compile(); err != nil {
		r.Fatal(err)
	}
}

func TestEngineAgreesWithTheModel(t *testing.T) {
	s := secret(t)
	tenant, _ := identity.NewHeader("X-Tenant", s)
	id, _ := identity.NewPath("id", s)
	sources := []identity.Source{socket, identity.Everyone{}, tenant, id}
	rapid.Check(t, func(r *rapid.T) {
		m := model{cells: map[comporta.Key]*cell{}}
		var p policy.Policy
		for i := range rapid.IntRange(1, 5).Draw(r, "limits") {
			l := drawLimit(r, fmt.Sprintf("l%d", i), sources)
			m.limits, p.Limits = append(m.limits, l), append(p.Limits, l.Limit)
		}
		h := open(t, p)
		var v policy.Verdict
		for range 40 {
			h.now = h.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 500, 1000, 7000}).Draw(r, "pause")) * time.Millisecond)
			ask := request(
				rapid.SampledFrom([]string{"GET", "POST"}).Draw(r, "method"),
				rapid.SampledFrom([]string{"/a/1", "/a/2", "/b/1"}).Draw(r, "path"),
				rapid.SampledFrom([]string{"203.0.113.7", "2001:db8:1:1::1", "2001:db8:1:2::1"}).Draw(r, "peer"))
			if tenant := rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "tenant"); tenant != "" {
				ask.Header["X-Tenant"] = []string{tenant}
			}
			want, all, named := m.check(ask, comporta.InstantOf(h.now))
			h.Check(t.Context(), ask, &v)
			if v.Failed != nil {
				r.Fatal(v.Failed)
			}
			if diff := cmp.Diff(want, v.Outcome); diff != "" {
				r.Fatalf("outcome:\n%s", diff)
			}
			if diff := cmp.Diff(all, parts(&v), cmp.AllowUnexported(answered{})); diff != "" {
				r.Fatalf("parts:\n%s", diff)
			}
			if v.Named != named {
				r.Fatalf("named %d of %+v, not %d", v.Named, all, named)
			}
		}
	})
}

func parts(v *policy.Verdict) (all []answered) {
	for _, a := range v.Applied {
		all = append(all, answered{a.Limit.Name, a.Identity, a.Decision, a.Limit.Mode == policy.Shadow, a.Shown})
	}
	return all
}
