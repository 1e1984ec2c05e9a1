package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/google/go-cmp/cmp"
)

func TestParseBursts(t *testing.T) {
	for text, want := range map[string][]Burst{
		"7@0s,3@2s":                        {{Count: 7, Cost: 1}, {Count: 3, At: 2 * time.Second, Cost: 1}},
		" 10@59.9s , 1_0@60.0s":            {{Count: 10, At: 59900 * time.Millisecond, Cost: 1}, {Count: 10, At: time.Minute, Cost: 1}},
		"1@0":                              {{Count: 1, Cost: 1}},
		"30@1m30s every 100ms cost 2":      {{Count: 30, At: 90 * time.Second, Every: 100 * time.Millisecond, Cost: 2}},
		"2@7d cost 0 every 0.5us":          nil,
		"2@7d cost 0 every 0.000001s":      {{Count: 2, At: 7 * 24 * time.Hour, Every: time.Microsecond}},
		"1@1s cost 9_007_199_254_740_991":  {{Count: 1, At: time.Second, Cost: 1<<53 - 1}},
		"1@1s cost 9007199254740992":       nil,
		"1@1s cost -1":                     nil,
		"":                                 nil,
		"7@0s,":                            nil,
		"7":                                nil,
		"0@1s":                             nil,
		"-1@1s":                            nil,
		"x@1s":                             nil,
		"100001@1s":                        nil,
		"60000@1s,60000@2s":                nil,
		"1@":                               nil,
		"1@2":                              nil,
		"1@-2s":                            nil,
		"1@1.0000001s":                     nil,
		"1@2s every":                       nil,
		"1@2s costs 3":                     nil,
		"2@0s every 36501d":                nil,
		"100000@0s every 1000000000000000": nil,
		"1@99999999999999999999.9s":        nil,
	} {
		got, err := ParseBursts(text, 1)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
	if _, err := ParseBursts("1@0s", -1); err == nil {
		t.Error("a cost of −1 is no error")
	}
}

func TestArrivalsAreAskedInOrderOfTime(t *testing.T) {
	bursts, err := ParseBursts("2@3s cost 5,3@0s every 3s", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []arrival{{0, 1, 1}, {3 * time.Second, 5, 0}, {3 * time.Second, 5, 0}, {3 * time.Second, 1, 1}, {6 * time.Second, 1, 1}}
	if diff := cmp.Diff(want, arrivals(bursts), cmp.AllowUnexported(arrival{})); diff != "" {
		t.Error(diff)
	}
}

func TestParseStart(t *testing.T) {
	for text, want := range map[string]comporta.Instant{
		"0": 0, "30s": 30e6, "1.5s": 1.5e6, "1970-01-01T01:00:01+01:00": 1e6, "1969-12-31T23:59:59.5Z": -0.5e6,
	} {
		if got, err := ParseStart(text); err != nil || got != want {
			t.Errorf("%q is %d, %v: want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-10-25", "-3s"} {
		if _, err := ParseStart(text); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}

func TestTimesAreToldShortly(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "333µs": 333 * time.Microsecond, "59.9s": 59900 * time.Millisecond, "60s": time.Minute, "90s": 90 * time.Second,
		"2m": 2 * time.Minute, "2m0.5s": 2*time.Minute + time.Second/2, "20m": 20 * time.Minute, "10h": 10 * time.Hour,
		"58m": 58 * time.Minute, "24h30m": 24*time.Hour + 30*time.Minute, "never": comporta.Never,
	} {
		if got := timeText(d); got != want {
			t.Errorf("%d is %q: want %q", d, got, want)
		}
	}
}

// A note says what was left out; without leniency it is the limit's error.
func TestNumbersThatAnAlgorithmHasNoUseFor(t *testing.T) {
	report := play(t, scene(t, "1/s burst 5", "2s", "1@0s", "token_bucket", "leaky_bucket", "sliding_log"))
	var got []string
	for _, run := range report.Runs {
		got = append(got, run.Limit.String()+": "+strings.Join(run.Notes, "; "))
	}
	want := []string{
		"1/s burst 5: ",
		"1/s burst 5: the max wait is left out: it is for the token_bucket",
		"1/s: the burst is left out: it is for the two buckets; the max wait is left out: it is for the token_bucket",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := scene(t, "1/s burst 5", "", "1@0s", "sliding_log").Play(); err == nil {
		t.Error("a sliding log with a burst is no error")
	}
}
