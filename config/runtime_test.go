package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/comporta/comporta/policy"
	"github.com/google/go-cmp/cmp"
)

// What is printed of a run-time override is read from a policy file as the same,
// whatever stands in its texts.
func TestARunTimeOverrideIsCommittedAsItIs(t *testing.T) {
	const text = `
server: {upstream: "http://127.0.0.1:9"}
time_zone: Europe/Paris
limits:
  - {name: requests, per: address, limit: 60/min}
  - {name: product, per: {header: X-Product}, quota: 10/day}
overrides:
`
	base := loadText(t, strings.TrimSuffix(text, "overrides:\n"))
	for _, o := range []OverrideText{
		{Who: "address:203.0.113.9", Limits: map[string]string{"requests": "unlimited"}, Reason: "yes"},
		{Who: "address:2001:db8::/32", Limits: map[string]string{"requests": "5/min burst 9"}, Through: "2096-03-31", Reason: "- a: \"b\" # <c> {d} é\\"},
		{Who: "header:X-Product=p1", Limits: map[string]string{"product": "5000/month"}, Reason: "1.5"},
		{Who: "header:x-product=no=yes", Limits: map[string]string{"product": "unlimited"}, Reason: "null"},
		{Who: "header:X-Product=on", Limits: map[string]string{"product": "1/day"}},
	} {
		want, err := base.Override(o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		cfg := loadText(t, text+"  "+strings.ReplaceAll(o.YAML(), "\n", "\n  "))
		got := cfg.Policy.Overrides
		if len(got) != 1 {
			t.Errorf("%s: %d overrides", o.YAML(), len(got))
			continue
		}
		if diff := cmp.Diff(told(want), told(got[0])); diff != "" {
			t.Errorf("%s:\n%s", o.YAML(), diff)
		}
	}
}

// told is what an override says; identities hang on the secret.
func told(o *policy.Override) string {
	return fmt.Sprint(o.Who.Network, o.Who.Source, o.Limits["requests"], o.Limits["product"], o.Limits["product"].Calendar, o.Until, o.Reason)
}

func loadText(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.LoadSecret(); err != nil {
		t.Fatal(err)
	}
	return cfg
}
