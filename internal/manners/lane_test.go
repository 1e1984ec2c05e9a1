package manners

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_800_000_000, 0)

func config() *Config {
	return &Config{
		Attempts: 3, MaxWait: time.Minute, Percent: 10, Reserve: 10,
		Backoff: Backoff{Base: 500 * time.Millisecond, Cap: 30 * time.Second, Jitter: NoJitter},
		Random:  rand.New(rand.NewPCG(1, 1)).Float64,
	}
}

// send is one attempt that is answered at once.
func send(l *Lane, now time.Time, a Answer) {
	l.Back(now, l.Leave(now, false), &a)
}

func wantTurn(t *testing.T, l *Lane, now time.Time, after time.Duration, why Why) {
	t.Helper()
	if turn := l.Ready(now); turn.At.Sub(now) != after || turn.Why != why {
		t.Errorf("at %v: ready after %v (%d), want %v (%d)", now.Sub(start), turn.At.Sub(now), turn.Why, after, why)
	}
}

func TestANewLaneIsOpenToAFewAtOnce(t *testing.T) {
	l := NewHost(config()).Lane()
	for range startMost {
		wantTurn(t, l, start, 0, None)
		l.Leave(start, false)
	}
	wantTurn(t, l, start, startEvery, Start)
	l.Back(start, Sent{1}, &Answer{})
	wantTurn(t, l, start, 0, None)
}

func TestGateHoldsAndOnlyMovesLater(t *testing.T) {
	l := NewHost(config()).Lane()
	first, second := l.Leave(start, false), l.Leave(start, false)
	l.Back(start, second, &Answer{Kind: Refused, Told: true, Wait: 10 * time.Second})
	wantTurn(t, l, start, 10*time.Second, Gate)
	// An older word, that comes later, does not open it.
	l.Back(start.Add(time.Second), first, &Answer{Kind: Refused, Told: true, Wait: 2 * time.Second})
	wantTurn(t, l, start.Add(time.Second), 9*time.Second, Gate)
	send(l, start.Add(2*time.Second), Answer{Kind: Accepted})
	wantTurn(t, l, start.Add(2*time.Second), 8*time.Second, Gate)

	// On opening they leave one by one, and closer and closer while all goes well.
	now := start.Add(10 * time.Second)
	wantTurn(t, l, now, 0, None)
	send(l, now, Answer{})
	// 20 a second, 21 after the one that passed behind the gate, 22 now.
	wantTurn(t, l, now, 45_454_544, Spacing)
	for range 100 {
		now = l.Ready(now).At
		send(l, now, Answer{})
	}
	if took := now.Sub(start.Add(10 * time.Second)); took < 1600*time.Millisecond || took > 2*time.Second {
		t.Errorf("100 more take %v", took) // the sum of 1/22 to 1/121
	}
	for range 10_000 {
		now = l.Ready(now).At
		send(l, now, Answer{})
	}
	wantTurn(t, l, now, 0, None)
}

func TestSpacingKeepsTheServersRate(t *testing.T) {
	l := NewHost(config()).Lane()
	rate := []Hint{{Limit: 10, Remaining: 0, Reset: time.Second, Window: 5 * time.Second}}
	send(l, start, Answer{Hints: rate})
	send(l, start, Answer{Kind: Refused, Told: true, Wait: time.Second, Hints: rate})
	now := start.Add(time.Second)
	wantTurn(t, l, now, 0, None)
	l.Leave(now, true)
	wantTurn(t, l, now, 500*time.Millisecond, Spacing)
}

func TestPace(t *testing.T) {
	hint := func(limit, left int64, reset time.Duration) Answer {
		return Answer{Hints: []Hint{{Policy: "p", Limit: limit, Remaining: left, Reset: reset, Window: -1}}}
	}
	for _, c := range []struct {
		name  string
		pace  Pace
		said  Answer
		after time.Duration
	}{
		{"gentle is free above the half", Gentle, hint(100, 51, time.Minute), 0},
		{"gentle spreads the rest", Gentle, hint(100, 50, 10*time.Second), 200 * time.Millisecond},
		{"gentle keeps the policy's rate above the eighth", Gentle, Answer{Hints: []Hint{{Limit: 100, Remaining: 50, Reset: 10 * time.Second, Window: time.Second}}}, 10 * time.Millisecond},
		{"and spreads below it", Gentle, Answer{Hints: []Hint{{Limit: 100, Remaining: 12, Reset: 6 * time.Second, Window: time.Second}}}, 500 * time.Millisecond},
		{"gentle never stalls a day's quota", Gentle, hint(1000, 100, 12*time.Hour), time.Second},
		{"strict spreads all", Strict, hint(100, 100, 10*time.Second), 100 * time.Millisecond},
		{"free does not look", Free, hint(100, 0, 10*time.Second), 0},
		{"nothing remains", Gentle, hint(100, 0, 7*time.Second), 7 * time.Second},
		{"a hostile reset is asked about", Strict, hint(100, 0, 24*365*time.Hour), probeEvery},
		{"a limit that is not said is the most seen", Gentle, hint(-1, 100, 10*time.Second), 0},
		{"tokens do not pace requests", Strict, Answer{Hints: []Hint{{Other: true, Limit: 100, Remaining: 1, Reset: time.Minute}}}, 0},
		{"but when none remain", Gentle, Answer{Hints: []Hint{{Other: true, Limit: 100, Remaining: 0, Reset: time.Minute}}}, time.Minute},
		{"nothing said of the reset", Strict, hint(100, 0, -1), 0},
		{"nothing said of what remains", Strict, hint(100, -1, time.Minute), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := config()
			conf.Pace = c.pace
			l := NewHost(conf).Lane()
			send(l, start, c.said)
			why := Pacing
			if c.after == 0 {
				why = None
			}
			wantTurn(t, l, start, c.after, why)
		})
	}
}

func TestWhatIsUnderWayCounts(t *testing.T) {
	conf := config()
	conf.Pace = Strict
	l := NewHost(conf).Lane()
	old := l.Leave(start, false)
	for range 4 {
		l.Leave(start, false)
	}
	sixth := l.Leave(start, false)
	l.Back(start, sixth, &Answer{Hints: []Hint{{Limit: 10, Remaining: 7, Reset: 10 * time.Second}}})
	// Five are under way, two are left.
	wantTurn(t, l, start, 5*time.Second, Pacing)
	// What an older attempt knew is out of date.
	l.Back(start, old, &Answer{Hints: []Hint{{Limit: 10, Remaining: 9, Reset: 20 * time.Second}}})
	wantTurn(t, l, start, 5*time.Second, Pacing)
	l.Leave(start, false)
	wantTurn(t, l, start, 10*time.Second, Pacing)
	l.Leave(start, false)
	wantTurn(t, l, start, 10*time.Second, Pacing) // until the reset
}

// Whatever the answers, in whatever order: nothing is ready before the latest
// time that was told, up to a day.
func TestNothingLeavesBeforeItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conf := config()
		conf.Pace = Pace(rapid.IntRange(0, 2).Draw(t, "pace"))
		conf.Backoff.Jitter = Jitter(rapid.IntRange(0, int(NoJitter)).Draw(t, "jitter"))
		l := NewHost(conf).Lane()
		now, told := start, start
		var under []Sent
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "pass")))
			if turn := l.Ready(now); turn.At.Before(told) || turn.At.Before(now) {
				t.Fatalf("ready at %v, told %v", turn.At.Sub(start), told.Sub(start))
			}
			if len(under) == 0 || rapid.Bool().Draw(t, "leave") {
				under = append(under, l.Leave(now, rapid.Bool().Draw(t, "again")))
				continue
			}
			i := rapid.IntRange(0, len(under)-1).Draw(t, "which")
			a := Answer{
				Kind: Kind(rapid.IntRange(0, int(Cancelled)).Draw(t, "kind")), Retryable: true,
				Told: rapid.Bool().Draw(t, "told"), Word: Word(rapid.IntRange(0, 2).Draw(t, "word")),
			}
			if a.Told {
				a.Wait = time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "wait"))
			}
			if rapid.Bool().Draw(t, "hints") {
				a.Hints = []Hint{{
					Limit: rapid.Int64Min(-1).Draw(t, "limit"), Remaining: rapid.Int64Min(-1).Draw(t, "remaining"),
					Reset: time.Duration(rapid.Int64Min(-1).Draw(t, "reset")), Window: time.Duration(rapid.Int64Min(-1).Draw(t, "window")),
				}}
			}
			l.Back(now, under[i], &a)
			under = append(under[:i], under[i+1:]...)
			if a.Told && (a.Kind == Refused || a.Kind == Overloaded) {
				told = Later(told, now.Add(min(a.Wait, longestGate)))
			}
			if a.Kind == Accepted || a.Kind == Cancelled {
				continue
			}
			try := Try{Attempts: 1, Repeat: rapid.Bool().Draw(t, "repeat"), Resend: true, Deadline: start.Add(time.Minute)}
			wait, why := l.Next(now, &try, &a)
			if why != None {
				continue
			}
			if a.Told && wait < a.Wait || wait < leastWait || a.Wait > conf.MaxWait || !now.Add(wait).Before(try.Deadline) {
				t.Fatalf("waits %v after being told %v", wait, a.Wait)
			}
		}
	})
}

func TestIdle(t *testing.T) {
	l := NewHost(config()).Lane()
	if !l.Idle(start) {
		t.Error("a new lane is not idle")
	}
	sent := l.Leave(start, false)
	if l.Idle(start) {
		t.Error("idle with an attempt under way")
	}
	l.Back(start, sent, &Answer{Kind: Refused, Told: true, Wait: time.Minute})
	if l.Idle(start.Add(59 * time.Second)) {
		t.Error("idle behind a gate")
	}
	if !l.Idle(start.Add(2 * time.Minute)) {
		t.Error("not idle long after the gate")
	}
}
