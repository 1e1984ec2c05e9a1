package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"
)

// trouble is what a cause means to a person.
type trouble struct {
	// down: no call will do better for now, whatever its key. Others are a matter
	// of one key, one slot or one script, and no reason to stop asking.
	down    bool
	meaning string
	todo    string
}

// troubles are all causes that are told apart, by the word for each: of a
// server's own errors their first word.
var troubles = map[string]trouble{
	"timeout": {true, "no answer came within the deadline: the server hangs or has too much to do, or the network loses what is sent",
		"look at the server's load and SLOWLOG GET, and measure with redis-cli --latency; raise the timeout only where round trips take that long by nature"},
	"refused": {true, "nothing listens at the address",
		"start the server, or correct host and port"},
	"dns": {true, "the host's name leads to no address",
		"correct the host, or mend the resolver"},
	"tls": {true, "no TLS could be agreed on",
		"check that the port speaks TLS, and ca_file, tls_server_name and the certificates' dates"},
	"connection": {true, "the connection was cut, or none could be made",
		"look whether the server restarts, and at the network between"},

	"READONLY": {true, "the server is a replica and takes no writes: a failover is under way, or the address names a replica",
		"wait for the failover to end; to follow failovers use redis-sentinel:// or redis-cluster://, or else the address of the primary"},
	"LOADING": {true, "the server has just started and still reads its data from disk",
		"wait; limits then go on from what was saved"},
	"OOM": {true, "the server is full (maxmemory) and may drop nothing",
		"raise maxmemory, or give the limits a server of their own; a sliding log takes the most"},
	"BUSY": {true, "a script has held the server for longer than busy-reply-threshold",
		"find whose it is (SLOWLOG GET) and end it with SCRIPT KILL; ours take well under a millisecond"},
	"CLUSTERDOWN": {true, "the cluster does not serve: slots have no primary that answers",
		"look at CLUSTER INFO; wait for the failover, or give every primary a replica"},
	"MASTERDOWN": {true, "the server is a replica that has lost its primary",
		"wait for the failover, or correct the address: limits need the primary"},
	"NOAUTH": {true, "the server wants a password and was given none",
		"write it in the address: redis://user:password@host, or redis://:password@host"},
	"WRONGPASS": {true, "the server knows no such user with this password, or the user is disabled",
		"correct user and password in the address; percent-encode @ : / ? # % in them"},
	"NOPERM": {true, "the user may not run a command, or not on our keys",
		"grant it the keys of the prefix and what scripts use: ~comporta:* +@read +@write +@scripting +@connection +time, in a cluster +cluster"},
	"MISCONF": {true, "the server cannot save to disk and so takes no writes",
		"free the disk or mend its rights; see the server's own log"},
	"NOREPLICAS": {true, "the primary has fewer replicas than min-replicas-to-write and takes no writes",
		"bring the replicas back, or lower min-replicas-to-write"},
	"MAXCLIENTS": {true, "the server has as many connections as it may (maxclients)",
		"look at CLIENT LIST for who holds them, or raise maxclients"},
	"DENIED": {true, "the server is in protected mode and talks to its own machine only",
		"give it a password or users; or bind it to a private address with protected-mode off"},
	"NOPROTO": {true, "the server does not speak the protocol that the client wants",
		"use Redis 6.2 or Valkey 7.2, or later"},

	"MOVED": {false, "the slot is another server's and the client did not follow",
		"use redis-cluster:// with all nodes; check that the addresses that nodes announce can be reached from here"},
	"ASK": {false, "the slot is on its way to another server and the client did not follow",
		"use redis-cluster://; it passes when the slot has moved"},
	"TRYAGAIN": {false, "the slot is on its way to another server, and one key is here and one there",
		"it passes when the slot has moved"},
	"CROSSSLOT": {false, "a script was given keys of several slots: the server is a cluster, or a proxy of one",
		"use redis-cluster:// in the address"},
	"NOSCRIPT": {false, "the server forgot the script that it was just sent: several servers answer at one address",
		"name one server, or a cluster by redis-cluster://"},
	"WRONGTYPE": {false, "another program uses a key of ours",
		"give the store a prefix of its own, or a database"},
	"ERR": {false, "the server refused a command",
		"read its message; the version may be too old (Redis 6.2 or Valkey 7.2 are needed) or a command renamed"},

	"ended": {false, "the caller went away before an answer came",
		"nothing: it is no failure of the store"},
	"other": {false, "the server sent an error that is not known here",
		"read its message"},
}

// cause is the word for what went wrong, one of troubles; "" where nothing did.
func cause(err error) string {
	var down *downError
	if errors.As(err, &down) {
		return down.cause
	}
	var server ServerError
	if errors.As(err, &server) {
		return serverCause(server)
	}
	var (
		lookup  *net.DNSError
		cert    *tls.CertificateVerificationError
		alert   tls.AlertError
		record  tls.RecordHeaderError
		network net.Error
	)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.Canceled):
		return "ended"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &cert), errors.As(err, &alert), errors.As(err, &record):
		return "tls"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.As(err, &lookup):
		return "dns"
	}
	return "connection"
}

// unnamed are causes for which servers have no first word, by words of the message.
var unnamed = map[string]string{
	"max number of clients":         "MAXCLIENTS",
	"ACL failure in script":         "NOPERM", // Redis 7.0
	"The user executing the script": "NOPERM", // 6.2
}

func serverCause(err ServerError) string {
	code := err.Code()
	if _, within, ok := strings.Cut(string(err), ": -"); ok && strings.HasPrefix(string(err), "ERR Error running script") {
		code = ServerError(within).Code() // as servers before 7 say it
	}
	if code == "ERR" {
		for text, is := range unnamed {
			if strings.Contains(string(err), text) {
				return is
			}
		}
	}
	if _, known := troubles[code]; known && code == strings.ToUpper(code) {
		return code
	}
	return "other"
}

// failure says whether the outcome of a call under ctx, the caller's own, speaks
// against the store. That the caller went away, or gave less time than the store
// has, never does; nor does what concerns one key or one slot.
func failure(ctx context.Context, err error) bool {
	var server ServerError
	if !errors.As(err, &server) && ctx.Err() != nil {
		return false
	}
	return troubles[cause(err)].down
}

// refusesAll says whether what became of a heartbeat speaks against the store.
// That concerns no client's key: a server that does not understand it (another
// database, no cluster, no sentinel) understands no take.
func refusesAll(err error) bool {
	why := cause(err)
	return troubles[why].down || why == "ERR" || why == "other"
}

// logRefused is the line of a failure that is no outage.
func logRefused(l *slog.Logger, cause string, err error) {
	l.Error("redisstore: some calls fail: "+troubles[cause].meaning, "cause", cause, "do", troubles[cause].todo, "error", err)
}

// logDown and logUp are the two lines of an outage.
func logDown(l *slog.Logger, cause string, err error) {
	l.Error("redisstore: the store is down: "+troubles[cause].meaning, "cause", cause, "do", troubles[cause].todo, "error", err)
}

func logUp(l *slog.Logger, after time.Duration) {
	l.Info("redisstore: the store is back", "after", after.Round(time.Millisecond).String())
}
