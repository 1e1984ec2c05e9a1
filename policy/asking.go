package policy

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// asking is the bench on which one request is put to its limits. It is used
// again for the next.
type asking struct {
	engine  *Engine
	request *identity.Request
	path    path
	// under are the limits that the request's patterns put it under, in policy order.
	under []under
	// blind: the budgets are not looked at beforehand. free: a list lets the request
	// pass. peeks: nothing is spent. held: a limit refuses the request for what its
	// client did before.
	blind, free, peeks, held bool

	takes     []comporta.Take
	of        []int // the index in under of each take; −1 for what no verdict tells of
	decisions []comporta.Taken
	looks     looks

	// answers are what the engine's leaves said, by index.
	answers []answer
	// clause is the one whose pattern PathValues tells the wildcards of.
	clause *clause
	asked  bool // PathValues was asked
	values func(name string) string
}

// under is a limit that a request may be under.
type under struct {
	clause *clause
	part   *part
	state  state

	// What follows is there once the state is in.
	claimed bool
	shadow  bool // the limit is in shadow, for all or for this client
	settles bool // the answer will settle it
	looked  bool // beside the budget, for what is to be known of the client
	counts  bool // the verdict tells of it
	applied int  // index in the verdict
	cost    int64
	numbers *numbers
	id      string
	name    string
	blocked time.Duration // the client is denied so long for what it did before
	fresh   string        // whose new keys a claimed identity is counted among; "" where it is not new
}

type state uint8

const (
	waiting state = iota // for who is asking
	in                   // the request is under it
	out                  // it is not
)

func (e *Engine) ask(r *identity.Request) *asking {
	a, _ := e.scratch.Get().(*asking)
	if a == nil {
		a = &asking{engine: e, answers: make([]answer, len(e.leaves))}
		a.values = a.value
	}
	a.request, a.path = r, e.policy.Paths.read(r.Path)
	r.PathValues = a.values
	return a
}

// done puts the bench back, with nothing of the request on it.
func (e *Engine) done(a *asking) {
	a.request.PathValues = nil
	for i := range a.under {
		a.under[i].id, a.under[i].name = "", ""
	}
	clear(a.answers)
	for i := range a.takes {
		a.takes[i].Key.Identity = ""
	}
	a.looks.clear()
	a.under, a.takes, a.of = a.under[:0], a.takes[:0], a.of[:0]
	a.request, a.path, a.clause = nil, path{}, nil
	a.blind, a.free, a.peeks, a.held = false, false, false, false
	e.scratch.Put(a)
}

// gather puts the request under the limits whose patterns match.
func (a *asking) gather(preflight bool) {
	for _, c := range a.engine.asked(preflight) {
		if preflight || c.applies(a.request, a.path) {
			for i := range c.parts {
				a.put(c, &c.parts[i])
			}
		}
	}
}

// asked are the clauses that a request may be under.
func (e *Engine) asked(preflight bool) []*clause {
	if preflight {
		return e.preflights
	}
	return e.clauses
}

func (a *asking) put(c *clause, p *part) *under {
	a.under = grow(a.under)
	u := &a.under[len(a.under)-1]
	u.clause, u.part, u.state = c, p, waiting
	u.claimed, u.looked, u.blocked, u.fresh = false, false, 0, ""
	return u
}

// plain is gather, learn and apply in one, where all limits are per one source
// each that is at hand, by numbers that are the same for all clients: what most
// policies consist of.
func (a *asking) plain(v *Verdict) {
	for _, c := range a.engine.asked(v.Preflight) {
		if !v.Preflight && !c.applies(a.request, a.path) {
			continue
		}
		a.clause = c
		cost := c.cost(a.request, a.path)
		for i := range c.parts {
			p := &c.parts[i]
			known := &a.answers[p.plain]
			if !known.is {
				a.asked = false
				known.who.ID, known.shown = a.engine.leaves[p.plain].source.Identity(a.request)
				known.is = !a.asked
			}
			if !known.shown {
				continue
			}
			u := a.put(c, p)
			u.state, u.id, u.name, u.numbers, u.cost = in, known.who.ID, "", &p.own, cost
			u.shadow, u.settles = p.limit.Mode == Shadow, false
			a.enter(len(a.under)-1, v)
		}
	}
}

// learn finds out who is asking each limit, as far as that can be known at a
// stage. Where some wait for a dearer one, it is the least of those.
func (a *asking) learn(ctx context.Context, stage identity.Stage, v *Verdict) (next identity.Stage, wait bool) {
	later := func(takes identity.Stage) {
		if !wait || takes < next {
			next, wait = takes, true
		}
	}
	for _, at := range a.engine.lists.leaves {
		if known, takes := a.answer(ctx, at, stage, v); known == nil {
			later(takes)
		}
	}
	for i := range a.under {
		u := &a.under[i]
		if u.state != waiting {
			continue
		}
		if takes, done := a.resolve(ctx, u, stage, v); !done {
			later(takes)
		} else if u.state == in {
			a.set(u)
		}
	}
	return next, wait
}

// set works out how the limit holds this client.
func (a *asking) set(u *under) {
	l := u.part.limit
	u.shadow = l.Mode == Shadow || l.Share > 0 && !a.engine.inShare(l, u.id)
	u.settles = !u.numbers.unlimited && (l.Estimate != nil || l.Limit.Charge == comporta.Failures)
}

// cost is what the request costs under a clause. It reports false, with the
// stage that it takes, where the body says it and is not to be read yet.
func (a *asking) cost(ctx context.Context, c *clause, stage identity.Stage, v *Verdict) (units int64, takes identity.Stage, done bool) {
	switch l := c.limit; {
	case l.CostHeader != nil:
		return l.CostHeader.read(a.request), 0, true
	case l.Estimate == nil:
		return c.cost(a.request, a.path), 0, true
	case l.Estimate.RequestJSON == "" || a.request.Body == nil || !isJSON(a.request):
		return l.Estimate.Default, 0, true
	case stage < identity.Body:
		return 0, identity.Body, false
	}
	return a.estimate(ctx, c.limit.Estimate, v), 0, true
}

// estimate reads what the body says that the answer will cost.
func (a *asking) estimate(ctx context.Context, e *Estimate, v *Verdict) int64 {
	data, _, err := a.request.Body(ctx, a.engine.maxBody)
	if err != nil {
		if wrong, ok := errors.AsType[*identity.RequestError](err); ok {
			a.refuse(v, wrong)
		}
		return e.Default
	}
	if units, found := FindNumber(data, e.RequestJSON); found {
		return min(max(units, 1), comporta.MaxCost)
	}
	return e.Default
}

// isJSON says whether a request's body is said to be JSON. Others, such as the
// streams of gRPC, are not waited for.
func isJSON(r *identity.Request) bool {
	types := r.Header["Content-Type"]
	return len(types) == 1 && strings.Contains(strings.ToLower(types[0]), "json")
}

// read is the cost that a believed peer says.
func (h *CostHeader) read(r *identity.Request) int64 {
	lines := r.Header[h.Name]
	if len(lines) != 1 || r.Peer.IsValid() && !slices.ContainsFunc(h.From, func(p netip.Prefix) bool { return p.Contains(r.Peer) }) {
		return h.Default
	}
	units, err := strconv.ParseUint(strings.Trim(lines[0], " \t"), 10, 53)
	if err != nil {
		return h.Default
	}
	return int64(units)
}

// value is the request's PathValues.
func (a *asking) value(name string) string {
	a.asked = true
	if a.clause == nil {
		return ""
	}
	matched := a.clause.matched(a.request, a.path)
	if matched == nil {
		return ""
	}
	return a.path.value(matched, name)
}
