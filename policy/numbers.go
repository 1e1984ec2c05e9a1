package policy

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/gaissmai/bart"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// numbers are a rule, and whose it is: the limit's own, a plan's, an override's.
type numbers struct {
	rule      *comporta.Rule
	from      string
	unlimited bool
	override  bool
	spare     *spare
	// until is when they end; 0 is never. next are those that hold then, of another
	// override; nil where there is none.
	until comporta.Instant
	next  *numbers
}

// numbers are those that hold for a client: its override's, its plan's, or the limit's own.
func (e *Engine) numbers(a *asking, p *part, o *option, who identity.Who, now comporta.Instant) *numbers {
	if table := e.overrides.Load(); table != nil && p.main == nil {
		if n := table.find(a, o, p.limit, who, now); n != nil {
			return n
		}
	}
	if who.Plan != "" {
		if n := p.plans[who.Plan]; n != nil {
			return n
		}
	}
	return &p.own
}

// compileNumbers compiles one set of a limit's numbers; nil where they are wrong.
func (c *compiler) compileNumbers(l *Limit, said comporta.Limit, from string) *numbers {
	rule := c.rule(l, said)
	if rule == nil {
		return nil
	}
	s := &spare{onError: l.OnError.or(c.engine.fallback.onError), rule: rule, quota: l.Limit.Calendar != nil}
	return &numbers{rule: rule, from: from, unlimited: said.Unlimited, spare: s}
}

// With is the limit with other numbers, a plan's or an override's: those replace
// its whole expression, burst included; how it decides stays.
func (l *Limit) With(said comporta.Limit) comporta.Limit {
	merged := l.Limit
	merged.Limit, merged.Window, merged.Burst, merged.Unlimited = said.Limit, said.Window, said.Burst, said.Unlimited
	if said.Unlimited {
		merged.MaxWait, merged.Stagger, merged.Lease, merged.Calendar = 0, false, nil, nil
		merged.Charge = comporta.Admitted
	} else if said.Calendar != nil && l.Limit.Calendar != nil && said.Calendar.Period != l.Limit.Calendar.Period {
		zoned := *said.Calendar
		zoned.Zone = l.Limit.Calendar.Zone
		merged.Calendar = &zoned
	}
	return merged
}

// kindred says whether numbers are of the limit's kind: a quota's for a quota.
func kindred(l, said comporta.Limit) error {
	switch quota := l.Calendar != nil; {
	case said.Unlimited, quota == (said.Calendar != nil):
		return nil
	case quota:
		return fmt.Errorf("the limit is a quota: write one, as 1000/month, or unlimited")
	}
	return fmt.Errorf("the limit is no quota: write numbers as 100/min, or unlimited")
}

// plans compiles what plans say of a limit, for it or for the one by a wider prefix,
// whose numbers are a multiple.
func (c *compiler) plans(to, l *Limit, widen func(comporta.Limit) comporta.Limit) map[string]*numbers {
	var found map[string]*numbers
	for _, name := range slices.Sorted(maps.Keys(c.engine.policy.Plans)) {
		said, ok := c.engine.policy.Plans[name][l.Name]
		if !ok {
			continue
		}
		if err := kindred(l.Limit, said); err != nil {
			c.wrong(l, "plans", fmt.Errorf("plan %q: %w", name, err))
			continue
		}
		if n := c.compileNumbers(to, widen(l.With(said)), "plan "+name); n != nil {
			if found == nil {
				found = make(map[string]*numbers)
			}
			found[name] = n
		}
	}
	return found
}

// has says whether the policy has a limit of that name, be it off.
func (p *Policy) has(name string) bool {
	return slices.ContainsFunc(p.Limits, func(l *Limit) bool { return l.Name == name })
}

// checkPlans finds plans for limits that do not exist.
func (c *compiler) checkPlans() {
	for _, name := range slices.Sorted(maps.Keys(c.engine.policy.Plans)) {
		for _, limit := range slices.Sorted(maps.Keys(c.engine.policy.Plans[name])) {
			if !c.engine.policy.has(limit) && limit != c.engine.preflightLimit().Name {
				c.wrong(nil, "plans", fmt.Errorf("plan %q has numbers for %q, which is no limit", name, limit))
			}
		}
	}
}

// A table has the overrides of all clients. It is immutable.
type table struct {
	clients  map[overridden]*numbers
	networks *bart.Table[map[*Limit]*numbers]
	nets     int
}

// overridden is a client under a limit.
type overridden struct {
	id    string
	limit *Limit
}

// find is the override that holds for a client at an instant; nil where none does.
func (t *table) find(a *asking, o *option, l *Limit, who identity.Who, now comporta.Instant) *numbers {
	if len(t.clients) > 0 {
		if n := t.clients[overridden{who.ID, l}].at(now); n != nil {
			return n
		}
	}
	if t.nets == 0 || !o.address || len(o.shown) > 1 {
		return nil
	}
	client := a.engine.address.Client(a.request)
	if !client.IsValid() {
		return nil
	}
	limits, _ := t.networks.Lookup(client)
	return limits[l].at(now)
}

// at is the first of a chain that has not ended.
func (n *numbers) at(now comporta.Instant) *numbers {
	for n != nil && n.until > 0 && n.until <= now {
		n = n.next
	}
	return n
}

// tabulate compiles overrides, the later ones before the earlier; nil for none.
// What is said of a limit that is not there, or is off, is left out.
func (e *Engine) tabulate(overrides []*Override) (*table, []error) {
	if len(overrides) == 0 {
		return nil, nil
	}
	t := &table{clients: make(map[overridden]*numbers), networks: new(bart.Table[map[*Limit]*numbers])}
	c := &compiler{engine: e, names: map[string]bool{}}
	wrong := func(o *Override, err error) {
		field := "overrides"
		if o.Line > 0 {
			field = fmt.Sprintf("overrides (line %d)", o.Line)
		}
		c.errs = append(c.errs, &Error{Field: field, Err: err})
	}
	nets := make(map[netip.Prefix]map[*Limit]*numbers)
	for _, o := range overrides {
		for _, name := range slices.Sorted(maps.Keys(o.Limits)) {
			l := e.limit(name)
			if l == nil {
				continue
			}
			said := o.Limits[name]
			if err := kindred(l.Limit, said); err != nil {
				wrong(o, fmt.Errorf("%s: %w", name, err))
				continue
			}
			n := c.compileNumbers(l, l.With(said), o.from())
			if n == nil {
				continue
			}
			n.override = true
			if !o.Until.IsZero() {
				n.until = comporta.InstantOf(o.Until)
			}
			if !o.Who.Network.IsValid() {
				key := overridden{o.Who.Who.ID, l}
				n.next = t.clients[key]
				t.clients[key] = n
				continue
			}
			network := o.Who.Network.Masked()
			if nets[network] == nil {
				nets[network] = make(map[*Limit]*numbers)
			}
			n.next = nets[network][l]
			nets[network][l] = n
		}
	}
	t.nest(nets)
	return t, c.errs
}

// nest puts networks into the table, wider ones first: what a wider one says
// holds in a narrower one that says nothing of the same limit, and after it.
func (t *table) nest(nets map[netip.Prefix]map[*Limit]*numbers) {
	t.nets = len(nets)
	order := slices.SortedFunc(maps.Keys(nets), func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	for _, network := range order {
		limits := nets[network]
		around, _ := t.networks.LookupPrefix(network)
		for l, n := range around {
			last := limits[l]
			if last == nil {
				limits[l] = n
				continue
			}
			for last.next != nil {
				last = last.next
			}
			last.next = n
		}
		t.networks.Insert(network, limits)
	}
}

// from says where an override was written.
func (o *Override) from() string {
	if o.Line > 0 {
		return fmt.Sprintf("override (line %d)", o.Line)
	}
	return "override (run time)"
}

// limit is the policy's limit of that name; nil where there is none, or it is off.
func (e *Engine) limit(name string) *Limit {
	for _, c := range e.clauses {
		if c.limit.Name == name {
			return c.limit
		}
	}
	return nil
}

// SetOverrides puts run-time overrides in the place of those that were set
// before. They stand before the policy's own. The error names what is wrong with
// them, and then nothing has changed. It is safe for concurrent use; verdicts
// under way end by the old ones.
func (e *Engine) SetOverrides(overrides []*Override) error {
	e.setting.Lock()
	defer e.setting.Unlock()
	return e.override(overrides, false)
}

func (e *Engine) override(overrides []*Override, lenient bool) error {
	if !lenient {
		for _, o := range overrides {
			if err := e.known(o); err != nil {
				return err
			}
		}
	}
	t, errs := e.tabulate(append(slices.Clone(e.policy.Overrides), overrides...))
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	e.overrides.Store(t)
	e.runTime = slices.Clone(overrides)
	return nil
}

// known is an error where an override is for a limit that is not there.
func (e *Engine) known(o *Override) error {
	for name := range o.Limits {
		if e.limit(name) == nil {
			return fmt.Errorf("%q is no limit of the policy", name)
		}
	}
	return nil
}

// Overrides are those that were set with [Engine.SetOverrides].
func (e *Engine) Overrides() []*Override {
	e.setting.Lock()
	defer e.setting.Unlock()
	return slices.Clone(e.runTime)
}

// Ended says whether an override no longer holds.
func (o *Override) Ended(now time.Time) bool { return !o.Until.IsZero() && !now.Before(o.Until) }
