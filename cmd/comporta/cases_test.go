package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// C01: each of these stops check and serve, with file, line and the limit's name;
// only a limit of 0 is one, and is said to refuse all.
func TestImpossibleNumbersStopTheStart(t *testing.T) {
	for _, said := range []string{
		"limit: 0", "limit: 5/0s", "limit: -5/min", "limit: 5", "limit: 5/secnod", "limit: 5/s burst 0",
		"limit: 1.5/s", "limit: 1e3/s", "limit: 10 /min", "limit: 100/day", "quota: 10/min", "limit: unlimited burst 5",
		"limit: 3/10000000000s, algorithm: sliding_log", // 317 years
		"algorithm: fixed_window",                       // without numbers
	} {
		policy := file(t, "policy.yaml", "server: {upstream: \"http://127.0.0.1:9\"}\nlimits:\n  - {name: logins, per: address, "+said+"}\n")
		for _, args := range [][]string{{"check", policy}, {"serve", "-c", policy}} {
			code, out, errs := command(t, args...)
			if code != 1 || out != "" || !strings.HasPrefix(errs, policy+":3:") || !strings.Contains(errs, `limit "logins"`) {
				t.Errorf("%s %s: code %d\n%s%s", args[0], said, code, out, errs)
			}
		}
	}
	code, out, errs := command(t, "check", file(t, "policy.yaml", "limits: [{name: logins, per: address, limit: 0/min}]\n"))
	if code != 0 || !strings.Contains(out, "refuses every request") || !strings.Contains(errs, "W-ZERO") {
		t.Errorf("0/min: code %d\n%s%s", code, out, errs)
	}
}

// C03: one bad range stops the start, and no list is shortened in silence.
func TestBadRangesStopTheStart(t *testing.T) {
	for entry, want := range map[string]string{
		"10.0.0.0/33": "", "10.0.0.0/8x": "", "proxy.example.com": "", `""`: "", "10.0.0.1/8": "", "10.0.0/8": "",
		`"::ffff:10.0.0.0/104"`: "10.0.0.0/8", "10.0.0.5": "10.0.0.5/32", "0.0.0.0/0": "W-TRUST-ALL", `"::/0"`: "W-TRUST-ALL",
	} {
		policy := file(t, "policy.yaml", "identities: {address: {trusted_proxies: [192.0.2.1, "+entry+"]}}\nlimits: [{name: a, per: address, limit: 5/min}]\n")
		code, out, errs := command(t, "check", policy)
		if bad := want == ""; bad && (code != 1 || out != "" || !strings.HasPrefix(errs, policy+":1:")) || !bad && (code != 0 || !strings.Contains(out+errs, want)) {
			t.Errorf("%s: code %d, want %q\n%s%s", entry, code, want, out, errs)
		}
	}
}

// T07: 30 days are more milliseconds than 31 bits hold; three calls of a month
// are used up through a restart.
func TestAMonthIsNotForgottenOverARestart(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	policy := file(t, "policy.yaml", `server: {upstream: "`+up.URL+`", listen: "127.0.0.1:0", metrics: off}
store: {memory: {save: counts}}
limits: [{name: month, per: address, limit: 3/30d, algorithm: sliding_log}]
`)
	program := build(t)
	for _, passing := range []int{3, 0} {
		p := launch(t, program, "serve", "-c", policy, "--drain-delay", "0s")
		var serving struct{ Listen string }
		if err := json.Unmarshal([]byte(awaitLine(t, p.errs, `"msg":"serving"`)), &serving); err != nil {
			t.Fatal(err)
		}
		for i := range passing + 1 {
			res, err := http.Get("http://" + serving.Listen + "/")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if i < passing {
				if res.StatusCode != http.StatusOK {
					t.Errorf("call %d: %s", i+1, res.Status)
				}
				continue
			}
			retry, err := strconv.Atoi(res.Header.Get("Retry-After"))
			if err != nil || res.StatusCode != http.StatusTooManyRequests || retry > 2_592_000 || retry < 2_592_000-60 {
				t.Errorf("after three: %s, retry after %d s (%v)", res.Status, retry, err)
			}
		}
		p.end(t)
	}
}
