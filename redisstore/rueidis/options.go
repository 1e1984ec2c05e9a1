package rueidis

import (
	"net"
	"time"

	"github.com/comporta/comporta/redisstore"
	"github.com/redis/rueidis"
)

// Options of a client.
type Options struct {
	// Dial is how long a server may take to accept a connection, and again to let
	// us in; 0 is a second.
	Dial time.Duration
	// Silence is how long a server may leave calls unanswered before its
	// connection is given up and made anew; 0 is a second. No command may run for
	// longer.
	Silence time.Duration
	// Name is what CLIENT LIST shows; "" is comporta.
	Name string
}

// options are rueidis' own for an address.
func options(a *redisstore.Address, o Options) (rueidis.ClientOption, error) {
	secure, err := a.TLSConfig()
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	dial, silence, name := o.Dial, o.Silence, o.Name
	if dial == 0 {
		dial = time.Second
	}
	if silence == 0 {
		silence = time.Second
	}
	if name == "" {
		name = "comporta"
	}
	// A connection on which nothing came in for KeepAlive is asked PING, and closed
	// when that is not answered within ConnWriteTimeout.
	dialer := net.Dialer{Timeout: dial, KeepAlive: silence / 4}
	option := rueidis.ClientOption{
		InitAddress:      a.Servers,
		Username:         a.Username,
		Password:         a.Password,
		SelectDB:         a.DB,
		TLSConfig:        secure,
		ClientName:       name,
		ClientSetInfo:    rueidis.DisableClientSetInfo,
		Dialer:           dialer,
		ConnWriteTimeout: silence - silence/4,

		// A command whose connection broke may have run: it is never sent again.
		DisableRetry: true,
		DisableCache: true,
		// A store gathers requests into calls by itself and has few of them out, each
		// on a connection of its own: for a lone caller twice as quick as a pipeline. In
		// a cluster it has a call out for many slots; there one connection to each
		// server gathers them.
		DisableAutoPipelining: a.Kind != redisstore.Cluster,
		BlockingPoolCleanup:   time.Minute,
		BlockingPoolMinSize:   2,
		PipelineMultiplex:     -1,
		// Both protocols know all that we need; the second has fewer kinds of reply.
		AlwaysRESP2: true,

		ForceSingleClient:   a.Kind == redisstore.Single,
		ReadBufferEachConn:  128 << 10,
		WriteBufferEachConn: 128 << 10,
		ClusterOption:       rueidis.ClusterOption{MaxMovedRedirections: 5},
	}
	if a.Kind == redisstore.Sentinel {
		option.Sentinel = rueidis.SentinelOption{
			MasterSet:  a.Master,
			Username:   a.SentinelUsername,
			Password:   a.SentinelPassword,
			ClientName: name,
			Dialer:     dialer,
			TLSConfig:  secure,
		}
	}
	return option, nil
}
