package chaos

import (
	"testing"

	"github.com/comporta/comporta/internal/redistest"
)

func TestSentinel(t *testing.T) {
	s := redistest.StartSentinel(t)
	f := startFleet(t, s.URL(), "t", deadline)
	var old *redistest.Server
	x := failure{most: 2*limit + members*share, down: true,
		strike: func() { old = s.Primary(); old.Kill() },
		mend:   func() { s.AwaitFailover(old) },
	}
	t.Run("primary killed", func(t *testing.T) { t.Logf("%+v", f.suffer(t, 0, x)) })
}
