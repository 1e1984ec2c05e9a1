package gateway

import (
	"context"
	"net/http"
	"time"
)

// newGrace is how long a connection that was taken just before the end may take
// to send its request.
const newGrace = time.Second

// endGrace is how long requests that are cut off may take to notice, and
// connections to close.
const endGrace = time.Second

// settle is how long connections that are being made may take to stand.
const settle = 100 * time.Millisecond

// drain stops without losing a request that a client has sent: /readyz says 503
// and every answer says that its connection ends; then no new connection is
// taken; then what is in flight ends. What has not ended at the drain timeout is
// cut off. (A request that is sent down an idle connection in the moment in which
// that is closed is lost in HTTP/1.1 whatever a server does; clients repeat it.)
func (g *Gateway) drain(cut context.CancelFunc) {
	g.draining.Store(true)
	begun := now()
	timeout := g.reign.Load().Server.Timeouts.Drain
	g.log.Info("draining", "in_flight", g.inFlight.Load(), "timeout", timeout.String())
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()

	for since(begun) < min(g.o.DrainDelay, timeout) {
		<-pause.C
	}
	g.listener.refuseNew()
	for refused := now(); since(refused) < settle; {
		<-pause.C
	}
	_ = g.listener.Close()

	closed := now()
	for since(begun) < timeout {
		busy := g.inFlight.Load() + g.listener.count(http.StateActive)
		if since(closed) < newGrace {
			busy += g.listener.count(http.StateNew)
		}
		if busy == 0 {
			break
		}
		<-pause.C
	}
	if n := g.inFlight.Load(); n > 0 {
		g.log.Warn("the drain timeout is over: requests are cut off", "in_flight", n)
	}
	cut()
	for ending := now(); g.inFlight.Load() > 0 && since(ending) < endGrace; {
		<-pause.C
	}
	<-pause.C // what HTTP/2 has answered is on its way out
	end, cancel := context.WithTimeout(context.Background(), endGrace)
	defer cancel()
	_ = g.public.Shutdown(end)
}
