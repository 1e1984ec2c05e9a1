package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/comporta/comporta"
)

// A door lets in who shows a token that the file holds. The file is read for each
// request, so that a token that was changed is in force at once.
type door struct {
	file  string
	names hosts
	tries *tries // of wrong tokens
	told  *tries // of what the log hears beside them: nobody fills it
}

// A refusal is why somebody is not let in.
type refusal struct {
	*failure
	log   string        // what the log says of it; "" nothing
	retry time.Duration // when it may be tried again
}

// enter is who is asking, or why not. It looks at nothing of the request but its
// Host and the token.
func (d *door) enter(r *http.Request, at time.Time) (by string, no *refusal) {
	peer := peerOf(r)
	if !d.names.allow(r.Host) {
		return "", &refusal{failure: &failure{http.StatusMisdirectedRequest, "This Host is not the administration's."},
			log: d.say(peer, at, "an administration request for another host was refused: a page in a browser may be behind it")}
	}
	if retry := d.tries.wait(peer, at); retry > 0 {
		return "", &refusal{failure: &failure{http.StatusTooManyRequests, "Too many wrong tokens were tried."}, retry: retry}
	}
	shown, ok := bearer(r.Header["Authorization"])
	if !ok {
		return "", &refusal{failure: &failure{http.StatusUnauthorized, "Show the token: Authorization: Bearer TOKEN."}}
	}
	tokens, err := readTokens(d.file)
	if err != nil {
		return "", &refusal{failure: &failure{http.StatusServiceUnavailable, "No token can be checked: the gateway's log says why."}, log: d.say(peer, at, err.Error())}
	}
	if by = holder(tokens, shown); by == "" {
		d.tries.count(peer, at)
		return "", &refusal{failure: &failure{http.StatusUnauthorized, "The token is wrong."}, log: "a wrong administration token was tried"}
	}
	return by, nil
}

// say is a text for the log, or "" where it has heard of the peer too often.
func (d *door) say(peer netip.Prefix, at time.Time, text string) string {
	if d.told.wait(peer, at) > 0 {
		return ""
	}
	d.told.count(peer, at)
	return text
}

// peerOf is who sends a request: an address, of IPv6 its /64; zero by a socket.
func peerOf(r *http.Request) netip.Prefix {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := a.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // of that length there always is one
	return p
}

// hosts are the names under which the administration is reached: those of the
// address that it listens at, and no others, so that no name that somebody else
// points here leads a browser in.
type hosts struct {
	unix bool
	said string     // as the policy has it
	addr netip.Addr // what it listens at; of unspecified ones all addresses are
}

func (h *hosts) allow(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	local := host == "localhost"
	if h.unix {
		return local
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return h.addr.IsUnspecified() || addr.Unmap() == h.addr
	}
	return local && (h.addr.IsLoopback() || h.addr.IsUnspecified()) || h.said != "" && host == h.said
}

// mostTries is how often somebody may try wrong tokens.
const mostTries = "10/min"

// mostPeers bounds the memory of tries.
const mostPeers = 4096

// tries counts what should seldom be, by who does it. It is safe for concurrent use.
type tries struct {
	rule *comporta.Rule

	mu    sync.Mutex
	peers map[netip.Prefix]comporta.State
}

func newTries() (*tries, error) {
	t := new(tries)
	limit, err := comporta.ParseLimit(mostTries)
	if err == nil {
		t.rule, err = limit.Compile()
	}
	return t, err
}

// wait is how long a peer must not try; 0 where it may.
func (t *tries) wait(peer netip.Prefix, at time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, d := t.rule.Step(t.peers[peer], comporta.InstantOf(at), 0); d.Remaining == 0 {
		return d.ResetAfter
	}
	return 0
}

// count counts one more. Where there are too many peers all are forgotten:
// who has so many addresses is not held up by this.
func (t *tries) count(peer netip.Prefix, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peers == nil || len(t.peers) >= mostPeers {
		t.peers = make(map[netip.Prefix]comporta.State)
	}
	t.peers[peer], _ = t.rule.Step(t.peers[peer], comporta.InstantOf(at), 1)
}
