package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/comporta/comporta"
)

// An override holds on all of its last day, by the clocks of the file's zone.
func TestAnOverrideEndsWithItsLastDay(t *testing.T) {
	const file = `
time_zone: %s
limits: [{name: a, per: address, limit: 1/s}]
overrides: [{who: {address: 192.0.2.0/24}, limits: {a: 5/s}, through: %s, reason: test}]
`
	for _, c := range []struct{ zone, through, until string }{
		{"UTC", "2027-01-31", "2027-02-01T00:00:00Z"},
		{"UTC", "2028-02-28", "2028-02-29T00:00:00Z"},
		{"UTC", "2026-12-31", "2027-01-01T00:00:00Z"},
		{"America/Sao_Paulo", "2027-01-31", "2027-02-01T03:00:00Z"},
		{"Europe/Paris", "2027-03-28", "2027-03-28T22:00:00Z"},        // a day of 23 hours
		{"Europe/Paris", "2027-10-31", "2027-10-31T23:00:00Z"},        // and one of 25
		{"America/Sao_Paulo", "2018-11-03", "2018-11-04T03:00:00Z"},   // the next day begins at 01:00
		{"Pacific/Apia", "2011-12-29", "2011-12-30T10:00:00Z"},        // the next day never was
		{"Pacific/Kiritimati", "2027-01-31", "2027-01-31T10:00:00Z"},  // 14 hours ahead
		{"America/New_York", "2026-11-01", "2026-11-02T05:00:00Z"},    // clocks back on that day
		{"Asia/Beirut", "2027-03-27", "2027-03-27T22:00:00Z"},         // midnight is skipped
		{"Asia/Amman", "2021-10-28", "2021-10-28T21:00:00Z"},          // the next day's midnight comes twice
		{"America/Havana", "2026-10-31", "2026-11-01T04:00:00Z"},      // and so it does here
		{"Africa/Cairo", "2026-10-29", "2026-10-29T22:00:00Z"},        // the day's last hour comes twice
		{"Australia/Lord_Howe", "2027-04-04", "2027-04-04T13:30:00Z"}, // clocks back by half an hour
		{"Europe/Paris", "2040-12-31", "2040-12-31T23:00:00Z"},        // after the last change that the zone's file lists
	} {
		until, err := time.Parse(time.RFC3339, c.until)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []struct {
			now  time.Time
			want string
		}{
			{until.Add(-1), "W-OVERRIDE-ENDS"},
			{until, "W-OVERRIDE-ENDED"},
			{until.Add(-7 * 24 * time.Hour), "W-OVERRIDE-ENDS"},
			{until.Add(-7*24*time.Hour - 1), ""},
		} {
			o := Options{Now: func() time.Time { return at.now }}
			config, err := o.Parse("x.yaml", fmt.Appendf(nil, file, c.zone, c.through))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, w := range config.Warnings {
				got += w.Code
			}
			holds := len(config.Policy.Overrides) == 1 && config.Policy.Overrides[0].Until.Equal(until)
			if ended := at.want == "W-OVERRIDE-ENDED"; got != at.want || holds == ended {
				t.Errorf("through %s in %s, at %v: warned %q, want %q; overrides %+v", c.through, c.zone, at.now, got, at.want, config.Policy.Overrides)
			}
		}
	}
}

// Whose address is meant is never guessed, and one client has one override.
func TestAnOverridesAddressIsOneClientOrANetwork(t *testing.T) {
	const file = "limits: [{name: a, per: address, limit: 1/s}]\noverrides:\n"
	for _, c := range []struct{ first, second, want string }{
		{"203.0.113.9/24", "", "bits set past its prefix"},
		{"2001:db8::1/48", "", "bits set past its prefix"},
		{"2001:db8::/96", "", "only a part of one client, whose first 64 bits count"},
		{"10.0.0.1", "10.0.0.1/32", "two overrides"},
		{"10.0.0.1", "::ffff:10.0.0.1", "two overrides"},
		{"2001:db8::/64", "2001:db8::2", "two overrides"},
		{"2001:db8::1/128", "2001:db8::2", "two overrides"},
		{"10.0.0.1", "10.0.0.0/31", ""},
		{"2001:db8::/63", "2001:db8::", ""},
	} {
		text := file
		for _, who := range []string{c.first, c.second} {
			if who != "" {
				text += fmt.Sprintf("  - {who: {address: %q}, limits: {a: 5/s}, reason: test}\n", who)
			}
		}
		_, err := tuesday.Parse("x.yaml", []byte(text))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s and %s: %v, want %q", c.first, c.second, err, c.want)
		}
	}
}

// What is said to loosen lets through no less in any stretch of time, what is said
// to tighten no more, and what is said to change nothing the same.
func TestComparisonsHoldInAnyStretchOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		algorithm := rapid.SampledFrom([]comporta.Algorithm{comporta.TokenBucket, comporta.LeakyBucket, comporta.FixedWindow, comporta.SlidingCounter, comporta.SlidingLog}).Draw(t, "algorithm")
		draw := func(name string) *comporta.Rule {
			l := comporta.Limit{
				Algorithm: algorithm, Limit: rapid.Int64Range(0, 30).Draw(t, name+" limit"),
				Window: time.Duration(rapid.Int64Range(1, 20).Draw(t, name+" window")) * time.Second,
			}
			if algorithm.Bucket() && l.Limit > 0 {
				l.Burst = rapid.Int64Range(0, 30).Draw(t, name+" burst")
			}
			rule, err := l.Compile()
			if err != nil {
				t.Fatal(err)
			}
			return rule
		}
		was, is := draw("was"), draw("is")
		how, differences := compare(was, is)
		past := time.Duration(rapid.Int64Range(1, 3).Draw(t, "past")) * time.Microsecond
		for in := past; in < 100*time.Second; in += time.Second / 2 {
			a, b := was.Bound(in), is.Bound(in)
			if how == loosens && b < a || how == tightens && b > a || how == same && a != b {
				t.Fatalf("%v to %v %s, and in %v it is %d to %d", was.Limit(), is.Limit(), how, in, a, b)
			}
		}
		for _, d := range differences {
			if was.Bound(d.in) != d.was || is.Bound(d.in) != d.is || d.was == d.is {
				t.Fatalf("%v to %v: %+v shows nothing", was.Limit(), is.Limit(), d)
			}
		}
	})
}

func TestChangesAreSaidWithTheirNumbers(t *testing.T) {
	rule := func(text string) *comporta.Rule {
		parse := comporta.ParseLimit
		if strings.HasSuffix(text, "day") || strings.HasSuffix(text, "month") {
			parse = comporta.ParseQuota
		}
		text, fixed := strings.CutSuffix(text, " fixed")
		l, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if fixed {
			l.Algorithm = comporta.FixedWindow
		}
		r, err := l.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct{ was, is, want string }{
		{"30/min burst 10", "5000/min burst 500", "loosens the limit's 30/min burst 10: 10 → 500 at once, 40 → 5500 in any 60 s"},
		{"30/min", "30/min burst 5", "tightens the limit's 30/min: 30 → 5 at once, 60 → 35 in any 60 s"},
		{"60/min burst 5", "10/min burst 20", "loosens and tightens the limit's 60/min burst 5: 5 → 20 at once, 65 → 30 in any 60 s"},
		{"60/min", "1/s burst 60", "the same as the limit's 60/min"},
		{"60/min", "unlimited", "loosens the limit's 60/min: 60 → no bound at once"},
		{"unlimited", "60/min", "tightens the limit's unlimited: no bound → 60 at once"},
		{"60/min", "0/s", "tightens the limit's 60/min: 60 → 0 at once, 120 → 0 in any 60 s"},
		{"1000/month", "100/day", "loosens and tightens the limit's 1000/month: 3000 → 3200 in any 31 days, 1000 → 100 at once"},
		{"33/16s fixed", "20/10s fixed", "loosens and tightens the limit's 33/16s: 99 → 100 in any 32 s, 33 → 20 at once"},
		{"1000/day", "10/day", "tightens the limit's 1000/day: 1000 → 10 at once, 2000 → 20 in any 24 h"},
	} {
		if _, got := changeWords("the limit", rule(c.was), rule(c.is)); got != c.want {
			t.Errorf("%s to %s: %s\nwant %s", c.was, c.is, got, c.want)
		}
	}
}
