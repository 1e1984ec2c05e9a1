package jwt

import (
	"context"
	"time"
)

// Run refreshes the keys of a URL until ctx ends: at once where there are none, then
// every Refresh, and after a failure every [Ask]; also when a token names an unknown key.
// With a file it returns at once. Call it once.
func (s *Source) Run(ctx context.Context) {
	if s.o.URL == nil {
		return
	}
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
	defer s.stop()
	wait := time.Duration(0)
	if s.ring.Load() != nil {
		wait = s.o.Refresh
	}
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-s.wake:
			timer.Stop()
		}
		waiting := s.takeOff()
		err := s.Load(ctx)
		s.land(waiting)
		wait = s.o.Refresh
		if err != nil {
			wait = min(wait, Ask)
			if s.o.OnError != nil && ctx.Err() == nil {
				s.o.OnError(err)
			}
		}
	}
}

// refetched has Run ask for the keys again, unless that was so a short while ago, and
// waits for it. It says whether they were asked for.
func (s *Source) refetched(ctx context.Context) bool {
	flight := s.board()
	if flight == nil {
		return false
	}
	select {
	case <-flight:
		return true
	case <-ctx.Done():
		return false
	}
}

// board is the asking that is under way, or a new one if it is time for one.
func (s *Source) board() chan struct{} {
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight != nil {
		return s.flight
	}
	if since := now.Sub(s.asked); !s.running || since >= 0 && since < Ask {
		return nil
	}
	s.asked, s.flight = now, make(chan struct{})
	select {
	case s.wake <- struct{}{}:
	default: // an earlier Run ended before it heard of the last one
	}
	return s.flight
}

// takeOff is the asking that Run begins with: nil where nobody waits.
func (s *Source) takeOff() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.wake: // a timer was quicker
	default:
	}
	return s.flight
}

// land ends an asking for those who wait for it. One that began while the keys were
// being read already is not ended with that reading.
func (s *Source) land(flight chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if flight != nil && s.flight == flight {
		close(flight)
		s.flight = nil
	}
}

// stop ends Run: nobody waits for it any more.
func (s *Source) stop() {
	s.mu.Lock()
	s.running = false
	flight := s.flight
	s.mu.Unlock()
	s.land(flight)
}
