package probe

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
)

// A simServer limits one key by the root's own step, at the end of a way that takes
// its time in each direction. It runs in a bubble of testing/synctest.
type simServer struct {
	mu      sync.Mutex
	key     *replayer
	rnd     *rand.Rand // for what leaves at one instant
	leaving time.Time
	seed    uint64

	there, back latency
	lose        float64 // the part of requests that is lost on the way back
	headers     func(d comporta.Taken, r *comporta.Rule) (hints []client.Hint, retry time.Duration, told bool)
	failAt      int // this request and all later ones fail
	asked       int
	phase       uint64
	decide      func(at time.Time) bool // in place of the root's step
	slow        time.Duration           // that what stands behind takes, one after the other
	busy        time.Time
}

type latency struct{ least, most time.Duration }

func (l latency) draw(r *rand.Rand) time.Duration {
	return l.least + time.Duration(r.Float64()*float64(l.most-l.least))
}

func newSimServer(l comporta.Limit, phase, seed uint64, there, back latency) *simServer {
	rule, err := l.Compile()
	if err != nil {
		panic(err)
	}
	return &simServer{key: newReplayer(rule, phase), seed: seed, there: there, back: back, phase: phase}
}

func (s *simServer) Send(ctx context.Context, _ *Request) Shot {
	shot := Shot{Sent: time.Now()}
	there, back, lost := s.way(shot.Sent)
	if err := sleep(ctx, there); err != nil {
		shot.Err = err
		return shot
	}
	s.mu.Lock()
	s.asked++
	failed := s.failAt > 0 && s.asked >= s.failAt
	var d comporta.Taken
	if s.decide != nil {
		d.Allowed = s.decide(time.Now())
	} else {
		d = s.key.take(comporta.InstantOf(time.Now()))
	}
	if d.Allowed && s.slow > 0 {
		if now := time.Now(); s.busy.Before(now) {
			s.busy = now
		}
		s.busy = s.busy.Add(s.slow)
		back += time.Until(s.busy)
	}
	s.mu.Unlock()
	if d.Allowed {
		back += d.Delay
	}
	if lost {
		back += 5 * time.Second
	}
	if err := sleep(ctx, back); err != nil {
		shot.Err = err
		return shot
	}
	switch {
	case lost:
		shot.Err = fmt.Errorf("lost")
		return shot
	case failed:
		shot.Status = http.StatusBadGateway
	case d.Allowed:
		shot.Status = http.StatusOK
	default:
		shot.Status = http.StatusTooManyRequests
	}
	if s.headers != nil {
		shot.Hints, shot.RetryAfter, shot.Told = s.headers(d, s.key.rule)
	}
	return shot
}

// way draws how long a request takes. All that leave at one instant draw from one
// row, so that whichever goroutine comes first, the same server sees the same.
func (s *simServer) way(sent time.Time) (there, back time.Duration, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sent.Equal(s.leaving) {
		s.leaving = sent
		s.rnd = rand.New(rand.NewPCG(s.seed, uint64(sent.UnixNano())))
	}
	return s.there.draw(s.rnd), s.back.draw(s.rnd), s.rnd.Float64() < s.lose
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A case of the random servers.
type simCase struct {
	seed        uint64
	limit       comporta.Limit
	phase       uint64
	there, back latency
	begin       time.Duration // how long after a whole second the probe begins
}

// randomCase draws limits 3 to 1000, windows 1 s to 1 min, each way up to 50 ms.
func randomCase(seed uint64) simCase {
	r := rand.New(rand.NewPCG(seed, 42))
	c := simCase{seed: seed, phase: r.Uint64(), begin: time.Duration(r.Int64N(int64(2 * time.Minute)))}
	l := &c.limit
	l.Algorithm = comporta.Algorithms()[r.IntN(5)]
	switch r.IntN(3) {
	case 0: // evenly
		l.Limit = 3 + r.Int64N(998)
	case 1: // small ones as often as large ones
		l.Limit = int64(math.Round(3 * math.Pow(1000.0/3, r.Float64())))
	default: // what people write
		l.Limit = []int64{3, 5, 10, 20, 30, 50, 60, 100, 200, 300, 500, 1000}[r.IntN(12)]
	}
	if r.IntN(2) == 0 {
		seconds := []int{1, 2, 5, 10, 15, 20, 30, 60}
		l.Window = time.Duration(seconds[r.IntN(len(seconds))]) * time.Second
	} else {
		l.Window = time.Duration(math.Pow(60, r.Float64())*1e6) * time.Microsecond
	}
	if l.Algorithm.Bucket() && r.IntN(2) == 0 {
		l.Burst = max(1, int64(float64(l.Limit)*math.Pow(2, r.Float64()*3-2))) // a quarter to twice
	}
	if !l.Algorithm.Bucket() && l.Algorithm != comporta.SlidingLog {
		l.Stagger = r.IntN(2) == 0
	}
	if r.IntN(4) == 0 {
		l.Charge = comporta.Attempts
	}
	way := func() latency {
		a, b := r.IntN(50_000), r.IntN(50_000)
		return latency{time.Duration(min(a, b)) * time.Microsecond, time.Duration(max(a, b)) * time.Microsecond}
	}
	c.there, c.back = way(), way()
	return c
}

func (c simCase) server() *simServer {
	return newSimServer(c.limit, c.phase, c.seed, c.there, c.back)
}
