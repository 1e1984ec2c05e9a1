package redisstore_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/storetest"
)

// TestVectors asks the store the worked cases of the root, which a model in
// rational arithmetic has answered.
func TestVectors(t *testing.T) {
	files, _ := filepath.Glob("../testdata/vectors/*.jsonl")
	if len(files) != 3 {
		t.Fatalf("found %d files of vectors", len(files))
	}
	clock := &storetest.Clock{}
	store := open(t, clock.Now)
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
			v.run(t, clock, store, comporta.Key{Limit: filepath.Base(file), Identity: v.Name})
		}
	}
}

type vector struct {
	Name  string
	Limit struct {
		Algorithm, Charge string
		Limit, Burst      int64
		Window            int64 `json:"window_us"`
		MaxWait           int64 `json:"max_wait_us"`
	}
	Takes []struct {
		At     int64 `json:"at_us"`
		Cost   int64
		Settle *struct {
			Take   int
			Actual int64
		}
		Want answer
	}
}

type answer struct {
	Allowed          bool
	Limit, Remaining int64
	ResetAfter       int64 `json:"reset_after_us"`
	FullAfter        int64 `json:"full_after_us"`
	RetryAfter       int64 `json:"retry_after_us"`
	Delay            int64 `json:"delay_us"`
}

func (v *vector) run(t *testing.T, clock *storetest.Clock, store comporta.Store, key comporta.Key) {
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
	receipts := make([]comporta.Receipt, len(v.Takes))
	for i, take := range v.Takes {
		clock.Set(comporta.Instant(take.At))
		var out [1]comporta.Taken
		if take.Settle != nil {
			settlement := comporta.Settlement{Key: key, Rule: rule, Taken: receipts[take.Settle.Take], Actual: take.Settle.Actual}
			err = store.Settle(t.Context(), []comporta.Settlement{settlement}, out[:])
		} else {
			err = store.Take(t.Context(), []comporta.Take{{Key: key, Rule: rule, Cost: take.Cost}}, out[:])
			receipts[i] = out[0].Receipt
		}
		if err != nil {
			t.Fatal(err)
		}
		d := out[0].Decision
		got := answer{d.Allowed, d.Limit, d.Remaining, d.ResetAfter.Microseconds(), d.FullAfter.Microseconds(), d.RetryAfter.Microseconds(), d.Delay.Microseconds()}
		if d.RetryAfter == comporta.Never {
			got.RetryAfter = -1
		}
		if got != take.Want {
			t.Errorf("%s: %s row %d:\n got %+v\nwant %+v", v.Name, rule.Limit(), i, got, take.Want)
			return
		}
	}
}
