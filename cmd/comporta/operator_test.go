package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const operatorsPolicy = `
server:
  upstream: %q
  admin: {listen: "unix:a.sock", token_file: admin.token, audit: audit.log}
limits:
  - {name: product, per: {header: X-Product}, limit: 3/h, algorithm: fixed_window}
  - {name: requests, per: address, limit: 100/min burst 20}
`

// operated is a gateway with an administration, whose policy file the commands name.
func operated(t *testing.T) (s *served, policy string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "op") // short: the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write(t, filepath.Join(dir, "admin.token"), "ann a-token-of-thirty-two-letters-or-so\n")
	policy = filepath.Join(dir, "policy.yaml")
	write(t, policy, fmt.Sprintf(operatorsPolicy, upstream(t)))
	s = serve(t, "-c", policy, "--log", "json")
	s.logged(t, `"msg":"serving"`)
	return s, policy
}

func TestOperatorsLookAndAct(t *testing.T) {
	s, policy := operated(t)
	url := s.url(t)
	for range 4 {
		get(t, url, "X-Product", "p1")
	}
	do := func(want string, args ...string) string {
		t.Helper()
		code, out, errs := commandUnder(t.Context(), append(args, "-c", policy)...)
		if code != exitOK || errs != "" {
			t.Fatalf("%v: %d %s", args, code, errs)
		}
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%v: want %q in\n%s", args, want, out)
		}
		return out
	}
	do(`(?s)^header:X-Product=p1 at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, stored as header:x-product:\S+

LIMIT    NUMBERS  FROM   USED    LEFT  NOW
product  3/h      limit  3 of 3  0     DENIED, retry in \d+m?\S*, full in \S+
$`, "show", "header:X-Product=p1")
	do(`"retry_after": \d`, "show", "header:X-Product=p1", "--json")
	do(`(?s)^1 requests denied by product, since [^\n]+\n\n#  CLIENT +REQUESTS  SHARE\n1  header:x-product:\S+ +1 +100.0 %\n$`, "top", "--by", "denied", "--limit", "product")
	do(`(?s)^Requests that went on, since .*\n1  address:127.0.0.1 +3 +-\n2  header:x-product:\S+ +3 +-\n$`, "top")
	do(`^header:X-Product=p1: 2 of 3 units of product remain, full in \S+\.\n$`, "grant", "header:X-Product=p1", "product", "2", "--why", "a sale")
	do(`^header:X-Product=p1 is new under product\.\n$`, "reset", "header:X-Product=p1", "--limit", "product", "--why", "again")
	added := do(`(?s)commit this into overrides.*- who: \{header: X-Product, value: p1\}\n  limits: \{product: "70/h"\}\n  through: 2096-12-31\n  reason: "a fair"\n$`,
		"override", "add", "header:X-Product=p1", "product=70/h", "--through", "2096-12-31", "--why", "a fair")
	id := regexp.MustCompile(`In force as (\w+),`).FindStringSubmatch(added)[1]
	s.logged(t, `"msg":"an override begins","who":"header:X-Product=p1"`)
	do(`70/h     override \(run time\)  0 of 70`, "show", "header:X-Product=p1")
	do(`ID +CLIENT +LIMITS +THROUGH +REASON\n`+id+` +header:X-Product=p1 +product: 70/h +2096-12-31 +a fair \(ann\)\n$`, "override", "list")

	// The override outlives a reload, and the gateway.
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	write(t, policy, strings.ReplaceAll(string(text), "burst 20", "burst 30"))
	s.logged(t, `"msg":"the policy was reloaded"`)
	do(`70/h +override`, "show", "header:X-Product=p1")
	s.end(t)
	s = serve(t, "-c", policy, "--log", "json")
	s.logged(t, `"msg":"serving"`)
	do(`70/h +override`, "show", "header:X-Product=p1")
	do(`^The override of header:X-Product=p1 has ended`, "override", "end", id, "--why", "over")
	s.logged(t, `"msg":"an override has ended"`)
	do(`3/h +limit`, "show", "header:X-Product=p1")

	audit, err := os.ReadFile(filepath.Join(filepath.Dir(policy), "audit.log"))
	if err != nil || strings.Count(string(audit), `"by":"ann","from":"unix"`) != 4 {
		t.Errorf("%v: %s", err, audit)
	}
	if strings.Contains(s.errs.String()+string(audit), "a-token-of") {
		t.Error("the token was told")
	}
}

func TestWhatOperatorsGetWrong(t *testing.T) {
	_, policy := operated(t)
	dir := filepath.Dir(policy)
	wrong := filepath.Join(dir, "wrong.token")
	write(t, wrong, "another-token-of-thirty-two-letters\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"show", "nobody", "-c", policy}, exitFailed, "Nobody is named by that"},
		{[]string{"show", "address:192.0.2.1"}, exitFailed, "give -c FILE, or --admin URL and --token-file FILE"},
		{[]string{"show", "address:192.0.2.1", "-c", policy, "--token-file", wrong}, exitFailed, "The token is wrong"},
		{[]string{"show", "address:192.0.2.1", "-c", policy, "--admin", "127.0.0.1:1"}, exitFailed, "is the gateway running"},
		{[]string{"show", "address:192.0.2.1", "-c", policy, "--admin", "ftp://127.0.0.1"}, exitFailed, "--admin is no http or https URL"},
		{[]string{"show", "address:192.0.2.1", "-c", file(t, "policy.yaml", goodPolicy)}, exitFailed, "has no administration"},
		{[]string{"reset", "address:192.0.2.1", "-c", policy}, exitUsage, "--why"},
		{[]string{"reset", "address:192.0.2.1", "--limit", "product", "--why", "x", "-c", policy}, exitFailed, "no limit"},
		{[]string{"grant", "address:192.0.2.1", "requests", "many", "--why", "x", "-c", policy}, exitUsage, "expected a valid 64 bit int"},
		{[]string{"override", "add", "address:192.0.2.1", "requests=lots", "--why", "x", "-c", policy}, exitFailed, "requests"},
		{[]string{"override", "end", "none", "--why", "x", "-c", policy}, exitFailed, "no run-time override"},
	} {
		code, out, errs := commandUnder(t.Context(), c.args...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d, want %d and %q:\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
}

func TestTimesAndNumbersInWords(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0s", 0.2: "1s", 59.5: "1m00s", 250: "4m10s", 3600: "1h00m", 90061: "1d 1h", 1e9: "11574d 1h"} {
		if got := inWords(seconds); got != want {
			t.Errorf("%v: %s, want %s", seconds, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := printable("a\x1b[31mü\n\u202e"); got != "a\uFFFD[31mü\uFFFD\uFFFD" {
		t.Errorf("%q", got)
	}
}

func TestWhereAnAdministrationIs(t *testing.T) {
	for at, want := range map[string]string{
		"127.0.0.1:9902": "http://127.0.0.1:9902", "0.0.0.0:9902": "http://localhost:9902", ":9902": "http://localhost:9902", "[::]:1": "http://localhost:1",
		"https://admin.example/": "https://admin.example", "nonsense": "", "file:///etc/passwd": "", "http://": "",
	} {
		got, err := adminURL(at)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", at, got, err)
		}
	}
}
