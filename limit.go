package comporta

import (
	"fmt"
	"time"
)

// The ranges in which every answer is exact.
const (
	// MaxUnits is the largest limit and burst.
	MaxUnits = 1_000_000_000_000
	// MaxCost is the largest cost that is decided.
	MaxCost = 1<<53 - 1
	// MinWindow and MaxWindow bound a window; MaxWindow bounds max_wait too.
	MinWindow = time.Millisecond
	MaxWindow = 400 * 24 * time.Hour
	// MaxFill is the longest time in which a bucket may fill, B·W / L: 100 years.
	MaxFill = 36525 * 24 * time.Hour
	// MaxStep is how far a clock may step back before it is a clock fault: the
	// state then goes on from the earlier instant.
	MaxStep = 10 * time.Second
)

// A Limit is what a person writes: an algorithm with its numbers. [Limit.Compile]
// checks it. The zero Limit is no limit at all and does not compile; write
// Limit{Unlimited: true} for one that allows everything.
type Limit struct {
	// Name is the limit's name, a part of every key that it counts under. Changing
	// the numbers of a limit under the same name keeps what was used. A [Limiter]
	// names an unnamed limit "default".
	Name string
	// Algorithm decides; a token bucket unless said.
	Algorithm Algorithm
	// Limit is L: units per Window. 0 denies all.
	Limit int64
	// Window is W, from 1 ms to 400 days, in whole microseconds; 0 for a quota.
	Window time.Duration
	// Burst is B, what a bucket holds; 0 means Limit. Buckets only.
	Burst int64
	// MaxWait lets a token bucket allow what is over it by waiting at most so long.
	MaxWait time.Duration
	// Calendar makes the limit a quota: a fixed window over a calendar period.
	Calendar *Calendar
	// Charge says which requests are charged.
	Charge Charge
	// Stagger moves each key's windows by an offset of its own, so that not all
	// start at once. Fixed window and sliding counter only, no quotas.
	Stagger bool
	// Unlimited allows everything; no number counts then.
	Unlimited bool
	// Lease lets an instance take units ahead; nil asks the store each time.
	Lease *Lease
}

// A LimitError says what is wrong with a limit, and in which field.
type LimitError struct {
	// Field is the word for it in a policy file: limit, burst, algorithm,
	// max_wait, charge, stagger, lease or quota.
	Field string
	// Problem says what is wrong and what to do.
	Problem string
}

func (e *LimitError) Error() string { return e.Field + ": " + e.Problem }

func wrong(field, format string, args ...any) error {
	return &LimitError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Compile checks the limit and makes it a rule: valid because it exists. The
// error is a *LimitError.
func (l Limit) Compile() (*Rule, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	return newRule(l), nil
}

func (l Limit) check() error {
	if int(l.Algorithm) >= len(algorithms) {
		return wrong("algorithm", "unknown: %v", l.Algorithm)
	}
	if int(l.Charge) >= len(charges) {
		return wrong("charge", "unknown: %v", l.Charge)
	}
	if err := l.checkLease(); err != nil {
		return err
	}
	if l.Unlimited {
		return l.checkUnlimited()
	}
	if l.Limit < 0 || l.Limit > MaxUnits {
		return wrong(l.field(), "%d units are out of range: from 0 to 1_000_000_000_000 (10^12)", l.Limit)
	}
	if l.Calendar != nil {
		return l.checkQuota()
	}
	if err := checkDuration("limit", "a window", l.Window, MinWindow); err != nil {
		return err
	}
	if l.Stagger && l.Algorithm != FixedWindow && l.Algorithm != SlidingCounter {
		return wrong("stagger", "is for fixed_window and sliding_counter only, not %v: the others have no common start to spread", l.Algorithm)
	}
	if l.Charge == Failures && l.Algorithm == LeakyBucket {
		return wrong("charge", "failures cannot be given back to a leaky_bucket, whose places others already stand behind: use a token_bucket")
	}
	if err := l.checkBurst(); err != nil {
		return err
	}
	return l.checkMaxWait()
}

func (l Limit) field() string {
	if l.Calendar != nil {
		return "quota"
	}
	return "limit"
}

func checkDuration(field, what string, d, least time.Duration) error {
	if d < least || d > MaxWindow {
		return wrong(field, "%s of %v is out of range: from %v to 400 days", what, d, least)
	}
	if d%time.Microsecond != 0 {
		return wrong(field, "%s of %v is not a whole number of microseconds", what, d)
	}
	return nil
}

func (l Limit) checkUnlimited() error {
	switch {
	case l.Limit != 0 || l.Window != 0 || l.Burst != 0 || l.Calendar != nil:
		return wrong(l.field(), "unlimited takes no numbers")
	case l.MaxWait != 0:
		return wrong("max_wait", "an unlimited limit has nothing to wait for")
	case l.Stagger:
		return wrong("stagger", "an unlimited limit has no windows")
	}
	return nil
}

func (l Limit) checkQuota() error {
	switch {
	case l.Algorithm != FixedWindow:
		return wrong("algorithm", "a quota is a fixed_window, not a %v", l.Algorithm)
	case l.Window != 0:
		return wrong("quota", "a quota's window is its calendar period, not a duration")
	case l.Burst != 0:
		return wrong("burst", "a quota takes no burst: burst is for the two buckets")
	case l.MaxWait != 0:
		return wrong("max_wait", "is for a token_bucket only, not for a quota")
	case l.Stagger:
		return wrong("stagger", "is not for quotas: their windows start where the calendar says")
	}
	return l.Calendar.check()
}

func (l Limit) checkBurst() error {
	switch {
	case l.Burst == 0:
	case !l.Algorithm.Bucket():
		return wrong("burst", "is for token_bucket and leaky_bucket only, not for %v", l.Algorithm)
	case l.Burst < 0 || l.Burst > MaxUnits:
		return wrong("burst", "%d is out of range: from 1 to 1_000_000_000_000 (10^12)", l.Burst)
	case l.Limit == 0:
		return wrong("burst", "a limit of 0 denies all and takes no burst")
	}
	if l.Algorithm.Bucket() && l.Limit > 0 {
		fill := mul(uint64(l.burst()), uint64(l.Window/time.Microsecond))
		most := mul(uint64(MaxFill/time.Microsecond), uint64(l.Limit))
		if most.less(fill) {
			return wrong("burst", "a bucket of %d that fills by %d per %v takes over 100 years to fill", l.burst(), l.Limit, l.Window)
		}
	}
	return nil
}

func (l Limit) checkMaxWait() error {
	if l.MaxWait == 0 {
		return nil
	}
	if l.Algorithm != TokenBucket {
		return wrong("max_wait", "is for a token_bucket only, not for a %v", l.Algorithm)
	}
	if l.Charge == Attempts {
		return wrong("max_wait", "does not go with charge: attempts")
	}
	return checkDuration("max_wait", "a wait", l.MaxWait, time.Microsecond)
}

// burst is what a full bucket holds.
func (l Limit) burst() int64 {
	if l.Burst == 0 {
		return l.Limit
	}
	return l.Burst
}
