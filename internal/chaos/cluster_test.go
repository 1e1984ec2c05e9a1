package chaos

import (
	"strconv"
	"testing"

	"github.com/comporta/comporta/internal/redistest"
)

func TestCluster(t *testing.T) {
	c := redistest.StartCluster(t)
	f := startFleet(t, c.URL(), "t", deadline)
	slot := func(client string) int {
		return c.Slot("t:{" + strconv.Itoa(len("address:"+client)) + ":address:" + client + "}")
	}
	half := "198.18.0.1" // the client of the first scenario that has used half of its limit
	var finish func()
	t.Run("a slot moved", func(t *testing.T) {
		at := slot(half)
		to := c.Nodes[0]
		if c.Primary(at) == to {
			to = c.Nodes[1]
		}
		t.Logf("%+v", f.suffer(t, 0, failure{most: limit,
			strike: func() { finish = c.BeginMove(at, to) }, mend: func() { finish() },
		}))
	})
	t.Run("a primary killed", func(t *testing.T) {
		at := slot("198.18.1.1")
		old := c.Primary(at)
		t.Logf("%+v", f.suffer(t, 1, failure{most: 2*limit + members*share,
			strike: old.Kill, mend: func() { awaitPrimary(t, c, at, old) },
		}))
	})
}

func awaitPrimary(t *testing.T, c *redistest.Cluster, slot int, old *redistest.Server) {
	redistest.Until(t, patient, func() error {
		if c.Primary(slot) == old {
			return errOld
		}
		return nil
	})
}
