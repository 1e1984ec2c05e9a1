package callers

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// early is how much sooner than told an attempt may come before it counts as
// early. Both instants are taken so that a client never looks earlier than it was;
// this is for the clients' timers: Node's fire up to a millisecond before their
// time, since it counts in whole ones, and a clock that is set steps a little.
const early = 5 * time.Millisecond

// most refused attempts there may be for each call that succeeds.
const most = 2

// watch is how long a client that has an hour to wait is watched.
const watch = 5 * time.Second

// runs are what the clients do, each with keys of its own, all at once.
var runs = []run{
	{name: "crowd", query: query{settings: "tuned", method: "GET", path: "/bucket", calls: 8, together: true}},
	{name: "bucket", query: query{settings: "tuned", method: "GET", path: "/bucket", calls: 6}},
	{name: "window", query: query{settings: "tuned", method: "GET", path: "/window", calls: 6}, http: true},
	{name: "plain", query: query{settings: "plain", method: "GET", path: "/slow", calls: 2}},
	{name: "post", query: query{settings: "tuned", method: "POST", path: "/slow", calls: 2}, http: true, not: "package client"},
	{name: "long", query: query{settings: "bare", method: "GET", path: "/hourly", calls: 2}},
	{name: "long-tuned", query: query{settings: "tuned", method: "GET", path: "/hourly", calls: 2}},
	{name: "dear", query: query{settings: "bare", method: "GET", path: "/dear", calls: 1}},
	{name: "clamped", query: query{settings: "clamped", method: "GET", path: "/hourly", calls: 2}, only: "undici"},
	{name: "blind", query: query{settings: "blind", method: "GET", path: "/bucket", calls: 6}, only: "package"},
	{name: "blind-post", query: query{settings: "blind", method: "POST", path: "/slow", calls: 2}, only: "package client"},
}

// A run is what clients do.
type run struct {
	name  string
	query query
	http  bool // not for gRPC
	// only and not: for clients whose name begins so, and does not.
	only, not string
}

func (r run) isFor(c caller) bool {
	return !(r.http && c.grpc) && strings.HasPrefix(c.name, r.only) && (r.not == "" || !strings.HasPrefix(c.name, r.not))
}

// A trial is a run of a client, and what was seen of it.
type trial struct {
	id string
	outcome
	exchanges []exchange
}

// refused are the attempts that were.
func (r trial) refused() (n int) {
	for _, e := range r.exchanges {
		if e.refused {
			n++
		}
	}
	return n
}

// resent is how often a refusal was followed by another attempt of the same call.
func (r trial) resent() int {
	returned := 0
	for _, s := range r.statuses {
		if s == 429 {
			returned++
		}
	}
	if r.stopped {
		returned++ // it was waiting
	}
	return r.refused() - returned
}

// earliness is by how much the attempt after a refusal came before it was told to,
// at most; negative if none did.
func earliness(all []exchange) time.Duration {
	worst := time.Duration(math.MinInt64)
	for i, e := range all {
		if e.refused && i+1 < len(all) {
			worst = max(worst, e.left.Add(e.told).Sub(all[i+1].at))
		}
	}
	return worst
}

func TestRealClients(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs curl, python3-urllib3, node and npm")
	}
	demand(t)
	all := callers(t)
	var ids []string
	for _, c := range all {
		for _, r := range runs {
			ids = append(ids, idOf(c.name, r.name))
		}
	}
	api, seen := startAPI(t)
	health, seenHealth := startHealth(t)
	web, grpc := startGateway(t, api, ids), startGateway(t, health, ids)

	var mu sync.Mutex
	trials := map[string]trial{}
	var going sync.WaitGroup
	starting := make(chan struct{}, 4) // to start takes a machine's time, to wait does not
	for _, c := range all {
		for _, r := range runs {
			if !r.isFor(c) {
				continue
			}
			q := r.query
			id := idOf(c.name, r.name)
			q.key, q.addr = secret(id), grpc.Addr
			var exchanges func() []exchange
			if c.grpc {
				q.attempts = new(attempts)
				exchanges = q.attempts.exchanges
			} else {
				tap := openTap(t, web.Addr)
				q.addr, exchanges = tap.l.Addr().String(), tap.exchanges
			}
			starting <- struct{}{}
			going.Go(func() {
				o := observe(t.Context(), q, c.call, exchanges, func() { <-starting })
				mu.Lock()
				defer mu.Unlock()
				trials[id] = trial{id, o, exchanges()}
			})
		}
	}
	going.Wait()

	logs, grpcLogs := web.log(), grpc.log()
	for _, c := range all {
		log, seen := logs, seen
		if c.grpc {
			log, seen = grpcLogs, seenHealth
		}
		for _, r := range runs {
			if seenOf, ok := trials[idOf(c.name, r.name)]; ok {
				t.Run(seenOf.id, func(t *testing.T) {
					witness(t, r, seenOf, log[seenOf.id], seen.of(seenOf.id))
					if r.query.calls == 6 {
						behaves(t, r, seenOf, log[seenOf.id])
					}
				})
			}
		}
	}
	for _, name := range []string{"package client", "package grpcclient"} {
		t.Run(idOf(name, "together"), func(t *testing.T) { sharesTheGate(t, trials[idOf(name, "crowd")]) })
	}
	t.Run("early attempts", func(t *testing.T) { holdsAgainstTheEarly(t, trials[idOf("undici", "clamped")]) })
	t.Run("docs", func(t *testing.T) { document(t, all, trials) })
}

func idOf(name, run string) string { return strings.ReplaceAll(name, " ", "-") + "-" + run }

// observe has a client do its calls. One without the settings that are advised is
// stopped some time after it is refused, if it has not ended: it may wait an hour.
// started is called when it has begun.
func observe(ctx context.Context, q query, call func(context.Context, query) outcome, exchanges func() []exchange, started func()) outcome {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ended := make(chan outcome)
	go func() { ended <- call(ctx, q) }()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for on := false; ; {
		var o outcome
		var over bool
		select {
		case o = <-ended:
			over = true
		case <-look.C:
		}
		all := exchanges()
		if !on && (over || len(all) > 0) {
			on = true
			started()
		}
		if over {
			return o
		}
		if q.settings == "bare" && slices.ContainsFunc(all, func(e exchange) bool { return e.refused && time.Since(e.left) > watch }) {
			cancel()
		}
	}
}

// witness holds what was seen on the wire against what the gateway and the upstream
// saw, and what the client says came of it.
func witness(t *testing.T, of run, r trial, log []entry, arrived []time.Time) {
	t.Logf("%d attempts, %d refused; in the end %v", len(r.exchanges), r.refused(), r.statuses)
	if r.err != nil {
		t.Error(r.err)
	}
	ok, refused, passed, cut := 0, r.refused(), 0, 0
	for _, e := range r.exchanges {
		if e.ok {
			ok++
		}
		if r.stopped && !e.ok && !e.refused {
			cut++
		}
		if e.wrong != "" || e.refused && e.never != (of.query.path == "/dear") {
			t.Errorf("the gateway's refusal is wrong: told %v, no time %v; %s", e.told, e.never, e.wrong)
		}
	}
	for _, e := range log {
		if e.Verdict == "allowed" {
			passed++
		}
	}
	says := 0
	for _, s := range r.statuses {
		if s == 200 {
			says++
		}
	}
	// Who is stopped may not have told all, and may have been about to ask again.
	if ok+refused+cut != len(r.exchanges) || cut > 1 || len(log) != len(r.exchanges) || ok != passed || ok != len(arrived) || ok != says && !r.stopped {
		t.Errorf("on the wire: %d attempts, %d answered, %d refused; in the access log: %d, %d allowed; the upstream saw %d, the client %d", len(r.exchanges), ok, refused, len(log), passed, len(arrived), says)
	}
}

// behaves says whether a client got all its answers, and did not hammer. Ours are
// refused nothing, since they look at what remains.
func behaves(t *testing.T, of run, r trial, log []entry) {
	for i, s := range r.statuses {
		if s != 200 {
			t.Errorf("call %d ended with %d", i+1, s)
		}
	}
	if len(r.statuses) != 6 || r.stopped {
		t.Errorf("it ended %d calls of 6", len(r.statuses))
	}
	if refused := r.refused(); refused > most*len(r.statuses) || refused > 0 && of.query.settings == "tuned" && strings.HasPrefix(r.id, "package") {
		t.Errorf("%d attempts were refused for %d that succeeded", refused, len(r.statuses))
	}
	if by := earliness(r.exchanges); by > early {
		t.Errorf("an attempt came %v before the time that it was told", by)
	}
	// The same by the gateway's own clock.
	slices.SortFunc(log, func(a, b entry) int { return a.Time.Compare(b.Time) })
	for i, e := range log {
		if e.Verdict != "denied" || i+1 >= len(log) || len(log) != len(r.exchanges) {
			continue
		}
		if by := e.left().Add(r.exchanges[i].told).Sub(log[i+1].Time); by > early {
			t.Errorf("by the access log, an attempt came %v before the time that it was told", by)
		}
	}
}

// sharesTheGate: of ours, one call's refusal holds the others back, so that of eight
// that begin at once hardly one is refused twice.
func sharesTheGate(t *testing.T, r trial) {
	for _, s := range r.statuses {
		if s != 200 {
			t.Errorf("a call ended with %d", s)
		}
	}
	if refused := r.refused(); len(r.statuses) != 8 || refused > 12 {
		t.Errorf("%d calls of 8 ended, and %d attempts were refused", len(r.statuses), refused)
	}
}

// holdsAgainstTheEarly: to a client that does not believe a long wait the gateway
// says the same instant again and again, and its attempts move nothing.
func holdsAgainstTheEarly(t *testing.T, r trial) {
	var opens []time.Time
	for _, e := range r.exchanges {
		if e.refused {
			opens = append(opens, e.left.Add(e.told))
		}
	}
	if len(opens) != 3 {
		t.Fatalf("%d refusals, want those of an attempt and two retries", len(opens))
	}
	for _, at := range opens {
		if apart := at.Sub(opens[0]).Abs(); apart > time.Second+100*time.Millisecond {
			t.Errorf("told to come at %v, then at %v: %v apart", opens[0], at, apart)
		}
	}
}
