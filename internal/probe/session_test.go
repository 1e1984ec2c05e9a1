package probe

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta/client"
)

// senderFunc answers after a while, or when the context ends.
type senderFunc func(n int) (status int, after time.Duration)

type countingSender struct {
	answer senderFunc
	n      atomic.Int64
}

func (s *countingSender) Send(ctx context.Context, _ *Request) Shot {
	status, after := s.answer(int(s.n.Add(1)))
	select {
	case <-time.After(after):
		return Shot{Status: status}
	case <-ctx.Done():
		return Shot{Err: ctx.Err()}
	}
}

func always(status int, after time.Duration) *countingSender {
	return &countingSender{answer: func(int) (int, time.Duration) { return status, after }}
}

func TestASessionNeverPassesItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := always(200, time.Millisecond)
		told := 0
		s := NewSession(server, Budget{Requests: 7, Time: time.Minute}, func(Shot) { told++ })
		if _, err := s.Shoot(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		shots, err := s.Volley(t.Context(), 10, nil)
		if len(shots) != 6 || !errors.Is(err, ErrRequests) {
			t.Errorf("a volley of 10 with 6 left: %d shots, %v", len(shots), err)
		}
		if _, err := s.Shoot(t.Context(), nil); !errors.Is(err, ErrRequests) {
			t.Errorf("a shot after the last: %v", err)
		}
		if n := server.n.Load(); n != 7 || len(s.Shots()) != 7 || told != 7 {
			t.Errorf("%d sent, %d kept, %d told, want 7 each", n, len(s.Shots()), told)
		}
	})
}

func TestASessionNeverPassesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSession(always(200, 3*time.Second), Budget{Requests: 100, Time: 10 * time.Second}, nil)
		begun := time.Now()
		if err := s.Sleep(t.Context(), 11*time.Second); !errors.Is(err, ErrTime) || time.Since(begun) != 0 {
			t.Errorf("a sleep past the end: %v after %v, want %v at once", err, time.Since(begun), ErrTime)
		}
		if err := s.Sleep(t.Context(), 8*time.Second); err != nil {
			t.Error(err)
		}
		shot, err := s.Shoot(t.Context(), nil)
		if !errors.Is(err, ErrTime) || shot.Err == nil || shot.Admitted() || shot.Denied() {
			t.Errorf("an answer past the end: %+v, %v", shot, err)
		}
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("the session took %v of 10 s", took)
		}
		if _, err := s.Shoot(t.Context(), nil); !errors.Is(err, ErrTime) {
			t.Errorf("a shot past the end: %v", err)
		}
	})
}

func TestASessionStopsWhereTheServerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &countingSender{answer: func(n int) (int, time.Duration) {
			if n == 3 {
				return 503, time.Millisecond
			}
			return 200, time.Millisecond
		}}
		s := NewSession(server, Budget{Requests: 100, Time: time.Minute}, nil)
		for i := range 4 {
			_, err := s.Shoot(t.Context(), nil)
			if (i >= 2) != errors.Is(err, ErrServer) {
				t.Errorf("shot %d: %v", i+1, err)
			}
		}
		if shots, err := s.Volley(t.Context(), 5, nil); len(shots) != 0 || !errors.Is(err, ErrServer) {
			t.Errorf("a volley afterwards: %d shots, %v", len(shots), err)
		}
		if n := server.n.Load(); n != 3 || s.Left() != (Budget{}) {
			t.Errorf("%d sent, %+v left", n, s.Left())
		}
	})
}

func TestAVolleyIsSentAtOnceAndKeptInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &countingSender{answer: func(n int) (int, time.Duration) {
			return 200 + n, time.Duration(10-n) * time.Second // the last comes back first
		}}
		s := NewSession(server, Budget{Requests: 100, Time: time.Minute}, nil)
		shots, err := s.Volley(t.Context(), 5, &Request{Identity: 1})
		if err != nil || len(shots) != 5 {
			t.Fatal(len(shots), err)
		}
		for i, kept := range s.Shots() {
			if kept.Status != shots[i].Status || !kept.Sent.Equal(shots[0].Sent) || kept.Request.Identity != 1 {
				t.Errorf("shot %d: kept %+v, came back %+v", i, kept, shots[i])
			}
		}
	})
}

func TestWhatIsADenial(t *testing.T) {
	for _, c := range []struct {
		shot             Shot
		denied, admitted bool
	}{
		{Shot{Status: 200}, false, true},
		{Shot{Status: 404}, false, true},
		{Shot{Status: http.StatusTooManyRequests}, true, false},
		{Shot{Status: 420}, true, false},
		{Shot{Status: 403}, false, true},
		{Shot{Status: 403, Told: true}, true, false},
		{Shot{Status: 403, Hints: []client.Hint{{Remaining: 0}}}, true, false},
		{Shot{Status: 403, Hints: []client.Hint{{Remaining: 3}}}, false, true},
		{Shot{Status: 503, Told: true}, false, false},
		{Shot{Err: context.DeadlineExceeded}, false, false},
	} {
		if got := c.shot.Denied(); got != c.denied {
			t.Errorf("%+v: denied %v", c.shot, got)
		}
		if got := c.shot.Admitted(); got != c.admitted {
			t.Errorf("%+v: admitted %v", c.shot, got)
		}
	}
}
