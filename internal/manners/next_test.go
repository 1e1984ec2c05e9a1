package manners

import (
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	told := func(d time.Duration) Answer { return Answer{Kind: Refused, Told: true, Wait: d, Retryable: true} }
	any := Try{Attempts: 1, Repeat: true, Resend: true}
	for _, c := range []struct {
		name string
		try  Try
		a    Answer
		wait time.Duration
		why  Why
	}{
		{"as told", any, told(7 * time.Second), 7 * time.Second, None},
		{"told nothing", any, Answer{Kind: Refused, Retryable: true}, 500 * time.Millisecond, None},
		{"told zero", any, told(0), 500 * time.Millisecond, None},
		{"told less than the backoff", any, told(200 * time.Millisecond), 500 * time.Millisecond, None},
		{"the second time", Try{Attempts: 2, Repeat: true}, Answer{Kind: Failed, Retryable: true}, time.Second, None},
		{"as long as it may be", any, told(time.Minute), time.Minute, None},
		{"too long", any, told(time.Minute + 1), 0, TooLong},
		{"for ever", any, told(1<<63 - 1), 0, TooLong},
		{"past the deadline", Try{Attempts: 1, Repeat: true, Deadline: start.Add(7 * time.Second)}, told(7 * time.Second), 0, Late},
		{"in time", Try{Attempts: 1, Repeat: true, Deadline: start.Add(7*time.Second + 1)}, told(7 * time.Second), 7 * time.Second, None},
		{"used up", Try{Attempts: 3, Repeat: true}, told(time.Second), 0, Attempts},
		{"a refusal, resent", Try{Attempts: 1, Resend: true}, told(time.Second), time.Second, None},
		{"a refusal, not to be resent", Try{Attempts: 1}, told(time.Second), 0, Unsafe},
		{"it may have acted", Try{Attempts: 1, Resend: true}, Answer{Kind: Overloaded, Retryable: true}, 0, Unsafe},
		{"it says that it may come again", Try{Attempts: 1, Resend: true}, Answer{Kind: Overloaded, Retryable: true, Word: Again}, 500 * time.Millisecond, None},
		{"it says never", any, Answer{Kind: Refused, Retryable: true, Word: Never}, 0, Forbidden},
		{"it would fail again", any, Answer{Kind: Failed}, 0, Final},
		{"it gave up", any, Answer{Kind: Cancelled, Retryable: true}, 0, Final},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := NewHost(config()).Lane()
			send(l, start, c.a)
			wait, why := l.Next(start, &c.try, &c.a)
			if wait != c.wait || why != c.why {
				t.Errorf("waits %v (%d), want %v (%d)", wait, why, c.wait, c.why)
			}
		})
	}
}

// Where nothing was told, the gate is shut for the wait of the one that was
// refused; many that were refused together are one refusal.
func TestUntoldRefusalsShutTheGate(t *testing.T) {
	l := NewHost(config()).Lane()
	refused := Answer{Kind: Refused, Retryable: true}
	var sent []Sent
	for range 10 {
		sent = append(sent, l.Leave(start, false))
	}
	for _, s := range sent {
		l.Back(start, s, &refused)
		l.Next(start, &Try{Attempts: 1, Resend: true}, &refused)
	}
	wantTurn(t, l, start, 500*time.Millisecond, Gate)
	now := start.Add(500 * time.Millisecond)
	send(l, now, refused)
	l.Next(now, &Try{Attempts: 1}, &refused) // not sent again, and yet the gate learns
	wantTurn(t, l, now, time.Second, Gate)
}

// Jitter on what the server told goes upward only, and not past a deadline that
// the told time keeps.
func TestJitterOnToldTimesGoesUpward(t *testing.T) {
	conf := config()
	conf.Backoff.Jitter = Full
	conf.Percent = -1
	longest := time.Duration(0)
	for range 1000 {
		l := NewHost(conf).Lane()
		a := Answer{Kind: Refused, Told: true, Wait: 2 * time.Second, Retryable: true}
		send(l, start, a)
		wait, why := l.Next(start, &Try{Attempts: 1, Repeat: true}, &a)
		if why != None || wait < a.Wait || wait > a.Wait+500*time.Millisecond {
			t.Fatalf("waits %v (%d)", wait, why)
		}
		longest = max(longest, wait)
	}
	if longest < 2400*time.Millisecond {
		t.Errorf("the longest of 1000 waits is %v: no jitter", longest)
	}
}

func TestBudget(t *testing.T) {
	h := NewHost(config())
	l := h.Lane()
	failed := Answer{Kind: Failed, Retryable: true}
	retries := 0
	for range 1000 {
		send(l, start, failed)
		if _, why := l.Next(start, &Try{Attempts: 1, Repeat: true}, &failed); why == None {
			retries++
		} else if why != Spent {
			t.Fatal(why)
		}
	}
	if retries != 109 && retries != 110 {
		t.Errorf("%d retries of 1000 requests, want 10 and a tenth", retries)
	}
	// A lane of the same host has the same budget, and each second gives one.
	now := start.Add(3*time.Second + time.Millisecond)
	other := h.Lane()
	for i := range 4 {
		_, why := other.Next(now, &Try{Attempts: 1, Repeat: true}, &failed)
		if (why == None) != (i < 3) {
			t.Errorf("retry %d three seconds later: %d", i+1, why)
		}
	}
}

func TestThrottle(t *testing.T) {
	conf := config()
	conf.K = 2
	h := NewHost(conf)
	l := h.Lane()
	play := func(now time.Time, n int, kind Kind) (refused int) {
		for range n {
			if h.Throttled(now) {
				refused++
				continue
			}
			send(l, now, Answer{Kind: kind})
		}
		return refused
	}
	if n := play(start, 1000, Accepted); n != 0 {
		t.Errorf("%d of 1000 refused to a server that is well", n)
	}
	down := start.Add(3 * time.Minute)
	if n := play(down, 1000, Overloaded); n < 800 || n > 950 {
		t.Errorf("%d of 1000 refused to a server that accepts none, want about 90 %%", n)
	}
	well := down.Add(time.Minute)
	play(well, 5000, Accepted)
	if n := play(well.Add(2*time.Minute), 1000, Accepted); n != 0 {
		t.Errorf("%d of 1000 refused when the server is well again", n)
	}
	// At half accepted, K = 2 refuses none.
	half := well.Add(10 * time.Minute)
	refused := 0
	for i := range 1000 {
		refused += play(half, 1, []Kind{Accepted, Refused}[i%2])
	}
	if refused > 20 {
		t.Errorf("%d of 1000 refused to a server that accepts every second one", refused)
	}
}
