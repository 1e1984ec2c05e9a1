package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// check reads the files of keys where they are there, warns where they are not,
// and never shows what is in them.
func TestCheckReadsTheKeys(t *testing.T) {
	policy := file(t, "policy.yaml", `identities:
  api_key: {header: X-API-Key, keys: keys.yaml}
  user: {jwt: {secret_file: jwt.secret, issuer: i, audience: a}}
plans: {free: {requests: 10/s}}
limits: [{name: requests, per: [api_key, user, address], limit: 5/s}]
`)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(filepath.Dir(policy), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		keys, secret string
		code         int
		want         []string
	}{
		{"", "", 0, []string{"policy.yaml:2:38: W-FILE-MISSING", "policy.yaml:3:29: W-FILE-MISSING", "the gateway will not start without it"}},
		{"- {id: acme, key: hunter2}\n", "hunter2 hunter2 hunter2 hunter2 hunter2\n", 0, []string{"keys.yaml:1:19: W-KEY-SHORT"}},
		{"- {id: acme, key: hunter2, plan: pro}\n", "hunter2\n", 1, []string{"keys.yaml:1:34: the policy has no plan", "policy.yaml:3:29: "}},
		{"- {id: acme, hunter2: x}\n", "hunter2\n", 1, []string{"keys.yaml:1:14: an unknown word"}},
	} {
		if c.keys != "" {
			write("keys.yaml", c.keys)
			write("jwt.secret", c.secret)
		}
		code, out, errs := command(t, "check", policy)
		if code != c.code || (out == "") != (code != 0) || strings.Contains(out+errs, "hunter2") {
			t.Errorf("%q: code %d\n%s%s", c.keys, code, out, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%q: %q is not in\n%s", c.keys, want, errs)
			}
		}
	}
}
