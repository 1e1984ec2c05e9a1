package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/comporta/comporta"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the transcripts and pictures in testdata")

// cases are limits and arrivals with the answers worked out by hand: for each
// arrival what remains, or "no/" and the time to retry; "+" is a delay, "*" repeats.
// Their transcripts are in testdata, for people to read.
var cases = []struct {
	name, limit, algorithm, maxWait, at, want string
}{
	{name: "articles token bucket", limit: "1/s burst 5", algorithm: "token_bucket", at: "7@0s,3@2s,10@10s",
		want: "4 3 2 1 0 no/1s*2  1 0 no/1s  4 3 2 1 0 no/1s*5"},
	{name: "articles boundary fixed window", limit: "10/min", algorithm: "fixed_window", at: "10@59.9s,10@60.0s",
		want: "9 8 7 6 5 4 3 2 1 0  9 8 7 6 5 4 3 2 1 0"},
	{name: "articles boundary sliding log", limit: "10/min", algorithm: "sliding_log", at: "10@59.9s,10@60.0s",
		want: "9 8 7 6 5 4 3 2 1 0  no/59.9s*10"},

	// The meter leaks while hits keep coming: the level after hit k is 1 + 2k/3.
	{name: "A01 a leaky bucket leaks under steady hits", limit: "10/30s", algorithm: "leaky_bucket", at: "11@0s every 1s",
		want: "9 8+2s 7+4s 7+6s 6+8s 5+10s 5+12s 4+14s 3+16s 3+18s 2+20s"},
	// The fraction of a token is carried from one look to the next.
	{name: "A03 fractions of a token add up", limit: "10/s", algorithm: "token_bucket", at: "1@0s cost 10,30@30ms every 30ms",
		want: "0  no/70ms no/40ms no/10ms 0  no/50ms no/20ms 0  no/60ms no/30ms 0 " +
			"no/70ms no/40ms no/10ms 0  no/50ms no/20ms 0  no/60ms no/30ms 0 " +
			"no/70ms no/40ms no/10ms 0  no/50ms no/20ms 0  no/60ms no/30ms 0"},
	{name: "A05a the whole capacity can be had", limit: "1/s burst 5", algorithm: "token_bucket", at: "1@0s,1@0s cost 5,1@1s cost 5",
		want: "4 no/1s 0"},
	{name: "A05b what can never pass says so", limit: "1/s burst 5", algorithm: "token_bucket", at: "1@0s cost 6,1@0s",
		want: "no/never 4"},
	{name: "A07 idling stores no more than the burst", limit: "1/s", algorithm: "token_bucket", at: "1@0s,5@30s",
		want: "0 0 no/1s*4"},
	{name: "A07 or they queue", limit: "1/s", algorithm: "token_bucket", maxWait: "4s", at: "1@0s,5@30s",
		want: "0 0 0+1s 0+2s 0+3s 0+4s"},
	{name: "A09 a denial takes nothing", limit: "1/10s burst 5", algorithm: "token_bucket", at: "1@0s cost 3,1@0s cost 5,1@0s cost 2,1@0s",
		want: "2 no/30s 0 no/10s"},
	{name: "A13 costs count in a sliding log", limit: "10/60s", algorithm: "sliding_log", at: "1@0s cost 8,1@1s cost 2,1@2s,1@60s cost 8,1@60s",
		want: "2 0 no/58s 0 no/1s"},
	{name: "A15 a long idle time does not overflow", limit: "1000000/s", algorithm: "token_bucket", at: "1@0s cost 1_000_000,1@12h",
		want: "0 999999"},
	{name: "A15 nor does a very long one", limit: "1000000/s", algorithm: "token_bucket", at: "1@0s cost 1000000,1@400d",
		want: "0 999999"},
	{name: "T01 fixed window", limit: "5/h", algorithm: "fixed_window", at: "5@59m,5@61m",
		want: "4 3 2 1 0  4 3 2 1 0"},
	{name: "T01 sliding log", limit: "5/h", algorithm: "sliding_log", at: "5@59m,5@61m",
		want: "4 3 2 1 0  no/58m*5"},
	{name: "T01 sliding counter", limit: "5/h", algorithm: "sliding_counter", at: "5@59m,5@61m",
		want: "4 3 2 1 0  no/11m*5"}, // 5 × 48/60 + 1 is 5, so from 12 minutes into the hour
	{name: "H01 fixed window", limit: "10/60s", algorithm: "fixed_window", at: "10@0s every 2s,1@20s",
		want: "9 8 7 6 5 4 3 2 1 0 no/40s"},
	{name: "H01 sliding log", limit: "10/60s", algorithm: "sliding_log", at: "10@0s every 2s,1@20s",
		want: "9 8 7 6 5 4 3 2 1 0 no/40s"},
	{name: "H01 sliding counter", limit: "10/60s", algorithm: "sliding_counter", at: "10@0s every 2s,1@20s,1@66s",
		want: "9 8 7 6 5 4 3 2 1 0 no/46s 0"},
	{name: "H01 token bucket", limit: "10/60s", algorithm: "token_bucket", at: "10@0s every 2s,1@20s",
		want: "9 8 7 7 6 5 5 4 3 3 2"},
}

// scene reads what a case says.
func scene(t *testing.T, limit, maxWait, at string, algorithms ...string) Scene {
	t.Helper()
	s := Scene{Lenient: len(algorithms) > 1}
	var err error
	if s.Limit, err = comporta.ParseLimit(limit); err != nil {
		t.Fatal(err)
	}
	if maxWait != "" {
		if s.Limit.MaxWait, err = ParseTime(maxWait); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range algorithms {
		a, err := comporta.ParseAlgorithm(name)
		if err != nil {
			t.Fatal(err)
		}
		s.Algorithms = append(s.Algorithms, a)
	}
	if s.Bursts, err = ParseBursts(at, 1); err != nil {
		t.Fatal(err)
	}
	return s
}

func play(t *testing.T, s Scene) *Report {
	t.Helper()
	report, err := s.Play()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			report := play(t, scene(t, c.limit, c.maxWait, c.at, c.algorithm))
			var got []string
			for _, a := range report.Runs[0].Answers {
				got = append(got, short(a))
			}
			if diff := cmp.Diff(repeated(t, c.want), got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			var text bytes.Buffer
			fmt.Fprintf(&text, "%s\nat %s\n\n", c.name, c.at)
			if err := report.WriteText(&text, Screen{Width: 80}); err != nil {
				t.Fatal(err)
			}
			golden(t, "cases/"+strings.ReplaceAll(c.name, " ", "_")+".txt", text.Bytes())
		})
	}
}

// short is an answer as cases write it.
func short(a Answer) string {
	switch {
	case !a.Allowed:
		return "no/" + timeText(a.RetryAfter)
	case a.Delay > 0:
		return fmt.Sprintf("%d+%s", a.Remaining, timeText(a.Delay))
	}
	return fmt.Sprint(a.Remaining)
}

func repeated(t *testing.T, text string) (all []string) {
	t.Helper()
	for word := range strings.FieldsSeq(text) {
		word, times, found := strings.Cut(word, "*")
		n := 1
		if found {
			if _, err := fmt.Sscan(times, &n); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			all = append(all, word)
		}
	}
	return all
}

// 1,001 a second with half a second to wait: 1,001 leave in the first second and
// 1,502 are accepted in all, since due times are computed exactly.
func TestGapsAreNotRounded(t *testing.T) {
	run := play(t, scene(t, "1001/s burst 1", "500ms", "5000@0s every 200us", "token_bucket")).Runs[0]
	inFirst := 0
	for i := range run.Answers {
		if a := &run.Answers[i]; a.Allowed && a.Leaves().Seconds() < 1 {
			inFirst++
		}
	}
	if _, admitted := run.Total(); admitted != 1502 || inFirst != 1001 {
		t.Errorf("%d admitted, %d of them in the first second: want 1502 and 1001", admitted, inFirst)
	}
}

// golden compares with a file in testdata, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: make it with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what it was; if that is right, run with -update (-was +is):\n%s", file, diff)
	}
}
