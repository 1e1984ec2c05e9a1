package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

// A wait is what the gateways' limits made one request wait for, by the access
// log: the time in the gateway without that of the upstream.
type wait struct {
	path  string
	begun time.Time
	took  time.Duration
}

// waits are those of requests that began since an instant. It reads on in the
// access logs until all that was answered is there.
func (f *fleet) waits(t testing.TB, since time.Time) (all []wait) {
	t.Helper()
	redistest.Until(t, 5*time.Second, func() error { // they are written every second
		for _, g := range f.gateways {
			for _, w := range g.waits(t) {
				f.logged++
				if w.begun.After(since) {
					all = append(all, w)
				}
			}
		}
		if answered := f.answered.Load(); f.logged < answered {
			return fmt.Errorf("the access logs have %d requests of %d", f.logged, answered)
		}
		return nil
	})
	return all
}

func (g *gateway) waits(t testing.TB) (all []wait) {
	t.Helper()
	file, err := os.Open(g.access)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, g.read, 1<<40))
	if err != nil {
		t.Fatal(err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	g.read += int64(len(text))
	for line := range bytes.Lines(text) {
		var said struct {
			Time       time.Time
			Path       string
			US         int64
			UpstreamUS int64 `json:"upstream_us"`
		}
		if err := json.Unmarshal(line, &said); err != nil {
			t.Fatalf("the access log: %v: %s", err, line)
		}
		all = append(all, wait{said.Path, said.Time, time.Duration(said.US-said.UpstreamUS) * time.Microsecond})
	}
	return all
}

// quantile is the wait that a share of the given ones does not exceed.
func quantile(all []wait, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	took := make([]time.Duration, len(all))
	for i, w := range all {
		took[i] = w.took
	}
	slices.Sort(took)
	return took[min(len(took)-1, int(share*float64(len(took))))]
}

// split are the waits of a load for limits, and those of its requests without
// any: what a busy machine makes everybody wait for.
func split(all []wait) (limited, noise []wait) {
	for _, w := range all {
		switch w.path {
		case aside:
		case free:
			noise = append(noise, w)
		default:
			limited = append(limited, w)
		}
	}
	return limited, noise
}
