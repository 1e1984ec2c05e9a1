package admin

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	acme    = http.Header{"X-Api-Key": {"key-of-acme-0123456789"}}
	product = http.Header{"X-Product": {"p1"}}
)

func (h *house) limit(who, limit string) Limit {
	h.t.Helper()
	var c Client
	h.ask("GET", "/v1/identities/"+who, "", 200, &c)
	for _, l := range c.Limits {
		if l.Name == limit {
			return l
		}
	}
	h.t.Fatalf("%s is under no limit %s: %+v", who, limit, c)
	return Limit{}
}

func TestOneClientUnderAllLimits(t *testing.T) {
	h := newHouse(t).open()
	h.spend(3, acme, "GET /")
	h.spend(10, product, "GET /")
	var c Client
	h.ask("GET", "/v1/identities/api_key:acme", "", 200, &c)
	if c.Who != "api_key:acme" || len(c.Limits) != 2 {
		t.Fatalf("acme: %+v", c)
	}
	r, m := c.Limits[0], c.Limits[1]
	if r.Name != "requests" || r.Numbers != "600/min burst 100" || r.From != "plan pro" || r.Full != 100 || r.Used+r.Remaining != 100 || r.Used > 3 || !r.Passes || !r.Enforced {
		t.Errorf("requests: %+v", r)
	}
	if m.Name != "month" || m.Full != 1000 || m.Used != 3 || m.FullAfter <= 0 {
		t.Errorf("month: %+v", m)
	}
	if l := h.limit("header:X-Product=p1", "product"); l.Remaining != 0 || l.Passes || l.RetryAfter == nil || *l.RetryAfter <= 0 || *l.RetryAfter > 60 {
		t.Errorf("product: %+v", l)
	}
	if l := h.limit("api_key:early", "requests"); l.Numbers != "7/min" || !strings.HasPrefix(l.From, "override (line ") {
		t.Errorf("early: %+v", l)
	}
	if l := h.limit("api_key:early?plan=pro", "requests"); l.Numbers != "7/min" {
		t.Errorf("an override stands before the plan: %+v", l)
	}
	h.ask("GET", "/v1/identities/api_key:acme?plan=gold", "", 422, nil)
	if again := h.limit("api_key:acme", "month"); again.Used != 3 {
		t.Errorf("looking spends: %+v", again)
	}
}

func TestTopTellsNames(t *testing.T) {
	h := newHouse(t).open()
	h.spend(5, acme, "GET /")
	h.spend(12, product, "GET /")
	var use, denied Top
	h.ask("GET", "/v1/top?limit=month", "", 200, &use)
	if use.Unit != "units" || len(use.Clients) != 1 || use.Clients[0] != (Count{"api_key:acme", "api_key:acme", 5, 5}) {
		t.Errorf("by use: %+v", use)
	}
	h.ask("GET", "/v1/top?by=denied", "", 200, &denied)
	if denied.Unit != "requests" || len(denied.Clients) == 0 || !strings.HasPrefix(denied.Clients[0].Identity, "header:x-product:") || denied.Clients[0].AtLeast != 2 {
		t.Errorf("by denials: %+v", denied)
	}
	h.ask("GET", "/v1/top?by=luck", "", 400, nil)
	h.ask("GET", "/v1/top?limit=all", "", 422, nil)
	h.ask("GET", "/v1/top?limit=none", "", 422, nil)
}

func TestResetAndGrant(t *testing.T) {
	h := newHouse(t).open()
	h.spend(10, product, "GET /")
	var g Granted
	h.ask("POST", "/v1/grant", `{"who":"header:X-Product=p1","limit":"product","units":4,"why":"launch"}`, 200, &g)
	if g.Full != 10 || g.Remaining != 4 {
		t.Errorf("granted: %+v", g)
	}
	h.ask("POST", "/v1/grant", `{"who":"header:X-Product=p1","limit":"product","units":1000,"why":"more"}`, 200, &g)
	if g.Remaining != 10 {
		t.Errorf("granted more than was used: %+v", g)
	}
	h.spend(10, product, "GET /")
	var c Client
	h.ask("GET", "/v1/identities/header:X-Product=p1", "", 200, &c)
	if l := h.limit(c.Identity, "product"); l.Used == 0 || l.Used != h.limit("header:X-Product=p1", "product").Used {
		t.Errorf("called as it is stored: %+v", l)
	}
	h.ask("POST", "/v1/reset", `{"who":"header:X-Product=p1","limits":["product"],"why":"incident 42"}`, 200, nil)
	if l := h.limit("header:X-Product=p1", "product"); l.Used != 0 || !l.Passes {
		t.Errorf("after the reset: %+v", l)
	}
	for body, want := range map[string]string{
		`{"who":"header:X-Product=p1","limit":"product","units":1}`:                          "Say why",
		`{"who":"header:X-Product=p1","limit":"product","units":1,"why":" "}`:                "Say why",
		`{"who":"header:X-Product=p1","limit":"product","units":1,"why":"two\nlines"}`:       "one line",
		`{"who":"header:X-Product=p1","limit":"product","units":0,"why":"x"}`:                "units",
		`{"who":"header:X-Product=p1","limit":"none","units":1,"why":"x"}`:                   "no limit",
		`{"who":"address:192.0.2.1","limit":"login","units":1,"why":"x"}`:                    "reset",
		`{"who":"header:X-Other=p1","limit":"product","units":1,"why":"x"}`:                  "Nobody",
		`{"who":"api_key:acme","plan":"gold","limit":"requests","units":1,"why":"x"}`:        "no such plan",
		`{"who":"header:X-Product=p1","limit":"product","units":9007199254740992,"why":"x"}`: "units",
	} {
		if text := h.ask("POST", "/v1/grant", body, 422, nil); !strings.Contains(text, want) {
			t.Errorf("%s: want %q in %s", body, want, text)
		}
	}
	h.ask("POST", "/v1/reset", `{"who":"api_key:acme","limits":["product"],"why":"x"}`, 422, nil)
	lines := strings.Split(strings.TrimSpace(h.audit()), "\n")
	if len(lines) < 3 || !strings.Contains(lines[0], `"msg":"grant","by":"ann","from":"127.0.0.1","why":"launch","who":"header:X-Product=p1","limit":"product","units":4,"result":"done"`) {
		t.Errorf("the audit log:\n%s", h.audit())
	}
	if text := h.audit(); !strings.Contains(text, `"msg":"reset","by":"ann","from":"127.0.0.1","why":"incident 42"`) || !strings.Contains(text, `"result":"failed: `) || strings.Contains(text, secretToken) {
		t.Errorf("the audit log:\n%s", text)
	}
}

func TestAuditGoesToTheLogWhereThereIsNoFile(t *testing.T) {
	h := newHouse(t)
	h.said.Audit = ""
	h.open()
	h.ask("POST", "/v1/reset", `{"who":"api_key:acme","why":"a \"quoted\" reason"}`, 200, nil)
	if log := h.log.String(); !strings.Contains(log, `msg=reset by=ann from=127.0.0.1 why="a \"quoted\" reason" who=api_key:acme limits=all result=done`) {
		t.Errorf("the log:\n%s", log)
	}
}

func TestOverridesBeginAndEnd(t *testing.T) {
	h := newHouse(t).open()
	var o, ended Override
	h.ask("POST", "/v1/overrides", `{"who":"api_key:acme","limits":{"requests":"5000/min burst 500","month":"9000/month"},"through":"2096-02-29","why":"launch: \"week\""}`, 200, &o)
	if l := h.limit("api_key:acme", "requests"); l.Numbers != "5000/min burst 500" || l.From != "override (run time)" {
		t.Errorf("overridden: %+v", l)
	}
	if log := h.audit(); !strings.Contains(log, `"limits":"month: 9000/month, requests: 5000/min burst 500"`) {
		t.Errorf("the audit log:\n%s", log)
	}
	// What is printed is what the policy file takes.
	h.load(policyText + strings.ReplaceAll("\n"+o.YAML, "\n", "\n  "))
	if l := h.cfg.Policy.Overrides; len(l) != 2 || l[1].Reason != `launch: "week"` || l[1].Limits["month"].Limit != 9000 || l[1].Until.Year() != 2096 {
		t.Errorf("committed:\n%s\n%+v", o.YAML, l)
	}
	h.load(policyText)
	h.server.Reloaded()
	if l := h.limit("api_key:acme", "month"); l.Full != 9000 {
		t.Errorf("after a reload: %+v", l)
	}
	var all Overrides
	h.ask("GET", "/v1/overrides", "", 200, &all)
	if len(all.Policy) != 1 || all.Policy[0].Through != "2096-01-31" || all.Policy[0].Line == 0 || len(all.RunTime) != 1 || all.RunTime[0].By != "ann" {
		t.Errorf("all: %+v", all)
	}
	if diff := cmp.Diff(o, all.RunTime[0]); diff != "" {
		t.Error(diff)
	}
	h.ask("DELETE", "/v1/overrides/"+o.ID, "", 422, nil)
	h.ask("DELETE", "/v1/overrides/none?why=x", "", 404, nil)
	h.ask("DELETE", "/v1/overrides/"+o.ID+"?why=over", "", 200, &ended)
	if l := h.limit("api_key:acme", "requests"); l.From != "plan pro" {
		t.Errorf("ended: %+v", l)
	}
	for body, want := range map[string]string{
		`{"who":"api_key:acme","limits":{"requests":"5/min"}}`:                                  "Say why",
		`{"who":"api_key:acme","limits":{},"why":"x"}`:                                          "no limits",
		`{"who":"api_key:acme","limits":{"none":"5/min"},"why":"x"}`:                            "no limit of the policy",
		`{"who":"api_key:acme","limits":{"off":"5/min"},"why":"x"}`:                             "is off",
		`{"who":"api_key:acme","limits":{"product":"5/min"},"why":"x"}`:                         "never counts that client",
		`{"who":"api_key:acme","limits":{"requests":"5/day"},"why":"x"}`:                        "requests",
		`{"who":"api_key:acme","limits":{"month":"5/min"},"why":"x"}`:                           "month",
		`{"who":"api_key:acme","limits":{"requests":"5/min"},"through":"2020-01-01","why":"x"}`: "day is over",
		`{"who":"api_key:acme","limits":{"requests":"5/min"},"through":"tomorrow","why":"x"}`:   "2027-01-31",
		`{"who":"everyone","limits":{"all":"5/min"},"why":"x"}`:                                 "everyone",
		`{"who":"api_key:acme","limits":{"requests":"1000000000001/s"},"why":"x"}`:              "too large",
	} {
		if text := h.ask("POST", "/v1/overrides", body, 422, nil); !strings.Contains(text, want) {
			t.Errorf("%s: want %q in %s", body, want, text)
		}
	}
	h.ask("GET", "/v1/overrides", "", 200, &all)
	if len(all.RunTime) != 0 {
		t.Errorf("what was refused is there: %+v", all.RunTime)
	}
}

// Overrides are kept over a restart, in a file of the gateway's own; what the
// policy no longer allows waits until it does.
func TestOverridesAreKept(t *testing.T) {
	h := newHouse(t).open()
	h.ask("POST", "/v1/overrides", `{"who":"address:192.0.2.0/24","limits":{"requests":"unlimited"},"why":"the office"}`, 200, nil)
	h.ask("POST", "/v1/overrides", `{"who":"header:X-Product=p1","limits":{"product":"70/min"},"why":"campaign"}`, 200, nil)
	info, err := os.Stat(h.said.Overrides)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	again := newHouse(t)
	again.said.Overrides = h.said.Overrides
	again.load(strings.ReplaceAll(policyText, "name: product", "name: goods"))
	again.open()
	var all Overrides
	again.ask("GET", "/v1/overrides", "", 200, &all)
	if len(all.RunTime) != 2 || all.RunTime[0].Problem != "" || !strings.Contains(all.RunTime[1].Problem, "no limit of the policy") {
		t.Errorf("kept: %+v", all.RunTime)
	}
	if log := again.log.String(); strings.Count(log, "a run-time override is not in force") != 1 {
		t.Errorf("the log:\n%s", log)
	}
	if l := again.limit("address:192.0.2.77", "requests"); !l.Unlimited {
		t.Errorf("the network's: %+v", l)
	}
	again.load(policyText)
	again.server.Reloaded()
	if l := again.limit("header:X-Product=p1", "product"); l.Full != 70 {
		t.Errorf("once the limit is back: %+v", l)
	}
}

func TestAFileThatIsNoneIsAnError(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"version":2}`, `{"version":1,"overrides":[{"who":"api_key:a","password":"hunter2"}]}`} {
		h := newHouse(t)
		h.said.Overrides = h.file("overrides.json", text)
		_, err := New(Options{Said: h.said, InForce: nil})
		if err == nil || !strings.Contains(err.Error(), "holds no run-time overrides") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Where the file cannot be written nothing changes.
func TestAnOverrideThatCannotBeKeptDoesNotBegin(t *testing.T) {
	h := newHouse(t)
	h.said.Overrides = h.dir + "/none/overrides.json"
	h.open()
	h.ask("POST", "/v1/overrides", `{"who":"api_key:acme","limits":{"requests":"5/min"},"why":"x"}`, 503, nil)
	if l := h.limit("api_key:acme", "requests"); l.From != "plan pro" {
		t.Errorf("it began: %+v", l)
	}
	if len(h.engine.Overrides()) != 0 {
		t.Error("it is set")
	}
}

func TestAReason(t *testing.T) {
	for why, ok := range map[string]bool{"because": true, strings.Repeat("ü", 250): true, "": false, "\t": false, "a\x1b[31mb": false, strings.Repeat("a", 501): false} {
		if (checkWhy(why) == nil) != ok {
			t.Errorf("%.20q: %v", why, !ok)
		}
	}
}
