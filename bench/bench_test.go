package main

import (
	"encoding/gob"
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/comporta/comporta/bench/internal/report"
)

// few is an allowance that is soon spent.
var few = allowance{Units: 5, Window: 24 * time.Hour}

func TestContendersAllowWhatTheLimitAllows(t *testing.T) {
	for _, c := range keyed {
		t.Run(c.name, func(t *testing.T) {
			take, err := c.make(few)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"ana", "rui"} {
				for i := range 2 * few.Units {
					if got, want := take(key), i < few.Units; got != want {
						t.Errorf("request %d of %s: allowed %v, want %v", i+1, key, got, want)
					}
				}
			}
		})
	}
}

func TestGuardsRefuseWhatIsOverTheLimit(t *testing.T) {
	for _, g := range guards {
		t.Run(g.name, func(t *testing.T) {
			handler, err := g.wrap(few, http.HandlerFunc(hello))
			if err != nil {
				t.Fatal(err)
			}
			for client := range 2 {
				for i := range 2 * few.Units {
					w := recorder{header: make(http.Header)}
					handler.ServeHTTP(&w, newRequest(client))
					want := http.StatusOK
					if i >= few.Units && g.name != bare {
						want = http.StatusTooManyRequests
					}
					if w.status != want {
						t.Errorf("request %d of client %d: %d, want %d", i+1, client, w.status, want)
					}
				}
			}
		})
	}
}

func TestSequenceDrawsFromAllKeys(t *testing.T) {
	names := make(map[string]int)
	for i := range 1000 {
		names[keyName(i)] = 0
	}
	for _, zipf := range []bool{false, true} {
		seq := newSequence(1000, zipf, 50_000)
		seen := maps.Clone(names)
		for i := range seq.len() {
			if _, known := names[seq.at(i)]; !known {
				t.Fatalf("%q is no client's key", seq.at(i))
			}
			seen[seq.at(i)]++
		}
		most := 0
		for _, n := range seen {
			most = max(most, n)
		}
		if busy := most > 5000; busy != zipf {
			t.Errorf("Zipf %v: the busiest of 1000 keys has %d of 50000 requests", zipf, most)
		}
		if allocs := testing.AllocsPerRun(100, func() { sink = len(seq.at(7)) }); allocs != 0 {
			t.Errorf("a key of a sequence takes %v allocations", allocs)
		}
	}
}

var sink int

func TestWorkerCarriesOutOrders(t *testing.T) {
	ordersOut, orders := io.Pipe()
	answers, answersIn := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- work(ordersOut, answersIn) }()
	c := colleague{orders: gob.NewEncoder(orders), answers: gob.NewDecoder(answers)}

	if _, err := c.ask(order{Round: &round{}}); err == nil {
		t.Error("a round before the setup is no error")
	}
	for _, s := range []setup{
		{Kind: "keyed", Contender: headline, Allowance: allowance{Units: 1, Window: window}, Keys: 100, Fill: 1, Collect: true},
		{Kind: "middleware", Contender: "httprate", Allowance: allowance{Units: 1, Window: window}, Keys: 100, Fill: 1},
	} {
		made, err := c.ask(order{Setup: &s})
		if err != nil {
			t.Fatal(err)
		}
		if s.Collect && made.Cycle <= 0 {
			t.Error("a collection cost nothing")
		}
		got, err := c.ask(order{Round: &round{Goroutines: 2, For: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		if got.Sample.Requests < batch || got.Sample.Allowed != 0 || got.Sample.Wall <= 0 || got.Sample.CPU <= 0 {
			t.Errorf("%s, budgets spent: %+v", s.Contender, got.Sample)
		}
	}
	if _, err := c.ask(order{Setup: &setup{Kind: "keyed", Contender: "nobody"}}); err == nil {
		t.Error("an unknown contender is no error")
	}
	orders.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestEveryScenarioHasContenders(t *testing.T) {
	names := make(map[string]bool)
	for _, g := range groups {
		if len(g.contenders()) < 9 {
			t.Errorf("%s, %s: %d contenders", report.Count(g.keys, "key"), g.answer(), len(g.contenders()))
		}
		for _, s := range g.scenarios {
			if names[g.name(s)] {
				t.Errorf("%s is there twice", g.name(s))
			}
			names[g.name(s)] = true
		}
	}
	if !names["1,000,000 keys, Zipf, 2 goroutines, allowed"] || len(names) != 20 {
		t.Errorf("%d scenarios: %v", len(names), names)
	}
}

// BenchmarkKeyed is a contender alone, for profiles: what it needs beside others
// is for go run . to say.
func BenchmarkKeyed(b *testing.B) {
	for _, c := range keyed {
		b.Run(c.name, func(b *testing.B) {
			const keys = 1000
			take, err := c.make(group{keys: keys}.allowance())
			if err != nil {
				b.Fatal(err)
			}
			requests := keyedLoad(take, newSequence(keys, false, 1<<16))(0)
			b.ReportAllocs()
			for b.Loop() {
				requests(1)
			}
		})
	}
}

func BenchmarkMiddleware(b *testing.B) {
	for _, g := range guards {
		b.Run(g.name, func(b *testing.B) {
			handler, err := g.wrap(group{keys: 1000}.allowance(), http.HandlerFunc(hello))
			if err != nil {
				b.Fatal(err)
			}
			requests := middlewareLoad(handler, 1000)(0)
			b.ReportAllocs()
			for b.Loop() {
				requests(1)
			}
		})
	}
}
