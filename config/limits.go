package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

var goodName = regexp.MustCompile(namePattern)

// longestName is how long a limit's name may be: headers carry it.
const longestName = 64

// preflightName is the name of the limit of CORS preflights; no other limit has it.
const preflightName = "preflight"

// limits reads the list of limits, whose order is the policy's.
func (r *reader) limits(n *node) {
	if n.kind != list {
		r.wrongKind(n, "limits", "a list: each limit begins with \"- name:\"")
		return
	}
	lines := map[string]int{}
	for _, item := range n.items {
		l := r.limit(item)
		if l == nil {
			continue
		}
		if line, double := lines[l.Name]; double && l.Name != "" {
			r.fault(r.details[len(r.details)-1].at.name, fmt.Sprintf("two limits are named %q", l.Name), fmt.Sprintf("the first is in line %d: counts are kept by name, so give each its own", line))
		} else {
			lines[l.Name] = item.line
		}
		r.config.Policy.Limits = append(r.config.Policy.Limits, l)
	}
}

// limit reads one limit; nil only where it is no mapping.
func (r *reader) limit(n *node) *policy.Limit {
	before := len(r.problems)
	words := r.mapping(n, "a limit", limitWords)
	if words == nil {
		return nil
	}
	l := &policy.Limit{Line: n.line}
	defer func() { sayWhose(r.problems[before:], l) }()
	at := limitNodes{limit: n}
	if e, ok := words["name"]; ok {
		at.name = e.value
		l.Name = r.name(e.value)
	} else {
		r.fault(n, "a limit has no name", "write name: and a word that stays the same: counts are kept by it")
	}
	l.Match = r.patterns(words["match"].value, "match")
	l.Except = r.patterns(words["except"].value, "except")
	if e, ok := words["per"]; ok {
		at.per = e.value
		l.Per = r.per(e.value, words["match"].value, l.Match)
	} else {
		r.fault(n, called(l)+" does not say per whom it counts", "write per: and "+perForms)
	}
	at.numbers = n
	rule := r.numbers(n, words, l, &at)
	if r.config.Store.Redis == nil {
		l.Limit.Lease = nil // what is in this process need not be leased
	}
	at.cost = words["cost"].value
	r.charges(n, words, l)
	if e, ok := words["show"]; ok {
		on := r.boolean(e.value, "show")
		l.Show = &on
	}
	if e, ok := words["mode"]; ok {
		at.mode = e.value
		said, _ := r.choice(e.value, "mode", "enforce", "shadow", "off")
		l.Mode = map[string]policy.Mode{"shadow": policy.Shadow, "off": policy.Off}[said]
	}
	r.conduct(words, l)
	if e, ok := words["on_error"]; ok {
		at.onError = e.value
		if said := r.onError(e.value); r.config.Store.Redis != nil {
			l.OnError = said // what is in this process does not fail
		}
	}
	_, quota := words["quota"]
	r.details = append(r.details, detail{limit: l, rule: rule, quota: quota, words: words, at: at})
	return l
}

// A detail is what is known of a limit beside the policy: its rule, where its
// words stand.
type detail struct {
	limit *policy.Limit
	rule  *comporta.Rule // nil where the limit is wrong
	quota bool
	words map[string]entry
	at    limitNodes
}

// limitNodes are where a limit's words stand; nil for those left out.
type limitNodes struct{ limit, name, per, numbers, cost, mode, onError, lease *node }

// called is how problems name a limit.
func called(l *policy.Limit) string {
	if l.Name == "" {
		return "this limit"
	}
	return fmt.Sprintf("limit %q", l.Name)
}

// sayWhose puts the limit's name before problems with it. Flags are of one limit,
// which needs none.
func sayWhose(problems Problems, l *policy.Limit) {
	if l.Line == 0 || l.Name == "" || len(l.Name) > longestName {
		return
	}
	for i := range problems {
		if text := problems[i].Text; !strings.Contains(text, called(l)) {
			problems[i].Text = called(l) + ": " + strings.TrimPrefix(text, "limit: ")
		}
	}
}

func (r *reader) name(n *node) string {
	said, ok := r.text(n, "a limit's name", "requests")
	switch {
	case !ok:
		return ""
	case !goodName.MatchString(said):
		r.fault(n, fmt.Sprintf("%q is no name for a limit", said), "write a small letter or *, then small letters, digits, _ . * -")
	case len(said) > longestName:
		r.fault(n, fmt.Sprintf("this name is longer than %d letters", longestName), "headers carry it: make it short")
	case strings.HasSuffix(said, ".outer"):
		r.fault(n, fmt.Sprintf("%q is the kind of name that limits by ipv6_outer have", said), "end it otherwise")
	case strings.HasSuffix(said, ".block"), strings.HasSuffix(said, ".new"):
		r.fault(n, fmt.Sprintf("%q is the kind of name that is counted by beside a limit: for block, and for new claimed values", said), "end it otherwise")
	case said == preflightName:
		r.fault(n, `"preflight" is the name of the limit of CORS preflights`, "set that one with preflight: at the top of the file, and name this one otherwise")
	}
	return said
}

// patterns reads a pattern or a list of them; nil is none.
func (r *reader) patterns(n *node, what string) (out []*policy.Pattern) {
	if n == nil {
		return nil
	}
	items := r.several(n, what)
	if n.kind == list && len(items) == 0 {
		r.fault(n, what+" is an empty list", "name a pattern, or leave the word out")
	}
	for _, item := range items {
		if p := r.pattern(item, what); p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (r *reader) pattern(n *node, what string) *policy.Pattern {
	said, ok := r.text(n, what, "GET /search")
	if !ok {
		return nil
	}
	p, err := policy.ParsePattern(said)
	if err != nil {
		wrong, hint := splitHint(err.Error(), "write it like GET /search, \"/items/{id}\" or example.com/")
		r.fault(n, what+": "+wrong, hint)
		return nil
	}
	method, _, _ := parts(said)
	if near := nearest(method, methods); near != "" && !slices.Contains(methods, strings.ToLower(method)) {
		r.warn(n, "W-METHOD-RARE", fmt.Sprintf("%s: hardly any request has the method %s", what, method), "did you mean "+strings.ToUpper(near)+"?")
	}
	return p
}

// methods are those of nearly all requests, in small letters.
var methods = []string{"get", "head", "post", "put", "patch", "delete", "options", "connect", "trace"}

// numbers reads what a limit's rule is made of and compiles it; nil where it
// does not compile.
func (r *reader) numbers(n *node, words map[string]entry, l *policy.Limit, at *limitNodes) *comporta.Rule {
	before := len(r.problems)
	limit, isLimit := words["limit"]
	quota, isQuota := words["quota"]
	fields := map[string]*node{}
	for name, e := range words {
		fields[name] = e.value
	}
	switch {
	case isLimit && isQuota:
		r.fault(quota.key, called(l)+" has a limit and a quota", "write two limits: all that match apply")
		return nil
	case isLimit:
		at.numbers, fields["burst"] = limit.value, limit.value
		l.Limit = r.parsed(limit.value, "limit", "100/min", comporta.ParseLimit)
	case isQuota:
		at.numbers, fields["burst"] = quota.value, quota.value
		l.Limit = r.parsed(quota.value, "quota", "1000/month", comporta.ParseQuota)
	default:
		r.fault(n, called(l)+" has no numbers", "write limit: 100/min, or quota: 1000/month")
		return nil
	}
	if e, ok := words["algorithm"]; ok {
		said, ok := r.choice(e.value, "algorithm", algorithmNames()...)
		if ok {
			l.Limit.Algorithm, _ = comporta.ParseAlgorithm(said)
		}
	}
	if e, ok := words["max_wait"]; ok {
		l.Limit.MaxWait, _ = r.duration(e.value, "max_wait")
	}
	if e, ok := words["charge"]; ok {
		if said, ok := r.choice(e.value, "charge", "admitted", "attempts", "failures"); ok {
			l.Limit.Charge, _ = comporta.ParseCharge(said)
		}
	}
	if e, ok := words["stagger"]; ok {
		l.Limit.Stagger = r.boolean(e.value, "stagger")
	}
	if e, ok := words["starts_at"]; ok {
		r.startsAt(e.value, isQuota, &l.Limit)
	}
	if e, ok := words["lease"]; ok {
		at.lease = e.value
		l.Limit.Lease = r.lease(e.value)
	}
	if l.Limit.Calendar != nil {
		l.Limit.Calendar.Zone = r.config.Policy.Zone
	}
	if len(r.problems) > before {
		return nil
	}
	rule, err := l.Limit.Compile()
	if err != nil {
		r.limitError(err, fields, at.numbers, "limit")
		return nil
	}
	return rule
}

func algorithmNames() (out []string) {
	for _, a := range comporta.Algorithms() {
		out = append(out, a.String())
	}
	return out
}

// parsed reads the text of a limit or a quota.
func (r *reader) parsed(n *node, what, example string, parse func(string) (comporta.Limit, error)) comporta.Limit {
	if n.kind == number {
		if digits(n.text) {
			example = n.text + example[strings.IndexByte(example, '/'):]
		}
		r.fault(n, fmt.Sprintf("%s of %s has no period", what, n.text), "write it like "+example)
		return comporta.Limit{}
	}
	said, ok := r.text(n, what, example)
	if !ok {
		return comporta.Limit{}
	}
	l, err := parse(said)
	if err != nil {
		r.limitError(err, map[string]*node{}, n, what)
	}
	return l
}

// preflight reads the limit of CORS preflights; nil is the default one.
func (r *reader) preflight(n *node) {
	l := &policy.Limit{Name: preflightName, Per: r.config.Policy.Address, Limit: comporta.Limit{Limit: 600, Window: time.Minute}}
	r.config.Policy.Preflight = l
	if n == nil {
		return
	}
	l.Line, r.preflightAt = n.line, n
	if n.kind == text && n.text == "off" {
		l.Mode = policy.Off
		return
	}
	before := len(r.problems)
	l.Limit = r.parsed(n, "preflight", "600/min", comporta.ParseLimit)
	if len(r.problems) > before {
		return
	}
	if _, err := l.Limit.Compile(); err != nil {
		r.limitError(err, nil, n, "preflight")
	}
}
