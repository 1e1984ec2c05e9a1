package main

import (
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/comporta/comporta/bench/internal/process"
	"github.com/comporta/comporta/bench/internal/report"
	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test program be what the program itself starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestProxiesLimit holds each configuration against the real program: what is
// allowed comes from the upstream, what is refused is 429.
func TestProxiesLimit(t *testing.T) {
	w, upstream, err := newWorkshop(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Stop()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			if _, err := exec.LookPath(p.needs); p.needs != "" && err != nil {
				t.Skipf("%s is not installed", p.needs)
			}
			for _, m := range p.modes {
				port, err := process.FreePort()
				if err != nil {
					t.Fatal(err)
				}
				started, err := p.launch(w, m, port)
				if err != nil {
					t.Fatal(err)
				}
				defer started.Stop()
				var got []int
				for range 4 {
					got = append(got, get(t, "http://"+process.Address(port)+"/v1/things"))
				}
				want := map[mode]int{unlimited: 200, allowed: 200, refused: 429}[m]
				if got[2] != want || got[3] != want {
					t.Errorf("%s: answers %v, want %d at last", m, got, want)
				}
				if _, err := started.CPU(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func get(t *testing.T, url string) int {
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}

func TestRowsCompareWithEachPeer(t *testing.T) {
	us, peer := proxy{name: "comporta", ours: true}, proxy{name: "peer"}
	got := rows([]*runner{
		{proxy: us, mode: unlimited, cpu: []float64{80, 82, 300}},
		{proxy: us, mode: allowed, cpu: []float64{82, 85, 83}},
		{proxy: us, mode: refused, cpu: []float64{20, 19, 21}},
		{proxy: peer, mode: allowed, cpu: []float64{166}},
		{proxy: peer, mode: refused, cpu: []float64{40}},
	})
	want := []report.Row{
		{Scenario: "gateway: what a limit adds", Unit: "µs CPU/request", Ours: report.Value{Of: 2}, Target: targetAdded},
		{Scenario: "gateway, allowed", Unit: "µs CPU/request", Peer: report.Value{Name: "peer", Of: 166}, Ours: report.Value{Of: 83}, Target: targetAllowed},
		{Scenario: "gateway, refused", Unit: "µs CPU/request", Peer: report.Value{Name: "peer", Of: 40}, Ours: report.Value{Of: 20}, Target: targetRefused},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
