package policy_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

// epoch is where the tests' clocks start: the start of a minute, of an hour and of a day.
var epoch = time.Unix(1_800_057_600, 0)

// A house is an engine over a memory store, and the clock of both.
type house struct {
	*policy.Engine
	now time.Time
}

func open(t testing.TB, p policy.Policy) *house {
	t.Helper()
	h := &house{now: epoch}
	now := func() time.Time { return h.now }
	store, err := memstore.New(memstore.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if h.Engine, err = policy.NewEngine(&p, store, policy.Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	return h
}

// request is one from a peer; headers are name, value, name, value …
func request(method, path, peer string, headers ...string) *identity.Request {
	r := &identity.Request{Method: method, Host: "example.com", Path: path, Peer: netip.MustParseAddr(peer), Header: map[string][]string{}}
	for pair := range slices.Chunk(headers, 2) {
		r.Header[pair[0]] = append(r.Header[pair[0]], pair[1])
	}
	return r
}

func (h *house) check(r *identity.Request) *policy.Verdict {
	v := new(policy.Verdict)
	h.Check(context.Background(), r, v)
	return v
}

// passes is how many of n such requests are allowed.
func (h *house) passes(n int, method, path, peer string, headers ...string) (allowed int) {
	for range n {
		if h.check(request(method, path, peer, headers...)).Allowed {
			allowed++
		}
	}
	return allowed
}

// socket is the peer's address: one source, which a request is asked for once.
var socket = new(identity.Address)

// limit is one by the peer's address; numbers are as "10/min as fixed_window".
func limit(t testing.TB, name, numbers string, set ...func(*policy.Limit)) *policy.Limit {
	t.Helper()
	numbers, algorithm, _ := strings.Cut(numbers, " as ")
	n, err := comporta.ParseLimit(numbers)
	if err != nil {
		t.Fatal(err)
	}
	if algorithm != "" {
		if n.Algorithm, err = comporta.ParseAlgorithm(algorithm); err != nil {
			t.Fatal(err)
		}
	}
	l := &policy.Limit{Name: name, Per: socket, Limit: n}
	for _, s := range set {
		s(l)
	}
	return l
}

func shadow(l *policy.Limit)   { l.Mode = policy.Shadow }
func attempts(l *policy.Limit) { l.Limit.Charge = comporta.Attempts }
func everyone(l *policy.Limit) { l.Per = identity.Everyone{} }
func show(l *policy.Limit)     { yes := true; l.Show = &yes }

func per(s identity.Source) func(*policy.Limit) { return func(l *policy.Limit) { l.Per = s } }

func match(t testing.TB, patterns ...string) func(*policy.Limit) {
	return func(l *policy.Limit) {
		for _, text := range patterns {
			if text, ok := strings.CutPrefix(text, "not "); ok {
				l.Except = append(l.Except, pattern(t, text))
			} else {
				l.Match = append(l.Match, pattern(t, text))
			}
		}
	}
}

func cost(p *policy.Pattern, units int64) func(*policy.Limit) {
	return func(l *policy.Limit) { l.Cost = append(l.Cost, policy.Cost{Match: p, Units: units}) }
}

func secret(t testing.TB) *identity.Secret {
	t.Helper()
	s, err := identity.NewSecret(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func limits(l ...*policy.Limit) policy.Policy { return policy.Policy{Limits: l} }

// told is the part of a verdict that a story is about: limits and what they said.
func told(v *policy.Verdict) (lines []string) {
	for i, a := range v.Applied {
		line := a.Limit.Name + " denies"
		if a.Decision.Allowed {
			line = a.Limit.Name + " allows"
		}
		if i == v.Named {
			line += ", named"
		}
		lines = append(lines, line)
	}
	return lines
}

const peer = "203.0.113.7"

func TestTwoLimitsWithOneMatchCountApart(t *testing.T) {
	h := open(t, limits(
		limit(t, "wide", "1000/min as fixed_window", match(t, "GET /a")),
		limit(t, "tight", "10/min as fixed_window", match(t, "GET /a")),
	))
	if n := h.passes(30, "GET", "/a", peer); n != 10 {
		t.Errorf("%d pass, not 10: a limit counted a request twice", n)
	}
	v := h.check(request("GET", "/a", peer))
	if got := v.Applied[0].Decision.Remaining; got != 990 {
		t.Errorf("wide has %d left, not 990: it was charged for what the other denied", got)
	}
	if diff := cmp.Diff([]string{"wide allows", "tight denies, named"}, told(v)); diff != "" {
		t.Error(diff)
	}
}

func TestAShadowNeitherRefusesNorHides(t *testing.T) {
	for _, order := range []string{"first", "last"} {
		t.Run(order, func(t *testing.T) {
			all := []*policy.Limit{limit(t, "shadow", "1/min as fixed_window", shadow), limit(t, "real", "3/min as fixed_window")}
			if order == "last" {
				slices.Reverse(all)
			}
			h := open(t, limits(all...))
			var said [][]string
			for range 4 {
				v := h.check(request("GET", "/", peer))
				lines := told(v)
				slices.Sort(lines)
				said = append(said, lines)
				if v.Delay != 0 || v.Allowed != (v.RetryAfter == 0) {
					t.Errorf("outcome %+v", v.Outcome)
				}
			}
			if diff := cmp.Diff([][]string{
				{"real allows, named", "shadow allows"},
				{"real allows, named", "shadow denies"},
				{"real allows, named", "shadow denies"},
				{"real denies, named", "shadow denies"},
			}, said); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOneDenialChargesNobody(t *testing.T) {
	h := open(t, limits(
		limit(t, "a", "5/min as fixed_window"),
		limit(t, "hammered", "5/min as fixed_window", attempts),
		limit(t, "post", "1/min as fixed_window", match(t, "POST /")),
	))
	remaining := func(v *policy.Verdict) (left []int64) {
		for _, a := range v.Applied {
			left = append(left, a.Decision.Remaining)
		}
		return left
	}
	h.check(request("POST", "/", peer))
	denied := h.check(request("POST", "/", peer))
	if diff := cmp.Diff([]int64{4, 3, 0}, remaining(denied)); diff != "" || denied.Allowed {
		t.Errorf("only what charges attempts is charged by a denial:\n%s", diff)
	}
	if diff := cmp.Diff([]int64{3, 2}, remaining(h.check(request("GET", "/", peer)))); diff != "" {
		t.Error(diff)
	}
}

func TestCostIsTheLargestThatMatches(t *testing.T) {
	h := open(t, limits(limit(t, "units", "100/min as fixed_window",
		cost(pattern(t, "/export/"), 10), cost(pattern(t, "GET /export/all"), 50), cost(pattern(t, "/free"), 0))))
	for _, c := range []struct {
		path string
		left int64
	}{{"/a", 99}, {"/export/1", 89}, {"/export/all", 39}, {"/free", 39}, {"/export/all", 39}} {
		if got := h.check(request("GET", c.path, peer)).Applied[0].Decision.Remaining; got != c.left {
			t.Errorf("after %s %d are left, not %d", c.path, got, c.left)
		}
	}
}

func TestWhoIsUnderALimit(t *testing.T) {
	s := secret(t)
	tenant, _ := identity.NewHeader("X-Tenant", s)
	id, _ := identity.NewPath("id", s)
	h := open(t, limits(
		limit(t, "tenant", "5/min", per(tenant)),
		limit(t, "docs", "5/min", per(id), match(t, "/docs/{id}", "/{id}/raw")),
		limit(t, "notes", "5/min", per(id), match(t, "/{kind}/{id}")),
		limit(t, "most", "5/min", match(t, "not GET /health", "not example.org/")),
		limit(t, "off", "5/min", func(l *policy.Limit) { l.Mode = policy.Off }),
		limit(t, "free", "unlimited", match(t, "/docs/")),
	))
	for _, c := range []struct {
		r    *identity.Request
		want []string
	}{
		{request("GET", "/health", peer), nil},
		{request("POST", "/health", peer), []string{"most allows, named"}},
		{request("GET", "/health", peer, "X-Tenant", "a"), []string{"tenant allows, named"}},
		{request("GET", "/docs/", peer), []string{"most allows, named", "free allows"}},
		{request("GET", "/docs/7", peer), []string{"docs allows", "notes allows", "most allows, named", "free allows"}},
	} {
		v := h.check(c.r)
		if diff := cmp.Diff(c.want, told(v)); diff != "" || !v.Allowed || c.want == nil && v.Named != -1 {
			t.Errorf("%s: named %d\n%s", c.r.Path, v.Named, diff)
		}
		if c.r.PathValues != nil {
			t.Error("the wildcards of a pattern are told after the check")
		}
	}
	// /7/raw and /docs/7 are one document, and to notes another one.
	v, w := h.check(request("GET", "/7/raw", peer)), h.check(request("GET", "/docs/7", peer))
	if v.Applied[0].Identity != w.Applied[0].Identity || v.Applied[1].Identity == w.Applied[1].Identity {
		t.Errorf("%+v\n%+v", v.Applied, w.Applied)
	}
}

func TestAClientIsOneHoweverItIsSpelt(t *testing.T) {
	trusted, err := identity.ParsePrefix("172.16.0.0/12")
	if err != nil {
		t.Fatal(err)
	}
	address, err := identity.NewAddress(identity.AddressOptions{Trusted: []netip.Prefix{trusted}})
	if err != nil {
		t.Fatal(err)
	}
	forwarded := func(t *testing.T, numbers string, entries ...string) (allowed []bool) {
		h := open(t, limits(limit(t, "one", numbers, per(address))))
		for _, entry := range entries {
			allowed = append(allowed, h.check(request("GET", "/", "172.17.0.9", "X-Forwarded-For", entry)).Allowed)
		}
		return allowed
	}
	t.Run("a port is no new client", func(t *testing.T) {
		got := forwarded(t, "1/min", "203.0.113.7:51034", "203.0.113.7:51035", "[2001:db8::7]:443", "2001:db8::7")
		if diff := cmp.Diff([]bool{true, false, true, false}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nor is another address of a /64", func(t *testing.T) {
		got := forwarded(t, "3/min", "2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2::3", "2001:db8:1:2::4", "2001:db8:1:3::1")
		if diff := cmp.Diff([]bool{true, true, true, false, true}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nor is a forged entry", func(t *testing.T) {
		var entries []string
		for i := range 12 {
			entries = append(entries, netip.AddrFrom4([4]byte{9, 9, 9, byte(i)}).String()+", 198.51.100.23, 172.17.0.1")
		}
		want := slices.Concat(slices.Repeat([]bool{true}, 5), slices.Repeat([]bool{false}, 7))
		if diff := cmp.Diff(want, forwarded(t, "5/min", entries...)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOneCustomerHasManyPrefixes(t *testing.T) {
	h := open(t, limits(limit(t, "api", "10/min burst 5")))
	allowed := 0
	for i := range 100 {
		peer := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 1, 0, byte(i), 15: 1})
		allowed += h.passes(3, "GET", "/", peer.String())
	}
	if allowed != 5*16 {
		t.Errorf("%d pass from one /48, not 80", allowed)
	}
	v := h.check(request("GET", "/", "2001:db8:1:ffff::1"))
	if diff := cmp.Diff([]string{"api allows", "api.outer denies, named"}, told(v)); diff != "" {
		t.Error(diff)
	}
	if v.Applied[1].Limit.Limit.Limit != 160 || v.Applied[1].Identity != "address:2001:db8:1::/48" {
		t.Errorf("%+v", v.Applied[1])
	}
	if v := h.check(request("GET", "/", peer)); len(v.Applied) != 1 {
		t.Errorf("an IPv4 client is under %q", told(v))
	}
}

func TestPreflightsStandUnderTheirOwnLimit(t *testing.T) {
	h := open(t, limits(limit(t, "api", "2/min as fixed_window")))
	ask := []string{"Origin", "https://app.example", "Access-Control-Request-Method", "PUT"}
	if n := h.passes(700, "OPTIONS", "/a", peer, ask...); n != 600 {
		t.Errorf("%d preflights pass, not 600", n)
	}
	v := h.check(request("OPTIONS", "/a", peer, ask...))
	if diff := cmp.Diff([]string{"preflight denies, named"}, told(v)); diff != "" || !v.Preflight {
		t.Error(diff)
	}
	for _, r := range []*identity.Request{
		request("OPTIONS", "/a", peer, ask[:2]...), request("OPTIONS", "/a", peer, ask[2:]...), request("GET", "/a", peer, ask...),
	} {
		v := h.check(r)
		if v.Preflight || v.Applied[0].Limit.Name != "api" {
			t.Errorf("%s with %v is a preflight", r.Method, r.Header)
		}
	}
	free := limits(limit(t, "api", "2/min"))
	free.Preflight = &policy.Limit{Mode: policy.Off}
	if n := open(t, free).passes(700, "OPTIONS", "/a", peer, ask...); n != 700 {
		t.Errorf("%d preflights pass, not all", n)
	}
}

func TestPathsAsTheUpstreamReadsThem(t *testing.T) {
	s := secret(t)
	rest, _ := identity.NewPath("rest", s)
	for _, c := range []struct {
		paths        policy.Paths
		pattern      string
		same, others []string
	}{
		{policy.Paths{}, "/docs/{rest...}", []string{"/docs/A", "/docs/A"}, []string{"/docs/a", "/Docs/A", "/docs/A/"}},
		{policy.Paths{FoldCase: true}, "/Docs/{rest...}", []string{"/docs/ſA", "/docs/sa", "/DOCS/Sa"}, []string{"/docs/sa/"}},
		{policy.Paths{IgnoreTrailingSlash: true}, "/docs/{rest...}", []string{"/docs/a", "/docs/a/"}, []string{"/docs/A"}},
	} {
		p := limits(limit(t, "doc", "1/min", per(rest), match(t, c.pattern)))
		p.Paths = c.paths
		h := open(t, p)
		for i, path := range c.same {
			if v := h.check(request("GET", path, peer)); len(v.Applied) != 1 || v.Allowed != (i == 0) {
				t.Errorf("%+v: %s is not counted with %s: %q", c.paths, path, c.same[0], told(v))
			}
		}
		for _, path := range c.others {
			if !h.check(request("GET", path, peer)).Allowed {
				t.Errorf("%+v: %s is counted with %s", c.paths, path, c.same[0])
			}
		}
	}
	p := limits(limit(t, "tree", "1/min", match(t, "/docs/")))
	p.Paths.IgnoreTrailingSlash = true
	if n := open(t, p).passes(1, "GET", "/docs", peer) + open(t, p).passes(2, "GET", "/docs", peer); n != 2 {
		t.Errorf("/docs is not under /docs/ where a slash is ignored: %d pass", n)
	}
}

func TestSemicolonsMatterOnlyWherePathsDo(t *testing.T) {
	if _, _, err := open(t, limits(limit(t, "all", "1/min", match(t, "GET example.com/")))).CleanPath("/a;b"); err != nil {
		t.Errorf("no limit matches by path: %v", err)
	}
	for name, l := range map[string]*policy.Limit{
		"match": limit(t, "a", "1/min", match(t, "/a")), "except": limit(t, "a", "1/min", match(t, "not /a")),
		"cost": limit(t, "a", "1/min", cost(pattern(t, "/a"), 2)),
	} {
		if _, _, err := open(t, limits(l)).CleanPath("/a;b"); !errors.Is(err, policy.ErrPath) {
			t.Errorf("%s by path: %v", name, err)
		}
	}
}

// lost is a store that cannot answer.
type lost struct{ comporta.Store }

var errLost = errors.New("the store is gone")

func (lost) Take(context.Context, []comporta.Take, []comporta.Taken) error { return errLost }

func TestAStoreThatCannotAnswer(t *testing.T) {
	p := limits(limit(t, "api", "1/min"))
	e, err := policy.NewEngine(&p, lost{}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var v policy.Verdict
	e.Check(t.Context(), request("GET", "/", peer), &v)
	if !errors.Is(v.Failed, errLost) || !v.Allowed || v.Named != -1 || v.Applied[0].Shown {
		t.Errorf("%+v", v)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if e.Check(ended, request("GET", "/", peer), &v); v.Failed == nil || v.Allowed {
		t.Errorf("a request that nobody waits for is allowed uncounted: %+v", v)
	}
	if e.Check(t.Context(), request("OPTIONS", "/", peer), &v); v.Now == 0 {
		t.Error("without a clock of its own an engine has the wall's")
	}
}
