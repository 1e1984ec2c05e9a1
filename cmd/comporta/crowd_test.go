package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCrowdTellsOfAll(t *testing.T) {
	code, out, errs := simulate(t, "", "crowd", "--clients", "200")
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, name := range []string{"naive", "told", "backoff", "ours, apart", "ours, together", "ours, beside", "the naive one"} {
		if !strings.Contains(out, "\n"+name+"  ") {
			t.Errorf("%q is not in the table:\n%s", name, out)
		}
	}
	code, out, errs = simulate(t, "", "crowd", "--clients", "200", "--requests", "2", "--limit", "50/s burst 10", "--algorithm", "leaky_bucket", "--start-within", "1s", "--latency", "3ms", "--jitter", "1ms", "--seed", "7", "--json")
	var report struct {
		Limit     string
		Algorithm string
		Clients   int
		Requests  int
		Within    int64 `json:"start_within_us"`
		Latency   int64 `json:"latency_us"`
		Jitter    int64 `json:"jitter_us"`
		Seed      uint64
		Parties   []struct {
			Name            string
			Successes, Sent int
			Total           *int64 `json:"total_us"`
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(code, errs, err)
	}
	if report.Limit != "50/s burst 10" || report.Algorithm != "leaky_bucket" || report.Clients != 200 || report.Requests != 2 || report.Within != 1_000_000 ||
		report.Latency != 3000 || report.Jitter != 1000 || report.Seed != 7 || len(report.Parties) != 7 {
		t.Errorf("not what the flags say: %+v", report)
	}
	for _, p := range report.Parties {
		if p.Successes != 400 || p.Sent < 400 || p.Total == nil || *p.Total < 7_000_000 {
			t.Errorf("%+v", p)
		}
	}
}

func TestCrowdErrorsSayWhichFlag(t *testing.T) {
	for args, want := range map[string]string{
		"--limit x":                   "--limit",
		"--algorithm x":               "--algorithm",
		"--latency x":                 "--latency",
		"--jitter x":                  "--jitter",
		"--start-within x":            "--start-within",
		"--clients 0":                 "clients: from 1",
		"--requests 0":                "--requests: at least 1",
		"--requests 501":              "requests: at most",
		"--jitter 1s":                 "jitter: at most the latency",
		"--svg /no/such/directory/is": "no such file",
	} {
		code, out, errs := simulate(t, "", append([]string{"crowd"}, strings.Fields(args)...)...)
		if code != exitFailed || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s%s", args, code, errs, out)
		}
	}
}

// The documentation's picture of a crowd is the one that the command draws.
func TestCrowdPictureIsFresh(t *testing.T) {
	picture, err := filepath.Abs("../../docs/crowd.svg")
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := simulate(t, "", "crowd", "--svg", "-")
	if code != exitOK {
		t.Fatalf("exit %d, %s", code, errs)
	}
	if *update {
		if err := os.WriteFile(picture, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(shown), out); diff != "" {
		t.Errorf("docs/crowd.svg is not what is drawn; run with -update (-shown +drawn):\n%s", diff)
	}
}

// Simulate alone stands for simulate arrivals, and its help says so.
func TestSimulateHelpNamesBoth(t *testing.T) {
	code, out, _ := simulate(t, "", "--help")
	for _, want := range []string{"simulate arrivals", "simulate crowd", "the flags are those of arrivals"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in:\n%s", code, want, out)
		}
	}
	if _, out, _ := simulate(t, "", "arrivals", "--help"); !strings.Contains(out, "ARRIVALS = BURST") {
		t.Errorf("no grammar in:\n%s", out)
	}
}
