package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

func refusal(p policy.Policy) error {
	_, err := policy.NewEngine(&p, lost{}, policy.Options{})
	return err
}

func TestEngineRefusesWhatItCannotEnforce(t *testing.T) {
	id, _ := identity.NewPath("id", secret(t))
	set := func(change func(*policy.Limit)) policy.Policy { return limits(limit(t, "a", "5/min", change)) }
	named := func(names ...string) policy.Policy {
		var p policy.Policy
		for _, name := range names {
			p.Limits = append(p.Limits, limit(t, name, "5/min"))
		}
		return p
	}
	outer := func(o policy.IPv6Outer) policy.Policy { p := named("a"); p.IPv6Outer = o; return p }
	for _, c := range []struct {
		policy policy.Policy
		want   string
	}{
		{named(""), `limit "": name: a limit needs one`},
		{named("A"), `limit "A": name: a name is of`},
		{named("1a"), "name: a name is of"},
		{named("a b"), "name: a name is of"},
		{named("a", "b", "a"), `limit "a": name: another limit has this name`},
		{named("a", "a.outer"), `limit "a.outer": name: another limit`},
		{named("preflight"), `limit "preflight": name: another limit`},
		{set(per(nil)), `limit "a": per: say whose budget`},
		{set(per(id)), "per: a part of the path needs a pattern that has it, as match: /{id}/"},
		{set(func(l *policy.Limit) { per(id)(l); match(t, "/{id}", "/all/{x}")(l) }), `per: the pattern "/all/{x}" has no wildcard {id}`},
		{set(cost(nil, -1)), "cost: a cost of -1 is out of range"},
		{set(cost(nil, comporta.MaxCost+1)), "is out of range"},
		{set(func(l *policy.Limit) { l.Limit.Charge = comporta.Failures }), "failure: charge: failures needs to know which answers are failures"},
		{set(func(l *policy.Limit) { l.Limit.Burst = -1 }), "burst: -1 is out of range"},
		{set(func(l *policy.Limit) { l.Limit = comporta.Limit{} }), "limit: a window of 0s"},
		{set(func(l *policy.Limit) { l.Line, l.Name = 7, "A" }), `limit "A" (line 7): name`},
		{outer(policy.IPv6Outer{Prefix: 64}), "ipv6_outer: an outer IPv6 prefix of 64 bits"},
		{outer(policy.IPv6Outer{Times: -2}), "ipv6_outer: -2 times the limit"},
	} {
		if err := refusal(c.policy); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	p := named("a")
	if _, err := policy.NewEngine(&p, nil, policy.Options{}); err == nil || !strings.Contains(err.Error(), "store: an engine needs one") {
		t.Errorf("without a store: %v", err)
	}
}

func TestEngineTellsAllFaultsAtOnce(t *testing.T) {
	bad := limit(t, "b", "5/min", per(nil), cost(nil, -1))
	err := refusal(limits(limit(t, "A", "5/min"), bad))
	if n := strings.Count(err.Error(), "\n") + 1; n != 3 {
		t.Errorf("%d faults told, not 3:\n%v", n, err)
	}
	fault, ok := errors.AsType[*policy.Error](err)
	if !ok || fault.Limit.Name != "A" || fault.Field != "name" {
		t.Errorf("the first is %+v", fault)
	}
}

func TestLimitsAreInPolicyOrder(t *testing.T) {
	names := func(p policy.Policy) (names []string) {
		for _, l := range open(t, p).Limits() {
			names = append(names, l.Name)
		}
		return names
	}
	wide, _ := identity.NewAddress(identity.AddressOptions{IPv6Prefix: 48})
	p := limits(
		limit(t, "one", "5/min"),
		limit(t, "off", "5/min", func(l *policy.Limit) { l.Mode = policy.Off }),
		limit(t, "all", "5/min", everyone),
		limit(t, "free", "unlimited"),
		limit(t, "none", "0/s"),
		limit(t, "wide", "5/min", per(wide)), // a /48 already
	)
	if diff := cmp.Diff([]string{"one", "one.outer", "all", "free", "none", "wide", "preflight", "preflight.outer"}, names(p)); diff != "" {
		t.Error(diff)
	}
	p.IPv6Outer.Off = true
	p.Preflight = limit(t, "ask", "5/min")
	if diff := cmp.Diff([]string{"one", "all", "free", "none", "wide", "ask"}, names(p)); diff != "" {
		t.Error(diff)
	}
}

func TestOuterNumbersStayInRange(t *testing.T) {
	p := limits(limit(t, "big", "500_000_000_000/s burst 900_000_000_000"), limit(t, "small", "10/min burst 20"))
	p.IPv6Outer.Times = 3
	all := open(t, p).Limits()
	if l := all[1].Limit; l.Limit != comporta.MaxUnits || l.Burst != comporta.MaxUnits {
		t.Errorf("%+v", l)
	}
	if l := all[3].Limit; l.Limit != 30 || l.Burst != 60 {
		t.Errorf("%+v", l)
	}
}

func TestQuotasRunInThePolicysZone(t *testing.T) {
	zone := time.FixedZone("here", 3*60*60)
	daily := limit(t, "daily", "unlimited")
	daily.Limit = comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 5, Calendar: &comporta.Calendar{Period: comporta.Day}}
	p := limits(daily)
	p.Zone = zone
	h := open(t, p)
	h.now = time.Date(2026, 11, 30, 23, 0, 0, 0, zone)
	if got := h.check(request("GET", "/", peer)).Applied[0].Decision.ResetAfter; got != time.Hour {
		t.Errorf("the day ends after %v, not in an hour", got)
	}
	if daily.Limit.Calendar.Zone != nil {
		t.Error("the policy was changed")
	}
}
