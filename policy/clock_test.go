package policy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/comporta/comporta"
)

// The engine's own clock is the wall's, also where that was set meanwhile.
func TestTheWallIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWall()
		for _, pause := range []time.Duration{0, 1, time.Millisecond, time.Second, time.Hour, 500 * time.Millisecond} {
			time.Sleep(pause)
			if got, want := w.now(), comporta.InstantOf(time.Now()); got != want {
				t.Errorf("after %v: %v, want %v", pause, got, want)
			}
		}
		const set = 1_000_000 // as if the wall's clock had been set by a second since
		w.ahead.Add(set)
		time.Sleep(time.Millisecond)
		if got, want := w.now(), comporta.InstantOf(time.Now())+set; got != want {
			t.Errorf("within a second it goes on by the monotonic clock: %v, want %v", got, want)
		}
		time.Sleep(time.Second)
		if got, want := w.now(), comporta.InstantOf(time.Now()); got != want {
			t.Errorf("after a second: %v, want the wall's, %v", got, want)
		}
	})
}
