package sim

import (
	"time"

	"github.com/comporta/comporta"
)

// instant is a time after the start.
func instant(d time.Duration) comporta.Instant { return comporta.Instant(0).Add(d) }

// schedule is the virtual clock: what happens when, in order of time, and of
// planning at the same instant.
type schedule struct {
	now    comporta.Instant
	number int
	heap   []event
}

type event struct {
	at     comporta.Instant
	number int
	do     func()
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.number < o.number }

// at plans something; what lies in the past happens next.
func (s *schedule) at(at comporta.Instant, do func()) {
	s.number++
	s.heap = append(s.heap, event{max(at, s.now), s.number, do})
	for i := len(s.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if s.heap[up].before(s.heap[i]) {
			break
		}
		s.heap[up], s.heap[i] = s.heap[i], s.heap[up]
		i = up
	}
}

// runUntil lets all that is planned up to an instant happen.
func (s *schedule) runUntil(end comporta.Instant) {
	for len(s.heap) > 0 && s.heap[0].at <= end {
		s.next()
	}
	s.now = end
}

// next lets the first that is planned happen. There is one.
func (s *schedule) next() {
	first := s.heap[0]
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap[last] = event{}
	s.heap = s.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if s.heap[child].before(s.heap[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		s.heap[i], s.heap[least] = s.heap[least], s.heap[i]
		i = least
	}
	s.now = first.at
	first.do()
}
