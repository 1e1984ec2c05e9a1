package chaos

import (
	"errors"
	"fmt"
	"testing"

	"github.com/comporta/comporta/internal/redistest"
)

// clusterFails are failures of a part of a cluster. The others serve on, so
// that no gateway finds the store down.
func clusterFails(t *testing.T, r *report) {
	c := redistest.StartCluster(t)
	t.Run("cases", func(t *testing.T) { clusterCases(t, c) })
	f := startFleet(t, c.URL(), "chaos", deadline)
	// A failure's client that has used half of its limit, by the failure's number.
	slot := func(number int) int {
		identity := "address:" + halfOf(number)
		return c.Slot(fmt.Sprintf("chaos:{%d:%s}", len(identity), identity))
	}
	var finish func()
	var old *redistest.Server
	r.suffer(t, f, []failure{
		{
			name: "a cluster's slot moves", bound: exactly, most: limit,
			strike: func() {
				from := c.Primary(slot(0))
				to := c.Nodes[0]
				if to == from {
					to = c.Nodes[1]
				}
				finish = c.BeginMove(slot(0), to)
			},
			mend: func() { finish() },
		},
		{
			name: "a cluster's primary killed, its replica follows", bound: trailing, most: limit + members*share, trails: true,
			strike: func() {
				old = c.Primary(slot(1))
				follow(t, old, []*redistest.Server{c.Replica(slot(1))})
				old.Kill()
			},
			mend: func() {
				redistest.Until(t, patient, func() error {
					if c.Primary(slot(1)) == old {
						return errors.New("nobody follows the primary that was killed")
					}
					return nil
				})
			},
		},
	})
}
