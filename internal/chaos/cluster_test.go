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
	var slot int
	aim := func(client string) {
		identity := "address:" + client
		slot = c.Slot(fmt.Sprintf("chaos:{%d:%s}", len(identity), identity))
	}
	var finish func()
	var old *redistest.Server
	r.suffer(t, f, []failure{
		{
			name: "a cluster's slot moves", bound: exactly, most: limit, aim: aim,
			strike: func() {
				from := c.Primary(slot)
				to := c.Nodes[0]
				if to == from {
					to = c.Nodes[1]
				}
				finish = c.BeginMove(slot, to)
			},
			mend: func() { finish() },
		},
		{
			name: "a cluster's primary killed, its replica follows", bound: trailing, most: limit + members*share, trails: true,
			aim: func(client string) {
				aim(client)
				if old != nil { // once more
					old.Restart()
				}
				redistest.Until(t, 2*patient, func() error {
					old = c.Primary(slot)
					if field(old, "connected_slaves") == "0" {
						return errors.New("the primary has no replica")
					}
					return nil
				})
			},
			strike: func() {
				follow(t, old, []*redistest.Server{c.Replica(slot)})
				old.Kill()
			},
			mend: func() {
				redistest.Until(t, 2*patient, func() error {
					if c.Primary(slot) == old {
						return errors.New("nobody follows the primary that was killed")
					}
					return nil
				})
			},
		},
	})
}
