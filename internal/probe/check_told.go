package probe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// denied is the first refusal that was met; nil where there was none.
func (p *prober) denied() *Shot {
	for _, s := range p.shots() {
		if s.Denied() {
			return &s
		}
	}
	return nil
}

// refusal looks at the status and the fields of a refusal.
func (p *prober) refusal() (Check, error) {
	s := p.denied()
	if s == nil {
		return Check{Verdict: Unknown, Seen: "nothing was refused"}, nil
	}
	var seen, todo []string
	verdict := Good
	worse := func(v Verdict, text, fix string) {
		if v == Bad || verdict == Good {
			verdict = v
		}
		seen = append(seen, text)
		todo = append(todo, fix)
	}
	seen = append(seen, "status "+strconv.Itoa(s.Status))
	if s.Status != 429 {
		worse(Bad, "which is not 429", "answer 429 (RFC 6585), which clients know")
	}
	lines := s.Header.Values("Retry-After")
	switch after := strings.Join(lines, ", "); {
	case len(lines) == 0:
		worse(Warn, "no Retry-After", "say when to come again, in whole seconds, rounded up")
	case len(lines) > 1:
		worse(Bad, fmt.Sprintf("%d Retry-After lines", len(lines)), "send one: clients take two for none, or for zero")
	case strings.Trim(after, "0123456789") != "" || after == "":
		worse(Warn, fmt.Sprintf("Retry-After: %.60q, no whole seconds", after), "send whole seconds: many clients read nothing else, or fail on it")
	case after == "0":
		worse(Bad, "Retry-After: 0", "send at least 1: clients come again at once")
	case len(after) > 7 || len(after) == 7 && after > "2147483":
		worse(Bad, "Retry-After: "+after, "send at most 86400: timers of some clients overflow, and they come again at once")
	default:
		seen = append(seen, "Retry-After: "+after)
	}
	kind, _, _ := strings.Cut(s.Header.Get("Content-Type"), ";")
	seen = append(seen, "a body of "+orNone(kind))
	if !strings.Contains(s.Header.Get("Cache-Control"), "no-store") {
		seen = append(seen, "no Cache-Control: no-store")
		todo = append(todo, "send Cache-Control: no-store, so that no cache repeats a refusal")
	}
	return Check{Verdict: verdict, Seen: strings.Join(seen, "; "), Todo: strings.Join(todo, "; ")}, nil
}

func orNone(text string) string {
	if text == "" {
		return "no type"
	}
	return text
}

// headers lists the dialects in which limits are told.
func (p *prober) headers() (Check, error) {
	var dialects []string
	on := map[string]bool{} // those on answers that were admitted
	for _, s := range p.shots() {
		for _, h := range s.Hints {
			if !slices.Contains(dialects, h.Dialect) {
				dialects = append(dialects, h.Dialect)
			}
			on[h.Dialect] = on[h.Dialect] || s.Admitted()
		}
	}
	if len(dialects) == 0 {
		return Check{Verdict: Warn, Seen: "no answer tells a limit", Todo: "send RateLimit-Limit, -Remaining and -Reset, or RateLimit and RateLimit-Policy of the draft, so that clients slow down before they are refused"}, nil
	}
	slices.Sort(dialects)
	c := Check{Verdict: Good, Seen: "told as " + strings.Join(dialects, ", ")}
	for _, d := range dialects {
		if !on[d] {
			c.Verdict, c.Seen = Warn, c.Seen+"; "+d+" on refusals only"
			c.Todo = "send them on every answer: who is refused learns it too late"
		}
	}
	return c, nil
}

// remaining compares what was said to remain with what passed: shots that were
// sent one by one, each after the answer to the one before.
func (p *prober) remaining() (Check, error) {
	told, lies := 0, []string{}
	var before *Shot
	// By when they left: of a volley one may wait for its connection.
	shots := slices.SortedStableFunc(slices.Values(p.shots()), func(a, b Shot) int { return a.Sent.Compare(b.Sent) })
	for i := range shots {
		s := &shots[i]
		if before != nil && plain(s.Request) && !s.Sent.Before(before.Received) && alone(shots, i) {
			was, ok1 := left(before)
			is, ok2 := left(s)
			gap := s.Sent.Sub(before.Received)
			switch {
			case !ok1 || before.Denied() || was < 0:
			case s.Denied() && was > 0:
				told++
				lies = append(lies, fmt.Sprintf("it said that %d remain, and the next was refused", was))
			case s.Admitted() && ok2 && is > was && gap < 50*time.Millisecond && !p.gives(gap, is-was+1):
				told++
				lies = append(lies, fmt.Sprintf("%d remained, and after one more request %d", was, is))
			default:
				told++
			}
		}
		if before = nil; s.Status != 0 && plain(s.Request) && alone(shots, i) {
			before = s
		}
	}
	switch {
	case told == 0:
		return Check{Verdict: Unknown, Seen: "nothing is said of what remains, or nothing could be compared"}, nil
	case len(lies) > 0:
		return Check{Verdict: Bad, Seen: fmt.Sprintf("%d of %d times not: %s", len(lies), told, lies[0]), Todo: "tell what the limit that binds has left after this request"}, nil
	}
	return Check{Verdict: Good, Seen: fmt.Sprintf("it did, %d times", told)}, nil
}

// gives says whether the limit may have given back so many units meanwhile.
func (p *prober) gives(in time.Duration, units int64) bool {
	f := p.report.Finding
	if !f.Limit.Algorithm.Bucket() {
		return true // a window may have begun
	}
	return in.Seconds()*f.Units.High/max(f.Window.Low, 1e-9)+1 >= float64(units)
}

// alone says whether no other shot was under way while this one was.
func alone(shots []Shot, i int) bool {
	for j := max(0, i-300); j < min(len(shots), i+300); j++ {
		if j != i && shots[j].Sent.Before(shots[i].Received) && shots[i].Sent.Before(shots[j].Received) {
			return false
		}
	}
	return true
}

// left is the least that a shot says remains of requests.
func left(s *Shot) (least int64, ok bool) {
	for _, h := range s.Hints {
		if h.Unit == "requests" && h.Remaining >= 0 && (!ok || h.Remaining < least) {
			least, ok = h.Remaining, true
		}
	}
	return least, ok
}

// told is the time until a shot says that more passes: Retry-After.
func told(s *Shot) (time.Duration, bool) { return s.RetryAfter, s.Told }

// resetOf is the longest time until a shot says that more remains, of what is used
// up.
func resetOf(s *Shot) (longest time.Duration, ok bool) {
	for _, h := range s.Hints {
		if h.Unit == "requests" && h.Remaining == 0 && h.Reset >= 0 {
			longest, ok = max(longest, h.Reset), true
		}
	}
	return longest, ok
}

// retryAfter waits exactly as told, and a second less.
func (p *prober) retryAfter() (Check, error) { return p.waitAs("Retry-After", told) }

// reset does the same with what the rate-limit fields say.
func (p *prober) reset() (Check, error) { return p.waitAs("Reset", resetOf) }

func (p *prober) waitAs(name string, of func(*Shot) (time.Duration, bool)) (Check, error) {
	s, err := p.exhaust(nil)
	if err != nil {
		return Check{}, err
	}
	wait, ok := of(&s)
	if !ok {
		return Check{Verdict: Unknown, Seen: "a refusal does not tell it"}, nil
	}
	if err := p.session.Sleep(p.ctx, wait-now().Sub(s.Received)); err != nil {
		return Check{Verdict: Unknown, Seen: fmt.Sprintf("it says %v, which this probe cannot wait for", wait)}, err
	}
	after, err := p.session.Shoot(p.ctx, nil)
	if err != nil {
		return Check{}, err
	}
	if after.Denied() {
		return Check{Verdict: Bad, Seen: fmt.Sprintf("told to wait %v, and refused after exactly that", wait), Todo: "round " + name + " up, and count from the instant of the decision"}, nil
	}
	seen := fmt.Sprintf("after exactly %v, as told, the next request passes", wait)
	if wait < 2*time.Second {
		return Check{Verdict: Good, Seen: seen}, nil
	}
	if s, err = p.exhaust(nil); err != nil {
		return Check{}, err
	}
	if wait, ok = of(&s); !ok || wait < 2*time.Second {
		return Check{Verdict: Good, Seen: seen}, nil
	}
	// Rounding up to whole seconds may tell almost a second too much.
	early := wait - time.Second - 100*time.Millisecond
	if err := p.session.Sleep(p.ctx, early-now().Sub(s.Received)); err != nil {
		return Check{Verdict: Good, Seen: seen}, err
	}
	if after, err = p.session.Shoot(p.ctx, nil); err != nil {
		return Check{Verdict: Good, Seen: seen}, err
	}
	if after.Admitted() {
		return Check{Verdict: Warn, Seen: seen + fmt.Sprintf("; but told to wait %v, one passes after %v already", wait, early), Todo: "tell the least time after which the same request passes"}, nil
	}
	return Check{Verdict: Good, Seen: seen + "; a second earlier it is refused"}, nil
}
