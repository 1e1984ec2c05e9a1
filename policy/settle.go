package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
)

// settleWithin bounds each call that settles: an answer waits for it.
const settleWithin = time.Second

// A Pending settles what an allowed request was charged for by what is answered:
// limits that charge failures, and costs that were estimated. Whoever passes the
// answer on tells it of the head, of the body where it Reads, and of the end, each
// before the client can know of it. So a client that asks again finds what it
// asked before settled.
//
// A Pending is of one request, and used by one goroutine at a time. The store that
// was asked for the request is asked again, under a deadline of a second and even
// when the request's context has ended. Errors are the store's: what could not be
// settled stays as it was charged.
type Pending struct {
	engine   *Engine
	verdict  Verdict
	owed     []owed
	watched  []owed // of limits that warn, with what they cost in the end
	readings []*reading
	begun    bool
	warned   bool
}

// owed is one limit's part.
type owed struct {
	applied int // index in the verdict
	reading int // index of the reading that it waits for
	actual  int64
}

// Pending is what there is to settle of a verdict, nil where there is nothing. The
// verdict may be used again.
func (e *Engine) Pending(v *Verdict) *Pending {
	if !v.Allowed {
		return nil
	}
	var p *Pending
	for i := range v.Applied {
		a := &v.Applied[i]
		if a.Receipt.Cost == 0 || !a.Limit.Settles() {
			continue
		}
		if p == nil {
			p = &Pending{engine: e, verdict: *v}
			p.verdict.Applied, p.verdict.Unproved = slices.Clone(v.Applied), nil
		}
		p.owed = append(p.owed, owed{applied: i})
		if a.Limit.WarnAt > 0 {
			p.watched = append(p.watched, owed{applied: i, actual: a.Receipt.Cost})
		}
	}
	return p
}

// Warned says, once all is settled, whether this request brought a client's use to
// where a limit tells of it. The verdict's [Applied.Warned] say which.
func (p *Pending) Warned() bool { return p.warned }

// warn finds that out.
func (p *Pending) warn() {
	for _, o := range p.watched {
		a := &p.verdict.Applied[o.applied]
		a.Warned = a.passed(o.actual)
		p.warned = p.warned || a.Warned
	}
	p.watched = nil
}

// Settles says whether answers settle what requests are charged for.
func (l *Limit) Settles() bool {
	return l.Estimate != nil || l.Limit.Charge == comporta.Failures
}

// Verdict is the request's, with the decisions as they stand after what was settled.
func (p *Pending) Verdict() *Verdict { return &p.verdict }

// Uncompressed says whether the answer's body has to come as it is for its cost to
// be read in it.
func (p *Pending) Uncompressed() bool {
	return slices.ContainsFunc(p.owed, func(o owed) bool {
		e := p.verdict.Applied[o.applied].Limit.Estimate
		return e != nil && e.ResponseJSON != ""
	})
}

// Begin settles what the answer's head decides. The header has canonical names;
// bodiless says that no body comes though the status has one, as for HEAD.
// Informational answers are not told of.
func (p *Pending) Begin(ctx context.Context, status int, header map[string][]string, bodiless bool) error {
	p.begun = true
	readable := !bodiless && status >= 200 && status != 204 && status != 206 && status != 304
	kind, isJSON := streamOf(header)
	var now, later []owed
	for _, o := range p.owed {
		l := p.verdict.Applied[o.applied].Limit
		switch e := l.Estimate; {
		case e == nil:
			if !l.Failure.Is(status) {
				now = append(now, o)
			}
		case status >= 500 && e.Refund && ctx.Err() == nil:
			now = append(now, o)
		case e.ResponseHeader != "":
			if units, ok := unitsIn(header[e.ResponseHeader]); ok {
				o.actual = units
				now = append(now, o)
			}
		case readable && isJSON:
			o.reading = p.reads(kind, e.ResponseJSON)
			later = append(later, o)
		}
	}
	p.owed = later
	return p.settle(ctx, now)
}

// reads is the index of the reading for a place: limits of one place share it.
func (p *Pending) reads(kind streamKind, place string) int {
	keys := strings.Split(place, ".")
	for i, r := range p.readings {
		if slices.Equal(r.scan.place, keys) {
			return i
		}
	}
	p.readings = append(p.readings, &reading{kind: kind, scan: numberScan{place: keys}})
	return len(p.readings) - 1
}

// Reads says whether the answer's body is to be read.
func (p *Pending) Reads() bool { return len(p.owed) > 0 && len(p.readings) > 0 }

// Read reads a piece of the body before it is passed on, and settles where the body
// says by itself that it is at its end.
func (p *Pending) Read(ctx context.Context, data []byte) error {
	over := true
	for _, r := range p.readings {
		r.read(data)
		over = over && r.over
	}
	if !over {
		return nil
	}
	return p.End(ctx, true)
}

// End settles the rest. Whole says that all of the answer has come; else it was
// cut short, or there was none: Begin was not called.
func (p *Pending) End(ctx context.Context, whole bool) error {
	for _, r := range p.readings {
		r.next()
	}
	var now []owed
	for _, o := range p.owed {
		a := &p.verdict.Applied[o.applied]
		if !p.begun {
			if a.Limit.Estimate != nil && a.Limit.Estimate.Refund && ctx.Err() == nil {
				now = append(now, o)
			}
			continue
		}
		r := p.readings[o.reading]
		if !r.found {
			continue
		}
		if o.actual = r.units; !whole || r.kind == document && !r.over {
			o.actual = max(r.units, a.Receipt.Cost)
		}
		now = append(now, o)
	}
	p.owed = nil
	defer p.warn()
	return p.settle(ctx, now)
}

// settle settles, in the store that was charged, and writes the decisions into the verdict.
func (p *Pending) settle(ctx context.Context, of []owed) error {
	of = slices.DeleteFunc(of, func(o owed) bool { return o.actual == p.verdict.Applied[o.applied].Receipt.Cost })
	if len(of) == 0 {
		return nil
	}
	e, v := p.engine, &p.verdict
	local := func(o owed) bool { return v.Applied[o.applied].Fallen == Local }
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	err := errors.Join(
		p.settleIn(ctx, e.store, slices.DeleteFunc(slices.Clone(of), local)),
		p.settleIn(ctx, e.fallback.local, slices.DeleteFunc(slices.Clone(of), func(o owed) bool { return !local(o) })),
	)
	v.Now = e.now()
	v.name()
	if err != nil {
		return fmt.Errorf("policy: settling what an answer cost: %w", err)
	}
	return nil
}

func (p *Pending) settleIn(ctx context.Context, store comporta.Store, of []owed) error {
	if len(of) == 0 {
		return nil
	}
	settlements, out := make([]comporta.Settlement, len(of)), make([]comporta.Taken, len(of))
	for i, o := range of {
		a := &p.verdict.Applied[o.applied]
		settlements[i] = comporta.Settlement{
			Key: comporta.Key{Limit: a.Limit.Name, Identity: a.Identity}, Rule: a.Rule, Taken: a.Receipt, Actual: o.actual,
		}
	}
	if err := store.Settle(ctx, settlements, out); err != nil {
		return err
	}
	for i, o := range of {
		a := &p.verdict.Applied[o.applied]
		a.Decision = out[i].Decision
		if at := slices.IndexFunc(p.watched, func(w owed) bool { return w.applied == o.applied }); at >= 0 {
			p.watched[at].actual = o.actual
		}
		if a.Fallen == Local {
			p.engine.fallback.debts.correct(settlements[i].Key, a.Receipt.At, o.actual-a.Receipt.Cost)
		}
	}
	return nil
}

// unitsIn is a header's value where it is a cost: one line of digits.
func unitsIn(lines []string) (int64, bool) {
	if len(lines) != 1 {
		return 0, false
	}
	text := strings.Trim(lines[0], " \t")
	if !digits([]byte(text)) {
		return 0, false
	}
	units, err := strconv.ParseInt(text, 10, 64)
	return units, err == nil && units <= comporta.MaxCost
}
