package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// defaultBody is how much of a body is read for what limits want to know of it.
const defaultBody = 64 << 10

// claimed compiles the bounds of what nobody proves.
func (c *compiler) claimed() {
	said := c.engine.policy.Claimed
	c.engine.maxBody = cmp.Or(said.MaxBody, defaultBody)
	if said.NewKeys == (comporta.Limit{}) {
		said.NewKeys = comporta.Limit{Limit: 100, Window: time.Minute, Burst: 300}
	}
	c.fresh = c.rule(&Limit{Name: "claimed"}, said.NewKeys)
}

// conduct checks what a limit does with what is over it, and when it is settled.
func (c *compiler) conduct(l *Limit) {
	forms := 0
	for _, is := range []bool{len(l.Cost) > 0, l.CostHeader != nil, l.Estimate != nil} {
		if is {
			forms++
		}
	}
	failures := l.Limit.Charge == comporta.Failures
	said := len(l.Failure.Status)+len(l.Failure.Class) > 0
	switch {
	case forms > 1:
		c.wrong(l, "cost", errors.New("it is said in more than one way: by patterns, by a header, or by an estimate"))
	case failures && l.Estimate != nil:
		c.wrong(l, "cost", errors.New("an answer settles it, and charge: failures too: write two limits"))
	case failures && !said:
		c.wrong(l, "failure", errors.New("charge: failures needs to know which answers are failures, such as status 401"))
	case !failures && said:
		c.wrong(l, "failure", errors.New("it is for charge: failures"))
	}
	c.estimate(l)
	if h := l.CostHeader; h != nil {
		c.header(l, "cost", h.Name)
		c.units(l, h.Default)
	}
	if l.Share < 0 || l.Share > 100 {
		c.wrong(l, "enforce", fmt.Errorf("%d percent of the clients: from 1 to 100", l.Share))
	}
	if l.Share > 0 && l.Mode == Enforce && l.Choosable() {
		c.wrong(l, "enforce", errors.New("a share of clients is for identities that are proved: an attacker would choose one that is not held"))
	}
	if l.Block < 0 || l.Block > 0 && (l.Block < comporta.MinWindow || l.Block > comporta.MaxWindow) {
		c.wrong(l, "block", errors.New("it lasts from 1ms to 400 days"))
	}
	if l.Status != 0 && (l.Status < 400 || l.Status > 599) {
		c.wrong(l, "on_limit", fmt.Errorf("status %d refuses nothing: from 400 to 599", l.Status))
	}
	if l.OnLimit > Demote {
		c.wrong(l, "on_limit", fmt.Errorf("unknown: %d", l.OnLimit))
	}
	if m := c.engine.policy.Marks; l.OnLimit == Mark && (m == nil || len(m.Key) < identity.MinSecret) {
		c.wrong(l, "on_limit", fmt.Errorf("marks need a key of at least %d bytes to sign them: give the policy Marks", identity.MinSecret))
	}
	if l.WarnAt < 0 || l.WarnAt > 100 {
		c.wrong(l, "warn_at", fmt.Errorf("%d%% of the limit: from 1%% to 100%%", l.WarnAt))
	}
	if l.WarnAt > 0 && l.Limit.Algorithm != comporta.FixedWindow {
		c.wrong(l, "warn_at", errors.New("it is for quotas and fixed windows: what fills all the time is passed all the time"))
	}
	if l.WarnHeader != "" {
		c.header(l, "warn_at", l.WarnHeader)
	}
}

// Choosable says whether a client can choose, or prove nothing of, what the limit
// takes it for: an attacker would choose one that a share does not hold.
func (l *Limit) Choosable() bool {
	return l.OnMissing == ByAddress || identity.Has(l.Per, func(s identity.Source) bool {
		switch s.(type) {
		case identity.Header, identity.Path, identity.Everyone, *identity.Address, *identity.Claimed:
			return true
		}
		return false
	})
}

func (c *compiler) estimate(l *Limit) {
	e := l.Estimate
	if e == nil {
		return
	}
	c.units(l, e.Default)
	if e.Default == 0 {
		c.wrong(l, "cost", errors.New("an estimate of 0 takes nothing that could be settled: at least 1"))
	}
	if (e.ResponseJSON == "") == (e.ResponseHeader == "") {
		c.wrong(l, "cost", errors.New("say where the answer tells what it cost: in its JSON or in a header"))
	}
	if e.ResponseHeader != "" {
		c.header(l, "cost", e.ResponseHeader)
	}
	if l.Limit.Algorithm == comporta.LeakyBucket {
		c.wrong(l, "cost", errors.New("a leaky_bucket cannot give back what others stand behind: use a token_bucket"))
	}
}

// header checks a canonical name.
func (c *compiler) header(l *Limit, field, name string) {
	if name == "" || textproto.CanonicalMIMEHeaderKey(name) != name {
		c.wrong(l, field, fmt.Errorf("%q is not a header's canonical name, as X-Cost", name))
	}
}

func (c *compiler) costs(l *Limit) {
	for _, cost := range l.Cost {
		c.units(l, cost.Units)
	}
}

func (c *compiler) units(l *Limit, units int64) {
	if units < 0 || units > comporta.MaxCost {
		c.wrong(l, "cost", fmt.Errorf("a cost of %d is out of range: from 0 to 2^53 − 1", units))
	}
}

// overrides compiles the policy's own, once its limits are.
func (c *compiler) overrides() {
	e := c.engine
	for _, o := range e.policy.Overrides {
		for name := range o.Limits {
			if !e.policy.has(name) {
				c.wrong(nil, "overrides", fmt.Errorf("%q is no limit of the policy", name))
			}
		}
	}
	if len(c.errs) > 0 || len(e.policy.Overrides) == 0 {
		return
	}
	// Those for limits that are off wait with them.
	t, errs := e.tabulate(e.policy.Overrides)
	c.errs = append(c.errs, errs...)
	e.overrides.Store(t)
}
