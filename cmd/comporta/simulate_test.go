package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// simulate runs the command as a shell would.
func simulate(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	t.Setenv("COLUMNS", "80")
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), append([]string{"simulate"}, args...), &streams{strings.NewReader(in), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

func TestSimulateTellsTheArticlesNumbers(t *testing.T) {
	for _, c := range []struct{ want, limit, algorithm, at string }{
		{"12 of 20 admitted: 5 of 7 at 0s, 2 of 3 at 2s, 5 of 10 at 10s\n", "1/s burst 5", "token_bucket", "7@0s,3@2s,10@10s"},
		{"20 of 20 admitted: 10 of 10 at 59.9s, 10 of 10 at 60s\n", "10/min", "fixed_window", "10@59.9s,10@60.0s"},
		{"10 of 20 admitted: 10 of 10 at 59.9s, 0 of 10 at 60s\n", "10/min", "sliding_log", "10@59.9s,10@60.0s"},
	} {
		code, out, errs := simulate(t, "", "--limit", c.limit, "--algorithm", c.algorithm, "--at", c.at)
		if code != exitOK || errs != "" || !strings.HasSuffix(out, c.want) {
			t.Errorf("%s %s: exit %d, %s\n%s", c.algorithm, c.limit, code, errs, out)
		}
	}
}

// A new limit starts where time 0 is said to be.
func TestSimulateQuotas(t *testing.T) {
	_, out, errs := simulate(t, "", "--quota", "3/day", "--start", "2026-10-25T10:00:00Z", "--at", "4@0 every 5m", "--json")
	var report struct {
		Start int64 `json:"start_us"`
		Runs  []struct {
			Admitted  int
			Decisions []struct {
				Retry int64 `json:"retry_after_us"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err, errs)
	}
	run := report.Runs[0]
	if report.Start != 1792922400e6 || run.Admitted != 3 || run.Decisions[3].Retry != 49_500e6 {
		t.Errorf("the fourth of the day is to retry after 49,500 s: %+v", report)
	}
}

func TestSimulateVectors(t *testing.T) {
	const file = "../../testdata/vectors/seeds.jsonl"
	in, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(string(in), `"want"`, `"got"`)
	if code, out, errs := simulate(t, "", "--vectors", file); code != exitOK || out != want {
		t.Errorf("from a file: exit %d, %s", code, errs)
	}
	if code, out, errs := simulate(t, string(in), "--vectors", "-"); code != exitOK || out != want {
		t.Errorf("from the standard input: exit %d, %s", code, errs)
	}
}

func TestSimulateErrors(t *testing.T) {
	limit := []string{"--limit", "1/s"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--limit is missing"},
		{limit, "--at is missing"},
		{[]string{"--limit", "1/fortnight", "--at", "1@0"}, "fortnight"},
		{append(limit, "--at", "1"), `--at: "1" is no arrival`},
		{append(limit, "--at", "1@0", "--cost=-1"), "--at: a cost of -1"},
		{append(limit, "--at", "1@0", "--start", "noon"), `--start: "noon"`},
		{append(limit, "--at", "1@0", "--max-wait", "long"), `--max-wait: "long"`},
		{append(limit, "--at", "1@0", "--algorithm", "gcra"), `--algorithm: unknown algorithm "gcra"`},
		{append(limit, "--at", "1@0", "--algorithm", "sliding_log", "--max-wait", "1s"), "max_wait: is for a token_bucket only"},
		{append(limit, "--at", "1@0", "--svg", filepath.Join(t.TempDir(), "no", "file.svg")), "no such file"},
		{[]string{"--quota", "5/day", "--at", "1@0", "--algorithm", "all"}, "a quota is a fixed_window"},
		{[]string{"--vectors", "-", "--limit", "1/s"}, "--vectors brings its own"},
		{[]string{"--vectors", "no-such-file"}, "no-such-file"},
	} {
		code, out, errs := simulate(t, "", c.args...)
		if code != exitFailed || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit %d, want %q\n%s%s", c.args, code, c.want, errs, out)
		}
	}
	code, _, errs := simulate(t, "{}", "--vectors", "-")
	if want := "comporta: line 1: limit: is missing\n"; code != exitFailed || errs != want {
		t.Errorf("exit %d\n%s", code, cmp.Diff(want, errs))
	}
}
