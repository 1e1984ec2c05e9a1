package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// limitView has a limit's words and what they come to.
type limitView struct {
	Name      string              `json:"name"`
	Line      int                 `json:"line"`
	Match     []string            `json:"match"`
	Except    []string            `json:"except"`
	Per       any                 `json:"per"`
	OnMissing string              `json:"on_missing,omitempty"` // where a request may lack them
	Limit     string              `json:"limit,omitempty"`
	Quota     string              `json:"quota,omitempty"`
	StartsAt  string              `json:"starts_at,omitempty"`
	Algorithm string              `json:"algorithm"`
	MaxWait   string              `json:"max_wait,omitempty"`
	Cost      any                 `json:"cost"` // []costView, costHeaderView or estimateView
	Charge    string              `json:"charge"`
	Failure   *failureView        `json:"failure,omitempty"`
	Stagger   bool                `json:"stagger"`
	Show      bool                `json:"show"`
	Mode      string              `json:"mode"`
	Enforce   string              `json:"enforce,omitempty"`
	OnLimit   any                 `json:"on_limit"` // a word, or {status}
	Block     string              `json:"block,omitempty"`
	Message   string              `json:"message,omitempty"`
	Help      string              `json:"help,omitempty"`
	WarnAt    *warnAtView         `json:"warn_at,omitempty"`
	OnError   string              `json:"on_error,omitempty"` // where it is not the store's
	Lease     *leaseView          `json:"lease,omitempty"`
	Bound     string              `json:"bound"`
	Plans     map[string]*ownView `json:"plans,omitempty"`

	per string
}

// costView is what requests of a pattern cost; "" is all others.
type costView struct {
	Match string `json:"match"`
	Units int64  `json:"units"`
}

type costHeaderView struct {
	Header  string   `json:"header"`
	From    []string `json:"from"`
	Default int64    `json:"default"`
}

type estimateView struct {
	Estimate struct {
		RequestJSON string `json:"request_json,omitempty"`
		Default     int64  `json:"default"`
	} `json:"estimate"`
	From struct {
		ResponseJSON   string `json:"response_json,omitempty"`
		ResponseHeader string `json:"response_header,omitempty"`
	} `json:"from"`
	Refund string `json:"refund,omitempty"`
}

type failureView struct {
	Status []any `json:"status"`
}

type statusView struct {
	Status int `json:"status"`
}

type warnAtView struct {
	At     string `json:"at"`
	Header string `json:"header,omitempty"`
}

// ownView is a limit as it is for clients with numbers of their own.
type ownView struct {
	Numbers string `json:"numbers"`
	Bound   string `json:"bound"`
	// Changes are what an override makes of the limit's own numbers and of each plan's.
	Changes []changeView `json:"changes,omitempty"`
}

type changeView struct {
	From   string `json:"from"` // limit, or plan and its name
	Change change `json:"change"`
	Text   string `json:"text"`
}

type overrideView struct {
	Line    int                 `json:"line"`
	Who     map[string]string   `json:"who"`
	Limits  map[string]*ownView `json:"limits"`
	Through string              `json:"through"` // "" is for ever
	Ended   bool                `json:"ended"`
	Reason  string              `json:"reason"`

	who string
}

type leaseView struct {
	Size  any    `json:"size"` // auto or a number
	TTL   string `json:"ttl"`
	Share string `json:"share"`
}

func (c *Config) viewLimit(l *policy.Limit) limitView {
	n := l.Limit
	v := limitView{
		Name: l.Name, Line: l.Line, Match: texts(l.Match), Except: texts(l.Except), Per: c.perView(l.Per), per: l.Per.String(),
		OnMissing: onMissingText(l), Algorithm: n.Algorithm.String(), Cost: viewCost(l), Charge: n.Charge.String(), Stagger: n.Stagger,
		Show: l.Shown(), Mode: modeNames[l.Mode], OnLimit: onLimitText(l), Message: l.Message, Help: l.Help,
		Lease: viewLease(n.Lease),
	}
	if l.Status != 0 {
		v.OnLimit = statusView{l.Status}
	}
	if l.OnError != policy.Default {
		v.OnError = l.OnError.String()
	}
	if n.Calendar != nil {
		v.Quota, v.StartsAt = n.String(), writeStart(n.Calendar)
	} else {
		v.Limit = n.String()
	}
	v.MaxWait, v.Block = orNone(n.MaxWait), orNone(l.Block)
	if l.Share > 0 {
		v.Enforce = percentText(l.Share)
	}
	if l.WarnAt > 0 {
		v.WarnAt = &warnAtView{percentText(l.WarnAt), l.WarnHeader}
	}
	if said := statuses(&l.Failure); said != nil {
		v.Failure = &failureView{}
		for _, s := range said {
			v.Failure.Status = append(v.Failure.Status, asWritten(s))
		}
	}
	if rule, err := n.Compile(); err == nil {
		v.Bound = boundWords(l, rule)
	}
	for _, plan := range slices.Sorted(maps.Keys(c.Policy.Plans)) {
		if said, ok := c.Policy.Plans[plan][l.Name]; ok {
			if v.Plans == nil {
				v.Plans = map[string]*ownView{}
			}
			v.Plans[plan], _ = viewOwn(l, said)
		}
	}
	return v
}

// viewOwn is a limit with other numbers, and their rule.
func viewOwn(l *policy.Limit, said comporta.Limit) (*ownView, *comporta.Rule) {
	mine, rule := own(l, said)
	return &ownView{Numbers: said.String(), Bound: promise(mine, rule)}, rule
}

// viewOverride tells of an override what it changes: from the limit's own numbers,
// and from those of each plan where such a client may have one.
func (c *Config) viewOverride(o *override) overrideView {
	v := overrideView{Line: o.Line, Who: map[string]string{}, Limits: map[string]*ownView{}, Through: o.day, Ended: o.ended, Reason: o.Reason, who: whoText(o.who)}
	for _, e := range o.who {
		v.Who[e.key.text] = scalars(e.value)
	}
	for _, l := range c.Policy.Limits {
		said, ok := o.Limits[l.Name]
		if !ok {
			continue
		}
		mine, is := viewOwn(l, said)
		v.Limits[l.Name] = mine
		tell := func(from, whose string, was *comporta.Rule) {
			how, text := changeWords(whose, was, is)
			mine.Changes = append(mine.Changes, changeView{from, how, text})
		}
		if was, err := l.Limit.Compile(); err == nil {
			tell("limit", "the limit", was)
		}
		if o.Who.Source == nil || !tellsPlans(o.Who.Source) {
			continue
		}
		for _, plan := range slices.Sorted(maps.Keys(c.Policy.Plans)) {
			if said, ok := c.Policy.Plans[plan][l.Name]; ok {
				_, was := own(l, said)
				tell("plan "+plan, "plan "+plan, was)
			}
		}
	}
	return v
}

func viewCost(l *policy.Limit) any {
	switch h, e := l.CostHeader, l.Estimate; {
	case h != nil:
		v := costHeaderView{Header: h.Name, Default: h.Default}
		for _, p := range h.From {
			v.From = append(v.From, p.String())
		}
		return v
	case e != nil:
		v := estimateView{}
		v.Estimate.RequestJSON, v.Estimate.Default = e.RequestJSON, e.Default
		v.From.ResponseJSON, v.From.ResponseHeader = e.ResponseJSON, e.ResponseHeader
		if e.Refund {
			v.Refund = "upstream_failure"
		}
		return v
	}
	out, others := []costView{}, true
	for _, c := range l.Cost {
		pattern := ""
		if c.Match != nil {
			pattern = c.Match.String()
		} else {
			others = false
		}
		out = append(out, costView{pattern, c.Units})
	}
	if others {
		out = append(out, costView{"", 1})
	}
	return out
}

var modeNames = map[policy.Mode]string{policy.Enforce: "enforce", policy.Shadow: "shadow", policy.Off: "off"}

func viewLease(l *comporta.Lease) *leaseView {
	if l == nil {
		return nil
	}
	filled := l.Filled()
	v := &leaseView{Size: "auto", TTL: comporta.FormatDuration(filled.TTL), Share: fmt.Sprintf("%d%%", filled.Share)}
	if filled.Size > 0 {
		v.Size = filled.Size
	}
	return v
}

func percentText(n int) string { return strconv.Itoa(n) + "%" }

// onMissingText is what becomes of requests that show no identity of the limit's; ""
// where every request shows one.
func onMissingText(l *policy.Limit) string {
	if neverMissing(l.Per) {
		return ""
	}
	for name, said := range onMissings {
		if said == l.OnMissing && !(said == policy.Skip && identity.Has(l.Per, isClaimed)) {
			return name
		}
	}
	return "address"
}

// neverMissing says whether every request shows an identity of a source.
func neverMissing(s identity.Source) bool {
	switch s := s.(type) {
	case identity.First:
		return slices.ContainsFunc(s, neverMissing)
	case identity.All:
		return !slices.ContainsFunc(s, func(part identity.Source) bool { return !always(part) })
	}
	return always(s)
}

// asWritten is a number where s is one.
func asWritten(s string) any {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return s
}

func orNone(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return comporta.FormatDuration(d)
}
