package comporta

import "time"

// AdvanceAll is the step of all the limits of one request, in place: it changes
// all that it allows or, when an enforced limit denies, nothing but the limits
// that charge attempts. The takes are checked ([CheckTakes]); cells and out are
// as long as they are. It does not allocate.
func AdvanceAll(takes []Take, cells []Cell, now Instant, out []Taken) {
	allowed := true
	for i := range takes {
		t := &takes[i]
		tried := cells[i]
		t.Rule.advance(&tried, now, t.Cost, &out[i], t.attempts())
		allowed = allowed && (out[i].Allowed || t.Shadow)
	}
	for i := range takes {
		t, c := &takes[i], &cells[i]
		if spared := !allowed && out[i].Allowed && !t.attempts(); spared {
			t.Rule.advance(c, now, 0, &out[i], false)
			continue
		}
		t.Rule.advance(c, now, t.Cost, &out[i], t.attempts())
		if !allowed {
			out[i].Delay = 0
		}
	}
}

// attempts says whether the take is charged whatever is answered. A shadow
// limit that would deny is never charged.
func (t *Take) attempts() bool { return t.Rule.limit.Charge == Attempts && !t.Shadow }

// An Outcome is the answer to a request: the decisions of its limits as one.
type Outcome struct {
	// Allowed: every enforced limit allows.
	Allowed bool
	// RetryAfter is 0 when allowed; else the longest among the enforced limits, or Never.
	RetryAfter time.Duration
	// Delay is 0 when denied; else the longest among the enforced limits.
	Delay time.Duration
}

// Resolve makes one answer of the decisions on the takes of one request.
func Resolve(takes []Take, decisions []Taken) Outcome {
	o := Outcome{Allowed: true}
	var retry time.Duration
	for i := range takes {
		if takes[i].Shadow {
			continue
		}
		d := &decisions[i]
		o.Allowed = o.Allowed && d.Allowed
		o.Delay = max(o.Delay, d.Delay)
		retry = max(retry, d.AskAgain)
	}
	if !o.Allowed {
		o.RetryAfter, o.Delay = retry, 0
	}
	return o
}
