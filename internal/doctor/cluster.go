package doctor

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"github.com/comporta/comporta/redisstore"
)

// transport says who can listen and who can log in.
func (e *examination) transport() {
	near := true
	for _, server := range e.Address.Servers {
		near = near && local(server)
	}
	switch {
	case e.Address.TLS:
		e.say("encryption", OK, "", "TLS")
	case near:
		e.say("encryption", OK, "", "none: the connection does not leave this machine")
	default:
		e.say("encryption", Warn, "use rediss:// and a server with TLS, unless the network between is yours alone", "none: whoever listens on the way reads the password and all keys")
	}
	if e.Address.Password == "" && !near {
		e.say("password", Warn, "make a user with a password for the gateways; docs/stores.md says with which rights", "none: whoever reaches the server can change counts")
	}
}

// local says whether a server is surely this machine's own.
func local(server string) bool {
	host, _, err := net.SplitHostPort(server)
	if err != nil || host == "localhost" {
		return true // the path of a socket
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func (e *examination) cluster(ctx context.Context, i info) {
	switch clustered := i["cluster_enabled"] == "1"; {
	case clustered && e.Address.Kind != redisstore.Cluster:
		e.say("cluster", Fail, "write redis-cluster:// in the address", "this is a node of a cluster, and the address names one server: keys of other nodes cannot be reached")
		return
	case !clustered && e.Address.Kind == redisstore.Cluster:
		e.notClustered()
		return
	case !clustered:
		return
	}
	reply, err := e.do(ctx, "CLUSTER", "INFO")
	if err != nil {
		e.failed("cluster", Warn, err)
		return
	}
	text, _ := reply.(string)
	state := parseInfo(text)
	if served := state.number("cluster_slots_ok"); state["cluster_state"] != "ok" || served < 16384 {
		e.say("cluster", Fail, "look at CLUSTER NODES; bring the primaries back, or give their slots to others", "its state is %s: %d of 16384 slots are served", state["cluster_state"], served)
		return
	}
	e.say("cluster", OK, "", "all slots are served by %s primaries", state["cluster_size"])
}

func (e *examination) notClustered() {
	e.say("cluster", Fail, "write redis:// in the address", "this server is no node of a cluster")
}

// sentinels asks each whether enough of them agree to fail over.
func (e *examination) sentinels(ctx context.Context) {
	if e.Address.Kind != redisstore.Sentinel {
		return
	}
	for _, server := range e.Address.Servers {
		e.server = server
		client, err := e.Sentinel(server)
		if err != nil {
			e.failed("sentinel", Warn, err)
			continue
		}
		asked, cancel := context.WithTimeout(ctx, patience)
		reply, err := client.Do(asked, "", "SENTINEL", "CKQUORUM", e.Address.Master)
		cancel()
		client.Close()
		said, _ := reply.(string)
		switch {
		case err != nil && strings.HasPrefix(err.Error(), "NOQUORUM"):
			e.say("sentinel", Fail, "bring the other sentinels back: three at least, on machines of their own", "too few sentinels are left to fail over to a replica")
		case err != nil:
			e.failed("sentinel", Warn, err)
		default:
			e.say("sentinel", OK, "", "%s", strings.TrimPrefix(said, "OK "))
		}
	}
	e.server = ""
}
