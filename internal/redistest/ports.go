package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// A cluster's node also listens on its port and busOffset.
const busOffset = 10_000

// freePort finds a port where nothing listens, nor on its bus port. Both lie
// under the ports that systems give to outgoing connections, so that none of
// these takes a port while its server is down between two lives. Another process
// may still take it: who starts a server there tries again on another one.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 11_000 + rand.IntN(11_000)
		if isFree(port) && isFree(port+busOffset) {
			return port
		}
	}
	t.Fatal("redistest: found no free port")
	return 0
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
