package comporta_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// vector is one line of testdata/vectors: a limit, takes and settles on one new
// key, and the right decision for each, from a model in rational arithmetic that
// was written apart.
type vector struct {
	Name  string `json:"name"`
	Limit struct {
		Algorithm string `json:"algorithm"`
		Limit     int64  `json:"limit"`
		Window    int64  `json:"window_us"`
		Burst     int64  `json:"burst"`
		MaxWait   int64  `json:"max_wait_us"`
		Charge    string `json:"charge"`
	} `json:"limit"`
	Takes []struct {
		At     int64 `json:"at_us"`
		Cost   int64 `json:"cost"`
		Settle *struct {
			Take   int   `json:"take"`
			Actual int64 `json:"actual"`
		} `json:"settle"`
		Want answer `json:"want"`
	} `json:"takes"`
}

type answer struct {
	Allowed    bool  `json:"allowed"`
	Limit      int64 `json:"limit"`
	Remaining  int64 `json:"remaining"`
	ResetAfter int64 `json:"reset_after_us"`
	FullAfter  int64 `json:"full_after_us"`
	RetryAfter int64 `json:"retry_after_us"`
	Delay      int64 `json:"delay_us"`
}

func answerOf(d comporta.Decision) answer {
	a := answer{d.Allowed, d.Limit, d.Remaining, d.ResetAfter.Microseconds(), d.FullAfter.Microseconds(), d.RetryAfter.Microseconds(), d.Delay.Microseconds()}
	if d.RetryAfter == comporta.Never {
		a.RetryAfter = -1
	}
	return a
}

func (v *vector) rule(t *testing.T) *comporta.Rule {
	t.Helper()
	algorithm, err := comporta.ParseAlgorithm(v.Limit.Algorithm)
	if err != nil {
		t.Fatal(err)
	}
	limit := comporta.Limit{
		Algorithm: algorithm, Limit: v.Limit.Limit, Burst: v.Limit.Burst,
		Window: time.Duration(v.Limit.Window) * time.Microsecond, MaxWait: time.Duration(v.Limit.MaxWait) * time.Microsecond,
	}
	if v.Limit.Charge == "attempts" {
		limit.Charge = comporta.Attempts
	}
	rule, err := limit.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// bench keeps one key's cell and log between steps, as a store does.
type bench struct {
	state   comporta.State
	entries comporta.Entries
}

func (b *bench) step(step func(*comporta.Cell)) (changed bool) {
	c := comporta.Cell{State: b.state, Log: b.entries}
	step(&c)
	if c.Changed {
		b.state, b.entries = c.State, b.entries.Apply(c.Edit)
	}
	return c.Changed
}

func (b *bench) take(r *comporta.Rule, now comporta.Instant, cost int64) (d comporta.Taken) {
	b.step(func(c *comporta.Cell) { r.Advance(c, now, cost, &d) })
	return d
}

func (b *bench) settle(r *comporta.Rule, now comporta.Instant, taken comporta.Receipt, actual int64) comporta.Taken {
	b.step(func(c *comporta.Cell) { r.Settle(c, now, taken, actual) })
	return b.take(r, now, 0)
}

func TestVectors(t *testing.T) {
	files, _ := filepath.Glob("testdata/vectors/*.jsonl")
	if len(files) != 3 {
		t.Fatalf("found %d files of vectors", len(files))
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var v vector
			if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
				t.Fatal(err)
			}
			t.Run(filepath.Base(file)+"/"+v.Name, func(t *testing.T) { v.run(t) })
		}
	}
}

func (v *vector) run(t *testing.T) {
	rule := v.rule(t)
	var b bench
	receipts := make([]comporta.Receipt, len(v.Takes))
	for i, take := range v.Takes {
		var d comporta.Taken
		if take.Settle != nil {
			d = b.settle(rule, comporta.Instant(take.At), receipts[take.Settle.Take], take.Settle.Actual)
		} else {
			d = b.take(rule, comporta.Instant(take.At), take.Cost)
			receipts[i] = d.Receipt
		}
		if got := answerOf(d.Decision); got != take.Want {
			t.Fatalf("%s row %d (%+v):\n got %+v\nwant %+v", rule.Limit(), i, take, got, take.Want)
		}
	}
}
