package policy

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
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
	errs   []error
}

func (e *Engine) compile() error {
	c := &compiler{engine: e, names: map[string]bool{}}
	if e.store == nil {
		c.wrong(nil, "store", errors.New("an engine needs one, such as memstore.New"))
	}
	c.fallback()
	for _, l := range e.policy.Limits {
		if clause := c.limit(l); clause != nil {
			e.clauses = append(e.clauses, clause)
		}
	}
	if p := e.policy.Preflight; p == nil || p.Mode != Off {
		e.preflight = c.limit(e.policy.preflight())
	}
	for _, clause := range e.all() {
		e.narrow = e.narrow || clause.narrow()
	}
	return errors.Join(c.errs...)
}

func (c *compiler) wrong(l *Limit, field string, err error) {
	c.errs = append(c.errs, &Error{l, field, err})
}

// preflight is the limit that preflights stand under.
func (p *Policy) preflight() *Limit {
	l := Limit{Name: "preflight", Limit: comporta.Limit{Limit: 600, Window: time.Minute}}
	if p.Preflight != nil {
		l = *p.Preflight
		l.Match, l.Except, l.Cost = nil, nil, nil
	}
	switch {
	case l.Per != nil:
	case p.Address != nil:
		l.Per = p.Address
	default:
		l.Per = new(identity.Address)
	}
	return &l
}

// limit compiles one limit; nil where it is off, or wrong.
func (c *compiler) limit(l *Limit) *clause {
	faults := len(c.errs)
	c.name(l)
	c.per(l)
	c.costs(l)
	c.onError(l, l.OnError)
	rule := c.rule(l)
	if len(c.errs) > faults || l.Mode == Off {
		return nil
	}
	clause := &clause{match: c.patterns(l.Match), except: c.patterns(l.Except)}
	for _, cost := range l.Cost {
		if cost.Match != nil {
			cost.Match = c.pattern(cost.Match)
		}
		clause.costs = append(clause.costs, cost)
	}
	clause.parts = append(clause.parts, c.part(l, rule))
	if outer := c.outer(l); outer != nil {
		clause.parts = append(clause.parts, c.part(outer, c.rule(outer)))
	}
	return clause
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
	if l.Per == nil {
		c.wrong(l, "per", errors.New("say whose budget a request is counted against: address, {header: …}, {path: …} or everyone"))
		return
	}
	p, ok := l.Per.(identity.Path)
	if !ok {
		return
	}
	if len(l.Match) == 0 {
		c.wrong(l, "per", fmt.Errorf("a part of the path needs a pattern that has it, as match: /{%s}/", p.Name()))
	}
	for _, pattern := range l.Match {
		if !slices.Contains(pattern.Wildcards(), p.Name()) {
			c.wrong(l, "per", fmt.Errorf("the pattern %q has no wildcard {%s}: what it matches would not be limited", pattern, p.Name()))
		}
	}
}

func (c *compiler) costs(l *Limit) {
	for _, cost := range l.Cost {
		if cost.Units < 0 || cost.Units > comporta.MaxCost {
			c.wrong(l, "cost", fmt.Errorf("a cost of %d is out of range: from 0 to 2^53 − 1", cost.Units))
		}
	}
}

// rule compiles a limit's numbers; nil where they are wrong.
func (c *compiler) rule(l *Limit) *comporta.Rule {
	numbers := l.Limit
	numbers.Name = l.Name
	if numbers.Calendar != nil && numbers.Calendar.Zone == nil {
		zoned := *numbers.Calendar
		zoned.Zone = c.engine.policy.Zone
		numbers.Calendar = &zoned
	}
	if numbers.Charge == comporta.Failures {
		c.wrong(l, "charge", errors.New("charge: failures is not built yet: nothing settles what succeeded; use admitted or attempts"))
		return nil
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

// outer is the limit by the wider IPv6 prefix beside a limit by address; nil
// where there is none to be. What denies or allows all alike needs none.
func (c *compiler) outer(l *Limit) *Limit {
	o := c.engine.policy.IPv6Outer
	address, ok := l.Per.(*identity.Address)
	if !ok || o.Off || l.Limit.Unlimited || l.Limit.Limit == 0 {
		return nil
	}
	wide := *l
	wide.Name += ".outer"
	source, err := address.Outer(cmp.Or(o.Prefix, 48))
	switch {
	case err != nil && o.Prefix == 0:
		return nil // a client is that much already
	case err != nil:
		c.wrong(l, "ipv6_outer", err)
		return nil
	case o.Times < 0:
		c.wrong(l, "ipv6_outer", fmt.Errorf("%d times the limit: at least 1", o.Times))
		return nil
	}
	wide.Per = source
	wide.Limit.Limit = times(l.Limit.Limit, cmp.Or(o.Times, 16))
	wide.Limit.Burst = times(l.Limit.Burst, cmp.Or(o.Times, 16))
	c.name(&wide)
	return &wide
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
	f.spares = make(map[*Limit]*spare)
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

func (c *compiler) part(l *Limit, rule *comporta.Rule) part {
	s := &spare{onError: l.OnError.or(c.engine.fallback.onError), rule: rule, quota: l.Limit.Calendar != nil}
	if s.onError == Deny && l.Mode == Shadow {
		s.onError = Allow
	}
	c.engine.fallback.spares[l] = s
	return part{l, rule, c.source(l.Per), l.Shown(), l.Limit.Unlimited}
}

// source is the index of a source among the engine's: equal ones are asked once.
func (c *compiler) source(s identity.Source) int {
	e := c.engine
	for i, o := range e.sources {
		if reflect.ValueOf(o).Comparable() && reflect.ValueOf(s).Comparable() && o == s {
			return i
		}
	}
	e.sources = append(e.sources, s)
	return len(e.sources) - 1
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
