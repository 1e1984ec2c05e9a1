package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// The choices of a random policy with stages.
func (t *town) limit(r *rapid.T, name string) *policy.Limit {
	pick := func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(r, what) }
	l := &policy.Limit{Name: name, Mode: policy.Mode(max(0, pick("mode", 4)-2)), OnLimit: policy.OnLimit(max(0, pick("on limit", 5)-2))}
	proved := []identity.Source{t.key, t.user, identity.First{t.user, t.key}}
	l.Per = rapid.SampledFrom(append(proved, socket, t.name, identity.First{t.key, t.user, socket}, identity.First{t.key, t.name},
		identity.All{t.key, socket}, identity.All{t.name, socket}, identity.All{t.user, t.name})).Draw(r, "per")
	l.OnMissing = policy.OnMissing(max(0, pick("on missing", 5)-2))
	if l.Mode == policy.Enforce && slices.ContainsFunc(proved, func(s identity.Source) bool { return fmt.Sprint(s) == fmt.Sprint(l.Per) }) && l.OnMissing != policy.ByAddress {
		l.Share = []int{0, 0, 50}[pick("share", 3)]
	}
	n := &l.Limit
	n.Algorithm = comporta.Algorithm(pick("algorithm", 5))
	*n = t.numbers(r, *n)
	switch charge := pick("charge", 6); {
	case charge == 0:
		n.Charge = comporta.Attempts
	case charge == 1 && n.Algorithm == comporta.TokenBucket:
		n.MaxWait = 2 * time.Second
	case charge == 2 && n.Algorithm != comporta.LeakyBucket:
		n.Charge, l.Failure.Status = comporta.Failures, []int{401}
	}
	if !strings.HasPrefix(n.Algorithm.String(), "sliding") && pick("cost", 3) == 0 {
		dear, err := policy.ParsePattern("/a/1")
		if err != nil {
			r.Fatal(err)
		}
		l.Cost = []policy.Cost{{Match: dear, Units: int64(pick("units", 4))}}
	}
	if pick("block", 3) == 0 {
		l.Block = time.Duration(1+pick("block for", 15)) * time.Second
	}
	if n.Algorithm == comporta.FixedWindow {
		l.WarnAt = []int{0, 50, 80, 100}[pick("warn", 4)]
	}
	return l
}

// numbers are random ones for a limit.
func (t *town) numbers(r *rapid.T, n comporta.Limit) comporta.Limit {
	n.Limit = rapid.Int64Range(0, 5).Draw(r, "limit")
	n.Window = time.Duration(rapid.IntRange(1, 20).Draw(r, "window")) * time.Second
	if n.Algorithm.Bucket() && n.Limit > 0 {
		n.Burst = rapid.Int64Range(0, 5).Draw(r, "burst")
	}
	return n
}

// client is a random one that can be named.
func (t *town) client(r *rapid.T, of ...identity.Source) policy.Listed {
	switch s := rapid.SampledFrom(of).Draw(r, "client by").(type) {
	case *card:
		who, _ := s.For(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "holder"))
		return policy.Listed{Source: s, Who: who}
	case *identity.Claimed:
		who, _ := s.For(rapid.SampledFrom([]string{"a", "b"}).Draw(r, "claimed"))
		return policy.Listed{Source: s, Who: who}
	case *identity.Address:
		who, _ := s.For(rapid.SampledFrom(peers).Draw(r, "peer"))
		return policy.Listed{Source: s, Who: who}
	}
	return policy.Listed{Network: prefix(rapid.SampledFrom([]string{"10.0.0.0/8", "10.0.0.0/24", "10.0.0.1/32"}).Draw(r, "network"))}
}

var peers = []string{"10.0.0.1", "10.0.0.2", "10.0.1.1"}

// policy is a random one.
func (t *town) draw(r *rapid.T, s *identity.Secret) *policy.Policy {
	p := &policy.Policy{Secret: s, Address: socket, IPv6Outer: policy.IPv6Outer{Off: true}, Marks: &policy.Marks{Key: make([]byte, 32)}}
	p.Claimed.NewKeys = comporta.Limit{Limit: rapid.Int64Range(0, 3).Draw(r, "new keys"), Window: 10 * time.Second}
	p.Plans = map[string]policy.Plan{"pro": {}, "whole": {}}
	for i := range rapid.IntRange(1, 4).Draw(r, "limits") {
		l := t.limit(r, fmt.Sprintf("l%d", i))
		p.Limits = append(p.Limits, l)
		if rapid.Bool().Draw(r, "plans") {
			p.Plans["pro"][l.Name] = t.numbers(r, comporta.Limit{Algorithm: l.Limit.Algorithm})
			p.Plans["whole"][l.Name] = comporta.Limit{Unlimited: true}
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(r, "overrides") {
		p.Overrides = append(p.Overrides, t.override(r, p, 1+i))
	}
	if rapid.IntRange(0, 2).Draw(r, "lists") == 0 {
		p.Allow = append(p.Allow, t.client(r, t.key, t.user, nil))
		p.Deny = append(p.Deny, t.client(r, t.key, t.user, nil))
	}
	return p
}

func (t *town) override(r *rapid.T, p *policy.Policy, line int) *policy.Override {
	l := rapid.SampledFrom(p.Limits).Draw(r, "of")
	o := &policy.Override{Line: line, Who: t.client(r, t.key, t.user, t.name, socket, nil, nil), Limits: map[string]comporta.Limit{
		l.Name: t.numbers(r, comporta.Limit{Algorithm: l.Limit.Algorithm}),
	}}
	if rapid.IntRange(0, 4).Draw(r, "none") == 0 {
		o.Limits[l.Name] = comporta.Limit{Unlimited: true}
	}
	if until := rapid.IntRange(0, 40).Draw(r, "until"); until > 10 {
		o.Until = epoch.Add(time.Duration(until) * time.Second)
	}
	return o
}

// visit is a random one. A holder has one plan for good.
func (t *town) visit(r *rapid.T) visit {
	cards := []string{"", "", "forged", "a", "b of pro", "c of whole"}
	return visit{
		peer: rapid.SampledFrom(peers).Draw(r, "peer"),
		key:  rapid.SampledFrom(cards).Draw(r, "key"),
		user: rapid.SampledFrom(cards).Draw(r, "user"),
		name: rapid.SampledFrom([]string{"", "a", "b", "c", "?"}).Draw(r, "name"),
		dear: rapid.IntRange(0, 2).Draw(r, "dear") == 0,
	}
}
