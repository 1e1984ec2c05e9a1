package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
)

// An Error is a fault of a policy.
type Error struct {
	// Limit is the limit that has it; nil where none has.
	Limit *Limit
	// Field is the word for it in a policy file: name, per, match, cost, limit …
	Field string
	// Err says what is wrong and what to do.
	Err error
}

func (e *Error) Error() string {
	if e.Limit == nil {
		return fmt.Sprintf("%s: %v", e.Field, e.Err)
	}
	line := ""
	if e.Limit.Line > 0 {
		line = fmt.Sprintf(" (line %d)", e.Limit.Line)
	}
	return fmt.Sprintf("limit %q%s: %s: %v", e.Limit.Name, line, e.Field, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// compiler gathers what is wrong with a policy.
type compiler struct {
	engine *Engine
	names  map[string]bool
	fresh  *comporta.Rule // bounds the keys that nobody proved
	errs   []error
}

func (e *Engine) compile() error {
	c := &compiler{engine: e, names: map[string]bool{}}
	if e.store == nil {
		c.wrong(nil, "store", errors.New("an engine needs one, such as memstore.New"))
	}
	e.address = cmp.Or(e.policy.Address, new(identity.Address)) // which believes the socket alone
	c.fallback()
	c.claimed()
	if len(e.policy.Plans) > 0 {
		e.plans = new(lastPlans)
	}
	for _, l := range e.policy.Limits {
		if clause := c.limit(l); clause != nil {
			e.clauses = append(e.clauses, clause)
		}
	}
	if p := e.policy.Preflight; p == nil || p.Mode != Off {
		if own := c.limit(e.preflightLimit()); own != nil {
			e.preflights = []*clause{own}
		}
	}
	c.checkPlans()
	c.lists()
	if len(c.errs) == 0 {
		c.overrides()
	}
	e.plain = len(e.lists.leaves) == 0 && len(e.policy.Allow)+len(e.policy.Deny) == 0 && !e.looks
	for _, clause := range e.all() {
		e.narrow = e.narrow || clause.narrow()
		for i := range clause.parts {
			e.plain = e.plain && clause.parts[i].plain >= 0
		}
	}
	return errors.Join(c.errs...)
}

func (c *compiler) wrong(l *Limit, field string, err error) {
	c.errs = append(c.errs, &Error{l, field, err})
}

// preflight is the limit that preflights stand under.
func (e *Engine) preflightLimit() *Limit {
	p := e.policy
	l := Limit{Name: "preflight", Limit: comporta.Limit{Limit: 600, Window: time.Minute}}
	if p.Preflight != nil {
		l = *p.Preflight
		l.Match, l.Except, l.Cost, l.CostHeader, l.Estimate = nil, nil, nil, nil, nil
	}
	if l.Per == nil {
		l.Per = e.address
	}
	return &l
}

// limit compiles one limit; nil where it is off, or wrong.
func (c *compiler) limit(l *Limit) *clause {
	faults := len(c.errs)
	c.name(l)
	c.per(l)
	c.costs(l)
	c.conduct(l)
	c.onError(l, l.OnError)
	own := c.compileNumbers(l, l.Limit, "limit")
	plans := c.plans(l, l, func(own comporta.Limit) comporta.Limit { return own })
	if len(c.errs) > faults || l.Mode == Off {
		return nil
	}
	clause := &clause{limit: l, match: c.patterns(l.Match), except: c.patterns(l.Except), parts: make([]part, 1, 2)}
	for _, cost := range l.Cost {
		if cost.Match != nil {
			cost.Match = c.pattern(cost.Match)
		}
		clause.costs = append(clause.costs, cost)
	}
	main := &clause.parts[0]
	*main = part{limit: l, who: c.compileWho(l), own: *own, plans: plans, open: isOpen(l.Per)}
	c.beside(main)
	c.outer(clause)
	return clause
}

// beside compiles the rules of the keys beside a part's own, and notes what there
// is to do for it.
func (c *compiler) beside(p *part) {
	l := p.limit
	if l.Block > 0 {
		p.block = c.rule(l, comporta.Limit{Algorithm: comporta.SlidingLog, Limit: 1, Window: l.Block})
		c.name(&Limit{Name: l.Name + blockName, Line: l.Line})
	}
	for i := range p.who.options {
		if p.who.options[i].claimed && p.who.options[i].ids != nil {
			p.fresh = c.fresh
		}
	}
	if p.fresh != nil {
		c.name(&Limit{Name: l.Name + freshName, Line: l.Line})
	}
	e := c.engine
	e.looks = e.looks || p.block != nil || p.fresh != nil
	e.tells = e.tells || l.WarnAt > 0 || l.Block > 0 || p.fresh != nil
	p.plain = -1
	if o := p.who.options[0]; len(p.who.options) == 1 && len(o.shown) == 1 && len(o.ids) == 1 && !p.who.forbid &&
		p.plans == nil && l.CostHeader == nil && l.Estimate == nil && l.Limit.Charge != comporta.Failures &&
		(l.Share == 0 || l.Mode == Shadow) && e.leaves[o.ids[0]].prover == nil {
		p.plain = o.ids[0]
	}
}

// name checks a limit's name and claims it.
func (c *compiler) name(l *Limit) {
	switch {
	case l.Name == "":
		c.wrong(l, "name", errors.New("a limit needs one: it is a part of every key, and headers and metrics tell it"))
	case !isName(l.Name):
		c.wrong(l, "name", errors.New("a name is of a-z, 0-9, _ . * and -, a letter or * first"))
	case c.names[l.Name]:
		c.wrong(l, "name", errors.New("another limit has this name: give each its own, or they would share counters"))
	}
	c.names[l.Name] = true
}

// isName says whether s is [a-z*][a-z0-9_.*-]*: what header fields, metrics and keys all take.
func isName(s string) bool {
	rest := strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyz*")
	return len(rest) < len(s) && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789_.*-") == ""
}

// per checks whose budget a limit counts against.
func (c *compiler) per(l *Limit) {
	if empty(l.Per) {
		c.wrong(l, "per", errors.New("say whose budget a request is counted against: address, api_key, user, {header: …}, {path: …}, {claimed: …} or everyone"))
		return
	}
	identity.Has(l.Per, func(s identity.Source) bool {
		if p, ok := s.(identity.Path); ok {
			c.path(l, p)
		}
		return false
	})
	if l.OnMissing > Forbid {
		c.wrong(l, "on_missing", fmt.Errorf("unknown: %d", l.OnMissing))
	}
}

// empty says whether a source is none, or a list that has none or another list
// where only sources can stand.
func empty(s identity.Source) bool {
	var parts []identity.Source
	switch s := s.(type) {
	case nil:
		return true
	case identity.First:
		for _, part := range s {
			if _, list := part.(identity.First); list || empty(part) {
				return true
			}
		}
		return len(s) == 0
	case identity.All:
		parts = s
	default:
		return false
	}
	for _, part := range parts {
		switch part.(type) {
		case nil, identity.First, identity.All:
			return true
		}
	}
	return len(parts) == 0
}

// path checks that the patterns have the wildcard that a limit counts per.
func (c *compiler) path(l *Limit, p identity.Path) {
	if len(l.Match) == 0 {
		c.wrong(l, "per", fmt.Errorf("a part of the path needs a pattern that has it, as match: /{%s}/", p.Name()))
	}
	for _, pattern := range l.Match {
		if !slices.Contains(pattern.Wildcards(), p.Name()) {
			c.wrong(l, "per", fmt.Errorf("the pattern %q has no wildcard {%s}: what it matches would not be limited", pattern, p.Name()))
		}
	}
}

// rule compiles numbers of a limit; nil where they are wrong.
func (c *compiler) rule(l *Limit, numbers comporta.Limit) *comporta.Rule {
	numbers.Name = l.Name
	if numbers.Calendar != nil && numbers.Calendar.Zone == nil {
		zoned := *numbers.Calendar
		zoned.Zone = c.engine.policy.Zone
		numbers.Calendar = &zoned
	}
	rule, err := numbers.Compile()
	if err != nil {
		field := "limit"
		if wrong, ok := errors.AsType[*comporta.LimitError](err); ok {
			field, err = wrong.Field, errors.New(wrong.Problem)
		}
		c.wrong(l, field, err)
		return nil
	}
	return rule
}

// outer adds the part by the wider IPv6 prefix to a limit by address. What
// denies or allows all alike needs none.
func (c *compiler) outer(clause *clause) {
	o, main, l := c.engine.policy.IPv6Outer, &clause.parts[0], clause.limit
	if o.Off || l.Limit.Unlimited || l.Limit.Limit == 0 {
		return
	}
	wide := *l
	wide.Name += ".outer"
	wider := make(map[int]int)
	for _, option := range main.who.options {
		for _, at := range option.ids {
			address, ok := c.engine.leaves[at].source.(*identity.Address)
			if !ok {
				continue
			}
			source, err := address.Outer(cmp.Or(o.Prefix, 48))
			switch {
			case err != nil && o.Prefix == 0:
				return // a client is that much already
			case err != nil:
				c.wrong(l, "ipv6_outer", err)
				return
			case o.Times < 0:
				c.wrong(l, "ipv6_outer", fmt.Errorf("%d times the limit: at least 1", o.Times))
				return
			}
			if len(wider) == 0 {
				wide.Per = source
			}
			wider[at] = c.leaf(source)
		}
	}
	if len(wider) == 0 {
		return
	}
	widen := func(l comporta.Limit) comporta.Limit {
		l.Limit, l.Burst = times(l.Limit, cmp.Or(o.Times, 16)), times(l.Burst, cmp.Or(o.Times, 16))
		return l
	}
	wide.Limit = widen(l.Limit)
	c.name(&wide)
	own := c.compileNumbers(&wide, wide.Limit, "limit")
	plans := c.plans(&wide, l, widen)
	if own == nil {
		return
	}
	clause.parts = append(clause.parts, part{limit: &wide, who: c.wider(main.who, wider), own: *own, plans: plans, open: main.open, main: main})
	c.beside(&clause.parts[1])
}

// times is units·n, up to what a limit may be.
func times(units int64, n int) int64 {
	if units > comporta.MaxUnits/int64(n) {
		return comporta.MaxUnits
	}
	return units * int64(n)
}

// fallback settles what holds when the store cannot answer.
func (c *compiler) fallback() {
	f := &c.engine.fallback
	f.onError = c.onError(nil, c.engine.policy.OnError)
	switch {
	case f.onError != Default:
	case f.local != nil:
		f.onError = Local
	default:
		f.onError = Allow
	}
}

// onError checks what is said of a limit, or, where that is nil, of the policy.
func (c *compiler) onError(l *Limit, said OnError) OnError {
	switch {
	case said > Deny:
		c.wrong(l, "on_error", fmt.Errorf("unknown: %v", said))
	case said == Local && c.engine.fallback.local == nil:
		c.wrong(l, "on_error", errors.New("local needs a store that decides meanwhile: give the engine Options.Local"))
	}
	return said
}

// patterns are the limit's as the policy's settings have paths matched.
func (c *compiler) patterns(patterns []*Pattern) []*Pattern {
	folded := make([]*Pattern, len(patterns))
	for i, p := range patterns {
		folded[i] = c.pattern(p)
	}
	return folded
}

func (c *compiler) pattern(p *Pattern) *Pattern {
	if !c.engine.policy.Paths.FoldCase {
		return p
	}
	return p.fold()
}
