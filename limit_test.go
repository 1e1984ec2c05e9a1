package comporta_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/storetest"
	"pgregory.net/rapid"
)

func TestParseLimit(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]comporta.Limit{
		"100/s":               {Limit: 100, Window: time.Second},
		"100/sec":             {Limit: 100, Window: time.Second},
		"100/second":          {Limit: 100, Window: time.Second},
		"100/min":             {Limit: 100, Window: time.Minute},
		"100/minute":          {Limit: 100, Window: time.Minute},
		"100/h":               {Limit: 100, Window: time.Hour},
		"100/hour":            {Limit: 100, Window: time.Hour},
		"1/500ms":             {Limit: 1, Window: 500 * time.Millisecond},
		"1/1500us":            {Limit: 1, Window: 1500 * time.Microsecond},
		"10_000/2m30s":        {Limit: 10_000, Window: 150 * time.Second},
		"1/24h":               {Limit: 1, Window: day},
		"1/7d":                {Limit: 1, Window: 7 * day},
		"1/4w":                {Limit: 1, Window: 28 * day},
		"1/400d":              {Limit: 1, Window: 400 * day},
		"1/1w1d1h1m1s1ms1us":  {Limit: 1, Window: 8*day + time.Hour + time.Minute + time.Second + time.Millisecond + time.Microsecond},
		"0/s":                 {Window: time.Second},
		"007/s":               {Limit: 7, Window: time.Second},
		"1_000_000_000_000/s": {Limit: comporta.MaxUnits, Window: time.Second},
		"100/min burst 20":    {Limit: 100, Window: time.Minute, Burst: 20},
		"  5/s   burst\t1_0 ": {Limit: 5, Window: time.Second, Burst: 10},
		"unlimited":           {Unlimited: true},
	} {
		got, err := comporta.ParseLimit(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseLimitSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `limit: is empty: write it like "100/min" or "100/min burst 20"`},
		{"100", `limit: "100" has no period: write it like "100/min"`},
		{"100/", `limit: the period is missing: write it like 100/min`},
		{"/min", `limit: "" is not a whole number: write digits, with "_" between them if you like`},
		{"-5/s", `limit: "-5" is not a whole number: write digits, with "_" between them if you like`},
		{"+5/s", `limit: "+5" is not a whole number: write digits, with "_" between them if you like`},
		{"1.5/s", `limit: "1.5" is not a whole number: write digits, with "_" between them if you like`},
		{"1e3/s", `limit: "1e3" is not a whole number: write digits, with "_" between them if you like`},
		{"_1/s", `limit: "_1" is not a whole number: write digits, with "_" between them if you like`},
		{"1_/s", `limit: "1_" is not a whole number: write digits, with "_" between them if you like`},
		{"1__0/s", `limit: "1__0" is not a whole number: write digits, with "_" between them if you like`},
		{"١/s", `limit: "١" is not a whole number: write digits, with "_" between them if you like`},
		{"1000000000001/s", `limit: 1000000000001 is too large: at most 1_000_000_000_000 (10^12)`},
		{"99999999999999999999/s", `limit: 99999999999999999999 is too large: at most 1_000_000_000_000 (10^12)`},
		{"5/secnod", `limit: period "secnod" is not a duration: write whole numbers with units, like 500ms, 10s, 2m30s, 24h, 7d; or use s, min or h`},
		{"5/120min", "limit: period \"120min\" has an unknown unit \"min\": use w, d, h, m, s or ms; or use s, min or h"},
		{"5/10", `limit: period "10" is not a duration: write whole numbers with units, like 500ms, 10s, 2m30s, 24h, 7d; or use s, min or h`},
		{"5/-1s", `limit: period "-1s" is not a duration: write whole numbers with units, like 500ms, 10s, 2m30s, 24h, 7d; or use s, min or h`},
		{"5/1.5h", `limit: period "1.5h" is not a duration: write whole numbers with units, like 500ms, 10s, 2m30s, 24h, 7d; or use s, min or h`},
		{"5/3fortnights", `limit: period "3fortnights" has an unknown unit "fortnights": use w, d, h, m, s or ms; or use s, min or h`},
		{"5/1s1m", `limit: period "1s1m" is out of order: write the largest unit first, each once; or use s, min or h`},
		{"5/1s1s", `limit: period "1s1s" is out of order: write the largest unit first, each once; or use s, min or h`},
		{"5/99999999999999999999s", `limit: period "99999999999999999999s" is too long: no limit takes more than 400 days; or use s, min or h`},
		{"5/10000000000s", `limit: period "10000000000s" is too long: no limit takes more than 400 days; or use s, min or h`},
		{"5/0s", `limit: a window of 0s is out of range: from 1ms to 400 days`},
		{"5/999us", `limit: a window of 999µs is out of range: from 1ms to 400 days`},
		{"5/401d", `limit: a window of 9624h0m0s is out of range: from 1ms to 400 days`},
		{"100/day", "limit: a day is a calendar period: write 100/24h, or `quota: 100/day`"},
		{"100/d", "limit: a day is a calendar period: write 100/24h, or `quota: 100/day`"},
		{"100/m", "limit: m alone could be a minute or a month: write 100/min, or `quota: 100/month`"},
		{"100/week", "limit: a week is a calendar period: write `quota: 100/week`, or a duration such as 100/7d"},
		{"100/month", "limit: a month is a calendar period: write `quota: 100/month`, or a duration such as 100/30d"},
		{"100/year", "limit: a year is a calendar period: write `quota: 100/year`, or a duration such as 100/365d"},
		{"5/s burst 0", `burst: a burst of 0 would deny all: write at least 1, or leave it out for the limit itself`},
		{"5/s burst -1", `burst: "-1" is not a whole number: write digits, with "_" between them if you like`},
		{"5/s burst 1000000000001", `burst: 1000000000001 is too large: at most 1_000_000_000_000 (10^12)`},
		{"0/s burst 5", `burst: a limit of 0 denies all and takes no burst`},
		{"5/s burst", `limit: "5/s burst" is not understood: write it like "100/min" or "100/min burst 20"`},
		{"5/s bursts 5", `limit: "5/s bursts 5" is not understood: write it like "100/min" or "100/min burst 20"`},
		{"5 / s", `limit: "5 / s" is not understood: write it like "100/min" or "100/min burst 20"`},
		{"Unlimited", `limit: "Unlimited" has no period: write it like "100/min"`},
	} {
		l, err := comporta.ParseLimit(tt.text)
		var wrong *comporta.LimitError
		if !errors.As(err, &wrong) || err.Error() != tt.want {
			t.Errorf("%q:\n got %+v, %v\nwant %s", tt.text, l, err, tt.want)
		}
	}
}

func TestParseQuota(t *testing.T) {
	for p := comporta.Day; p <= comporta.Year; p++ {
		got, err := comporta.ParseQuota(" 1_000/" + p.String())
		if err != nil || got.Limit != 1000 || got.Algorithm != comporta.FixedWindow || *got.Calendar != (comporta.Calendar{Period: p}) {
			t.Errorf("1_000/%s: got %+v, %v", p, got, err)
		}
		if want := "1000/" + p.String(); got.String() != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
	if got, err := comporta.ParseQuota("unlimited"); err != nil || !got.Unlimited {
		t.Errorf("unlimited: got %+v, %v", got, err)
	}
	for _, tt := range []struct{ text, want string }{
		{"", `quota: "" has no period: write it like "1000/month"`},
		{"1000", `quota: "1000" has no period: write it like "1000/month"`},
		{"x/day", `quota: "x" is not a whole number: write digits, with "_" between them if you like`},
		{"1/fortnight", `quota: unknown period "fortnight": use day, week, month or year`},
		{"1/days", `quota: unknown period "days": use day, week, month or year`},
		{"1/day burst 2", `quota: "1/day burst 2": a quota takes no burst`},
		{"1/24h", "quota: \"24h\" is no calendar period: use day, week, month or year, or write `limit: 1/24h`"},
		{"1/min", "quota: \"min\" is no calendar period: use day, week, month or year, or write `limit: 1/min`"},
		{"1000000000001/day", `quota: 1000000000001 is too large: at most 1_000_000_000_000 (10^12)`},
	} {
		if l, err := comporta.ParseQuota(tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("%q:\n got %+v, %v\nwant %s", tt.text, l, err, tt.want)
		}
	}
}

func TestLimitsPrintCanonically(t *testing.T) {
	for text, want := range map[string]string{
		"60/60s":              "60/min",
		"60/60000ms":          "60/min",
		"1/86400s":            "1/24h",
		"1/3600s":             "1/h",
		"1/second":            "1/s",
		"1/1000000us":         "1/s",
		"1/90s":               "1/1m30s",
		"1/1500ms":            "1/1s500ms",
		"1/2d":                "1/48h",
		"1/1w":                "1/168h",
		"1/120m":              "1/2h",
		"10_000/min burst 9":  "10000/min burst 9",
		"10/min burst 10":     "10/min",
		"00010/min burst 020": "10/min burst 20",
		"0/s":                 "0/s",
		"unlimited":           "unlimited",
	} {
		l, err := comporta.ParseLimit(text)
		if err != nil || l.String() != want {
			t.Errorf("%q prints as %q (%v), want %q", text, l, err, want)
		}
	}
}

// TestCompileKnowsTheRanges holds the ends of each range and what lies just past them.
func TestCompileKnowsTheRanges(t *testing.T) {
	const day = 24 * time.Hour
	limit := func(f func(*comporta.Limit)) comporta.Limit {
		l := comporta.Limit{Limit: 10, Window: time.Minute}
		f(&l)
		return l
	}
	quota := func(f func(*comporta.Limit)) comporta.Limit {
		l := comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 10, Calendar: &comporta.Calendar{Period: comporta.Day}}
		f(&l)
		return l
	}
	for _, tt := range []struct {
		limit comporta.Limit
		want  string // "" compiles
	}{
		{limit(func(*comporta.Limit) {}), ""},
		{limit(func(l *comporta.Limit) { l.Limit = comporta.MaxUnits }), ""},
		{limit(func(l *comporta.Limit) { l.Limit = comporta.MaxUnits + 1 }), "limit: 1000000000001 units are out of range: from 0 to 1_000_000_000_000 (10^12)"},
		{limit(func(l *comporta.Limit) { l.Limit = -1 }), "limit: -1 units are out of range: from 0 to 1_000_000_000_000 (10^12)"},
		{limit(func(l *comporta.Limit) { l.Limit = 0 }), ""},
		{limit(func(l *comporta.Limit) { l.Window = time.Millisecond }), ""},
		{limit(func(l *comporta.Limit) { l.Window = time.Millisecond - time.Microsecond }), "limit: a window of 999µs is out of range: from 1ms to 400 days"},
		{limit(func(l *comporta.Limit) { l.Window = 400 * day }), ""},
		{limit(func(l *comporta.Limit) { l.Window = 400*day + 1 }), "limit: a window of 9600h0m0.000000001s is out of range: from 1ms to 400 days"},
		{limit(func(l *comporta.Limit) { l.Window += time.Nanosecond }), "limit: a window of 1m0.000000001s is not a whole number of microseconds"},
		{limit(func(l *comporta.Limit) { l.Window = 0 }), "limit: a window of 0s is out of range: from 1ms to 400 days"},
		{comporta.Limit{}, "limit: a window of 0s is out of range: from 1ms to 400 days"},
		{limit(func(l *comporta.Limit) { l.Burst = comporta.MaxUnits }), "burst: a bucket of 1000000000000 that fills by 10 per 1m0s takes over 100 years to fill"},
		{limit(func(l *comporta.Limit) { l.Burst = 525_960_000 }), ""}, // 100 years of 525,960 minutes, 10 a minute
		{limit(func(l *comporta.Limit) { l.Burst = 525_960_001 }), "burst: a bucket of 525960001 that fills by 10 per 1m0s takes over 100 years to fill"},
		{limit(func(l *comporta.Limit) { l.Burst = -1 }), "burst: -1 is out of range: from 1 to 1_000_000_000_000 (10^12)"},
		{limit(func(l *comporta.Limit) { l.Burst = comporta.MaxUnits + 1 }), "burst: 1000000000001 is out of range: from 1 to 1_000_000_000_000 (10^12)"},
		{limit(func(l *comporta.Limit) { l.Limit, l.Burst = 0, 5 }), "burst: a limit of 0 denies all and takes no burst"},
		{limit(func(l *comporta.Limit) { l.Burst, l.Algorithm = 5, comporta.SlidingLog }), "burst: is for token_bucket and leaky_bucket only, not for sliding_log"},
		{limit(func(l *comporta.Limit) { l.Burst, l.Algorithm = 5, comporta.LeakyBucket }), ""},
		{limit(func(l *comporta.Limit) { l.MaxWait = time.Microsecond }), ""},
		{limit(func(l *comporta.Limit) { l.MaxWait = 400 * day }), ""},
		{limit(func(l *comporta.Limit) { l.Lease = &comporta.Lease{} }), ""},
		{limit(func(l *comporta.Limit) { l.Lease = &comporta.Lease{Size: 100, TTL: time.Minute, Share: 50} }), ""},
		{limit(func(l *comporta.Limit) { l.Lease = &comporta.Lease{TTL: time.Minute + 1} }), "lease: a ttl of 1m0.000000001s is out of range: from 10ms to 1m0s"},
		{limit(func(l *comporta.Limit) { l.Lease = &comporta.Lease{Share: 51} }), "lease: a share of 51 % is out of range: from 1 to 50"},
		{limit(func(l *comporta.Limit) { l.Lease = &comporta.Lease{Size: -1} }), "lease: a size of -1 is out of range: from 1 to 1_000_000_000_000 (10^12), or 0 for one that fits"},
		{limit(func(l *comporta.Limit) { l.Lease, l.Algorithm = &comporta.Lease{}, comporta.LeakyBucket }), "lease: is not for a leaky_bucket: places in a queue cannot be held ready; use a token_bucket"},
		{limit(func(l *comporta.Limit) { l.Lease, l.MaxWait = &comporta.Lease{}, time.Second }), "lease: does not go with max_wait: a wait is a place in one queue"},
		{limit(func(l *comporta.Limit) { l.Lease, l.Charge = &comporta.Lease{}, comporta.Attempts }), "lease: does not go with charge: attempts, which must reach the store each time"},
		{quota(func(l *comporta.Limit) { l.Lease = &comporta.Lease{} }), "lease: is not for quotas: what a lost instance holds would be lost for the whole period"},
		{limit(func(l *comporta.Limit) { l.MaxWait = 401 * day }), "max_wait: a wait of 9624h0m0s is out of range: from 1µs to 400 days"},
		{limit(func(l *comporta.Limit) { l.MaxWait = -1 }), "max_wait: a wait of -1ns is out of range: from 1µs to 400 days"},
		{limit(func(l *comporta.Limit) { l.MaxWait = 1500 * time.Nanosecond }), "max_wait: a wait of 1.5µs is not a whole number of microseconds"},
		{limit(func(l *comporta.Limit) { l.MaxWait, l.Algorithm = 1000, comporta.LeakyBucket }), "max_wait: is for a token_bucket only, not for a leaky_bucket"},
		{limit(func(l *comporta.Limit) { l.MaxWait, l.Charge = 1000, comporta.Attempts }), "max_wait: does not go with charge: attempts"},
		{limit(func(l *comporta.Limit) { l.Charge, l.Algorithm = comporta.Failures, comporta.SlidingLog }), ""},
		{limit(func(l *comporta.Limit) { l.Charge, l.Algorithm = comporta.Failures, comporta.LeakyBucket }), "charge: failures cannot be given back to a leaky_bucket, whose places others already stand behind: use a token_bucket"},
		{limit(func(l *comporta.Limit) { l.Charge = 3 }), "charge: unknown: Charge(3)"},
		{limit(func(l *comporta.Limit) { l.Algorithm = 5 }), "algorithm: unknown: Algorithm(5)"},
		{limit(func(l *comporta.Limit) { l.Stagger, l.Algorithm = true, comporta.SlidingCounter }), ""},
		{limit(func(l *comporta.Limit) { l.Stagger = true }), "stagger: is for fixed_window and sliding_counter only, not token_bucket: the others have no common start to spread"},
		{comporta.Limit{Unlimited: true}, ""},
		{comporta.Limit{Unlimited: true, Limit: 1}, "limit: unlimited takes no numbers"},
		{comporta.Limit{Unlimited: true, MaxWait: 1}, "max_wait: an unlimited limit has nothing to wait for"},
		{comporta.Limit{Unlimited: true, Stagger: true}, "stagger: an unlimited limit has no windows"},
		{quota(func(*comporta.Limit) {}), ""},
		{quota(func(l *comporta.Limit) { l.Limit = -1 }), "quota: -1 units are out of range: from 0 to 1_000_000_000_000 (10^12)"},
		{quota(func(l *comporta.Limit) { l.Algorithm = comporta.TokenBucket }), "algorithm: a quota is a fixed_window, not a token_bucket"},
		{quota(func(l *comporta.Limit) { l.Window = time.Hour }), "quota: a quota's window is its calendar period, not a duration"},
		{quota(func(l *comporta.Limit) { l.Burst = 1 }), "burst: a quota takes no burst: burst is for the two buckets"},
		{quota(func(l *comporta.Limit) { l.MaxWait = 1 }), "max_wait: is for a token_bucket only, not for a quota"},
		{quota(func(l *comporta.Limit) { l.Stagger = true }), "stagger: is not for quotas: their windows start where the calendar says"},
		{quota(func(l *comporta.Limit) { l.Calendar = &comporta.Calendar{} }), "quota: unknown period Period(0): use day, week, month or year"},
		{quota(func(l *comporta.Limit) { l.Calendar.Hour = 24 }), "starts_at: 24:00 is no time of day"},
		{quota(func(l *comporta.Limit) { l.Calendar.Minute = 60 }), "starts_at: 00:60 is no time of day"},
		{quota(func(l *comporta.Limit) { l.Calendar.Weekday = 1 }), "starts_at: a weekday is for a quota per week"},
		{quota(func(l *comporta.Limit) { l.Calendar.MonthDay = 1 }), "starts_at: a day of the month, 1 to 31, is for a quota per month or year"},
		{quota(func(l *comporta.Limit) { l.Calendar.YearMonth = 1 }), "starts_at: a month is for a quota per year"},
	} {
		_, err := tt.limit.Compile()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v:\n got %s\nwant %s", tt.limit, got, tt.want)
		}
	}
}

func TestWordsReadAsTheyPrint(t *testing.T) {
	for _, a := range comporta.Algorithms() {
		if got, err := comporta.ParseAlgorithm(a.String()); err != nil || got != a {
			t.Errorf("%v: got %v, %v", a, got, err)
		}
	}
	for c := comporta.Admitted; c <= comporta.Failures; c++ {
		if got, err := comporta.ParseCharge(c.String()); err != nil || got != c {
			t.Errorf("%v: got %v, %v", c, got, err)
		}
	}
	if _, err := comporta.ParseAlgorithm("gcra"); err == nil || err.Error() != `unknown algorithm "gcra": use token_bucket, leaky_bucket, fixed_window, sliding_counter or sliding_log` {
		t.Errorf("gcra: %v", err)
	}
	if _, err := comporta.ParseCharge("all"); err == nil || err.Error() != `unknown charge "all": use admitted, attempts or failures` {
		t.Errorf("all: %v", err)
	}
}

// printsAndReadsBack holds a written limit to its round trip: what prints reads
// back as the same limit, and prints the same again.
func printsAndReadsBack(t interface{ Fatalf(string, ...any) }, l comporta.Limit) {
	parse := comporta.ParseLimit
	if l.Calendar != nil {
		parse = comporta.ParseQuota
	}
	text := l.String()
	back, err := parse(text)
	if err != nil {
		t.Fatalf("%+v prints as %q: %v", l, text, err)
	}
	if l.Burst == l.Limit {
		l.Burst = 0
	}
	if back.Limit != l.Limit || back.Window != l.Window || back.Burst != l.Burst || back.Unlimited != l.Unlimited ||
		(back.Calendar == nil) != (l.Calendar == nil) || l.Calendar != nil && back.Calendar.Period != l.Calendar.Period {
		t.Fatalf("%+v prints as %q, which is %+v", l, text, back)
	}
	if again := back.String(); again != text {
		t.Fatalf("%q prints as %q", text, again)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { printsAndReadsBack(t, storetest.Limits().Draw(t, "limit")) })
}

func FuzzParseLimit(f *testing.F) {
	for _, text := range []string{"100/min burst 20", "1/2m30s", "10_000/4w", "unlimited", "5/secnod", "1000/month", "1/1w1d1h1m1s1ms1us"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (comporta.Limit, error){comporta.ParseLimit, comporta.ParseQuota} {
			l, err := parse(text)
			var wrong *comporta.LimitError
			switch {
			case err == nil:
				printsAndReadsBack(t, l)
			case !errors.As(err, &wrong) || wrong.Field == "" || wrong.Problem == "":
				t.Fatalf("%q: %#v", text, err)
			}
		}
	})
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": 0, "1us": 1000, "106751d": 106751 * 24 * time.Hour} {
		if got, err := comporta.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "s", "1s ", "106752d", "15251w", "9223372036854775807us", "1S"} {
		if got, err := comporta.ParseDuration(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
	for _, d := range []time.Duration{-time.Second, 0, 999} {
		if got := comporta.FormatDuration(d); got != "0s" {
			t.Errorf("%v prints as %q", d, got)
		}
	}
	if got := comporta.FormatDuration(math.MaxInt64); got != "2562047h47m16s854ms775us" {
		t.Errorf("the longest prints as %q", got)
	}
}
