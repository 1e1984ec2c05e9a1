package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
	"github.com/comporta/comporta/storetest"
)

func failures(status ...int) func(*policy.Limit) {
	return func(l *policy.Limit) {
		l.Limit.Charge, l.Failure = comporta.Failures, policy.Failure{Status: status}
	}
}

func estimate(e policy.Estimate) func(*policy.Limit) {
	return func(l *policy.Limit) { l.Estimate = &e }
}

// left is what remains under each limit, as a look has it.
func (h *house) left() (left []int64) {
	v := new(policy.Verdict)
	h.Look(context.Background(), request("GET", "/", peer), v)
	for _, a := range v.Applied {
		left = append(left, a.Decision.Remaining)
	}
	return left
}

// pending is one request's, let pass.
func (h *house) pending(t *testing.T) *policy.Pending {
	t.Helper()
	v := h.check(request("GET", "/", peer))
	p := h.Pending(v)
	if p == nil {
		t.Fatalf("nothing to settle of %+v", v)
	}
	return p
}

func TestFailuresAreCharged(t *testing.T) {
	h := open(t, limits(
		limit(t, "tries", "3/min as sliding_log", failures(401), func(l *policy.Limit) { l.Failure.Class = []int{5} }),
		limit(t, "all", "100/min"),
	))
	for _, c := range []struct {
		status int
		want   int64
	}{{200, 3}, {404, 3}, {101, 3}, {401, 2}, {204, 2}, {503, 1}, {0, 0}} {
		p := h.pending(t)
		if p.Uncompressed() {
			t.Error("who counts failures reads no body")
		}
		if c.status > 0 {
			if err := p.Begin(t.Context(), c.status, nil, false); err != nil {
				t.Fatal(err)
			}
		}
		if got := p.Verdict().Applied[0].Decision.Remaining; c.status > 0 && got != c.want {
			t.Errorf("%d: the verdict tells of %d left, want %d", c.status, got, c.want)
		}
		if err := p.End(t.Context(), false); err != nil || p.Reads() {
			t.Fatal(err, p.Reads())
		}
		if got := h.left()[0]; got != c.want {
			t.Errorf("after %d: %d left, want %d", c.status, got, c.want)
		}
	}
	if p := h.Pending(h.check(request("GET", "/", peer))); p != nil {
		t.Error("a denied request has something to settle")
	}
	if got := h.left()[1]; got != 93 {
		t.Errorf("the limit beside has %d left, want 93", got)
	}
	plain := open(t, limits(limit(t, "all", "100/min")))
	if p := plain.Pending(plain.check(request("GET", "/", peer))); p != nil {
		t.Error("a plain limit has something to settle")
	}
}

func TestWhatAnswersCost(t *testing.T) {
	const json, sse = "application/json", "text/event-stream"
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	for _, c := range []struct {
		name   string
		set    policy.Estimate
		ctx    context.Context
		status int
		header string // name: value; lines
		head   bool   // the answer has none of the body that its status has
		body   string
		whole  bool
		cost   int64
	}{
		{name: "a header", status: 200, header: "X-Cost: 3", cost: 3},
		{name: "a header of nothing", status: 200, header: "X-Cost: 0", cost: 0},
		{name: "a header with blanks and zeros", status: 404, header: "X-Cost: \t007 ", cost: 7},
		{name: "a header that says more", status: 200, header: "X-Cost: 30", cost: 30},
		{name: "the header of HEAD", status: 200, header: "X-Cost: 3", head: true, cost: 3},
		{name: "no header", status: 200, cost: 10},
		{name: "two headers", status: 200, header: "X-Cost: 3\nX-Cost: 3", cost: 10},
		{name: "a negative header", status: 200, header: "X-Cost: -3", cost: 10},
		{name: "a fraction", status: 200, header: "X-Cost: 3.5", cost: 10},
		{name: "a plus", status: 200, header: "X-Cost: +3", cost: 10},
		{name: "a header over any cost", status: 200, header: "X-Cost: 9007199254740992", cost: 10},
		{name: "a header without end", status: 200, header: "X-Cost: " + strings.Repeat("9", 1000), cost: 10},
		{name: "5xx", status: 502, header: "X-Cost: 3", cost: 3},
		{name: "5xx with refund", set: policy.Estimate{Refund: true}, status: 502, header: "X-Cost: 3", cost: 0},
		{name: "4xx with refund", set: policy.Estimate{Refund: true}, status: 404, cost: 10},
		{name: "5xx to who hung up", set: policy.Estimate{Refund: true}, ctx: gone, status: 502, cost: 10},
		{name: "no answer", cost: 10},
		{name: "no answer with refund", set: policy.Estimate{Refund: true}, cost: 0},
		{name: "no answer to who hung up", set: policy.Estimate{Refund: true}, ctx: gone, cost: 10},

		{name: "a document", status: 200, header: json, body: `{"n":3}`, whole: true, cost: 3},
		{name: "a document that costs more", status: 200, header: json, body: `{"n":33}`, whole: true, cost: 33},
		{name: "a document that costs nothing", status: 400, header: json, body: `{"n":0}`, whole: true, cost: 0},
		{name: "a document without it", status: 200, header: json, body: `{"m":3}`, whole: true, cost: 10},
		{name: "a document with its end in a cut answer", status: 200, header: json, body: `{"n":3}`, cost: 3},
		{name: "a document without its end", status: 200, header: json, body: `{"n":3,`, cost: 10},
		{name: "the same as if it were whole", status: 200, header: json, body: `{"n":3,`, whole: true, cost: 10},
		{name: "more without its end", status: 200, header: json, body: `{"n":33,`, cost: 33},
		{name: "events", status: 200, header: sse, body: "data: {\"n\":3}\n\n", whole: true, cost: 3},
		{name: "events that are cut", status: 200, header: sse, body: "data: {\"n\":3}\n\n", cost: 10},
		{name: "more events that are cut", status: 200, header: sse, body: "data: {\"n\":33}\n\ndata: {\"n\":", cost: 33},
		{name: "events that were done", status: 200, header: sse, body: "data: {\"n\":3}\n\ndata: [DONE]\n", cost: 3},
		{name: "for HEAD", status: 200, header: json, head: true, whole: true, cost: 10},
		{name: "204", status: 204, header: json, whole: true, cost: 10},
		{name: "304", status: 304, header: json, whole: true, cost: 10},
		{name: "a part", status: 206, header: json, body: `{"n":3}`, whole: true, cost: 10},
		{name: "compressed", status: 200, header: json + "\nContent-Encoding: gzip", body: `{"n":3}`, whole: true, cost: 10},
		{name: "another type", status: 200, header: "text/plain", body: `{"n":3}`, whole: true, cost: 10},
		{name: "JSON 5xx with refund", set: policy.Estimate{Refund: true}, status: 500, header: json, body: `{"n":3}`, whole: true, cost: 0},
	} {
		e := c.set
		if e.Default = 10; strings.HasPrefix(c.header, "X-Cost") || c.header == "" {
			e.ResponseHeader = "X-Cost"
		} else {
			e.ResponseJSON, c.header = "n", "Content-Type: "+c.header
		}
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		h := open(t, limits(limit(t, "a", "100/min as fixed_window", estimate(e)), limit(t, "b", "100/min as fixed_window", estimate(e), shadow)))
		header := map[string][]string{}
		for line := range strings.Lines(c.header) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			header[name] = append(header[name], value)
		}
		p := h.pending(t)
		if p.Uncompressed() != (e.ResponseJSON != "") {
			t.Errorf("%s: uncompressed %v", c.name, p.Uncompressed())
		}
		if c.status > 0 {
			if err := p.Begin(c.ctx, c.status, header, c.head); err != nil {
				t.Fatal(err)
			}
		}
		if p.Reads() {
			for i := range len(c.body) {
				if err := p.Read(c.ctx, []byte(c.body[i:i+1])); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := p.End(c.ctx, c.whole); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int64{100 - c.cost, 100 - c.cost}, h.left()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Places of their own are read apart, and settled once all have been read.
func TestSeveralPlacesInOneAnswer(t *testing.T) {
	of := func(place string) func(*policy.Limit) {
		return estimate(policy.Estimate{Default: 10, ResponseJSON: place})
	}
	h := open(t, limits(
		limit(t, "in", "100/min", of("usage.in")), limit(t, "out", "100/min", of("usage.out")), limit(t, "out-day", "100/24h", of("usage.out")),
		limit(t, "header", "100/min", estimate(policy.Estimate{Default: 10, ResponseHeader: "X-Cost"})),
	))
	p := h.pending(t)
	if err := p.Begin(t.Context(), 200, map[string][]string{"Content-Type": {"application/json"}, "X-Cost": {"1"}}, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Read(t.Context(), []byte(`{"usage":{"out":3,"in":2}}`)); err != nil || p.Reads() {
		t.Fatal(err, p.Reads())
	}
	if diff := cmp.Diff([]int64{98, 97, 97, 99}, h.left()); diff != "" {
		t.Errorf("before the end (-want +got):\n%s", diff)
	}
}

// What was spent locally is settled locally, and a quota owes the store what it cost.
func TestSettlingWithoutTheStore(t *testing.T) {
	f := join(t, 1, limits(
		quota(t, "day", "100/day", estimate(policy.Estimate{Default: 10, ResponseHeader: "X-Cost"})),
		limit(t, "tries", "5/h as fixed_window", failures(401)),
	))
	f.store.be(true)
	for _, cost := range []string{"3", "0", "12"} {
		v := f.check(request("GET", "/", peer))
		p := f.Pending(v)
		if p == nil || v.Fallen != policy.Local {
			t.Fatalf("%+v", v)
		}
		if err := p.Begin(t.Context(), 200, map[string][]string{"X-Cost": {cost}}, false); err != nil {
			t.Fatal(err)
		}
	}
	f.store.be(false)
	if err := f.Repay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := f.peek(t, "day", peer); left != 85 {
		t.Errorf("%d left of the quota, want 85", left)
	}
}

// What the store cannot settle stays charged, and is told of.
func TestAStoreThatCannotSettle(t *testing.T) {
	p := limits(limit(t, "tries", "5/min", failures(401)))
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := policy.NewEngine(&p, &storetest.Faults{Store: store, Script: storetest.Sequence(storetest.None, storetest.Lost)}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := new(policy.Verdict)
	e.Check(t.Context(), request("GET", "/", peer), v)
	pending := e.Pending(v)
	if err := pending.Begin(t.Context(), 200, nil, false); !errors.Is(err, storetest.ErrFault) {
		t.Errorf("settled with %v", err)
	}
	if got := pending.Verdict().Applied[0].Decision.Remaining; got != 4 {
		t.Errorf("the verdict tells of %d left, want 4", got)
	}
	if err := pending.End(t.Context(), true); err != nil {
		t.Error("settled twice:", err)
	}
}

func TestWarns(t *testing.T) {
	warn := func(l *policy.Limit) { l.WarnAt = 80 }
	h := open(t, limits(limit(t, "a", "5/min as fixed_window", warn), limit(t, "b", "9/min as fixed_window")))
	var got []bool
	for range 6 {
		v := h.check(request("GET", "/", peer))
		got = append(got, v.Applied[0].Warns() && !v.Applied[1].Warns())
	}
	if diff := cmp.Diff([]bool{false, false, false, true, true, true}, got); diff != "" {
		t.Error(diff)
	}
}
