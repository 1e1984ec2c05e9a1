package redisstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCause(t *testing.T) {
	dial := func(err error) error {
		return fmt.Errorf("the client: %w", &net.OpError{Op: "dial", Net: "tcp", Err: err})
	}
	for _, c := range []struct {
		err  error
		want string
		down bool
	}{
		{nil, "", false},
		{context.DeadlineExceeded, "timeout", true},
		{dial(os.ErrDeadlineExceeded), "timeout", true},
		{dial(&net.DNSError{Err: "no such host", IsNotFound: true}), "dns", true},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "refused", true},
		{dial(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), "tls", true},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "tls", true},
		{tls.AlertError(42), "tls", true},
		{io.EOF, "connection", true},
		{dial(os.NewSyscallError("read", syscall.ECONNRESET)), "connection", true},
		{context.Canceled, "ended", false},
		{fmt.Errorf("taking: %w", &downError{cause: "LOADING"}), "LOADING", true},

		// What servers of versions 6.2 to 8 say.
		{fmt.Errorf("taking: %w", readonly), "READONLY", true},
		{ServerError("LOADING Redis is loading the dataset in memory"), "LOADING", true},
		{ServerError("OOM command not allowed when used memory > 'maxmemory'."), "OOM", true},
		{ServerError("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), "BUSY", true},
		{ServerError("CLUSTERDOWN Hash slot not served"), "CLUSTERDOWN", true},
		{ServerError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), "MASTERDOWN", true},
		{ServerError("NOAUTH Authentication required."), "NOAUTH", true},
		{ServerError("WRONGPASS invalid username-password pair or user is disabled."), "WRONGPASS", true},
		{ServerError("NOPERM No permissions to access a key"), "NOPERM", true},
		{ServerError("ERR ACL failure in script: User limits has no permissions to run the 'set' command script: 3c5d, on @user_script:75."), "NOPERM", true},
		{ServerError("ERR Error running script (call to f_3c5d): @user_script:75: The user executing the script can't run this command or subcommand"), "NOPERM", true},
		{ServerError("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."), "MISCONF", true},
		{ServerError("NOREPLICAS Not enough good replicas to write."), "NOREPLICAS", true},
		{ServerError("ERR max number of clients reached"), "MAXCLIENTS", true},
		{ServerError("DENIED Redis is running in protected mode because protected mode is enabled"), "DENIED", true},
		{ServerError("NOPROTO unsupported protocol version"), "NOPROTO", true},
		{ServerError("MOVED 3999 127.0.0.1:6381"), "MOVED", false},
		{ServerError("ASK 3999 127.0.0.1:6381"), "ASK", false},
		{ServerError("TRYAGAIN Multiple keys request during rehashing of slot"), "TRYAGAIN", false},
		{ServerError("CROSSSLOT Keys in request don't hash to the same slot"), "CROSSSLOT", false},
		{ServerError("NOSCRIPT No matching script. Please use EVAL."), "NOSCRIPT", false},
		{ServerError("WRONGTYPE Operation against a key holding the wrong kind of value"), "WRONGTYPE", false},
		{ServerError("ERR unknown command 'EVALSHA'"), "ERR", false},
		{ServerError("ERR Error running script (call to f_3c5d): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica."), "READONLY", true},
		{ServerError("ERR Error running script (call to f_3c5d): @user_script:9: attempt to index a nil value"), "ERR", false},
		// A server's word never stands for a cause of ours, and none is made up.
		{ServerError("timeout"), "other", false},
		{ServerError("NEWCODE something"), "other", false},
		{ServerError(""), "other", false},
	} {
		if got := cause(c.err); got != c.want {
			t.Errorf("%v: cause %q, want %q", c.err, got, c.want)
		}
		if got := failure(t.Context(), c.err); got != c.down {
			t.Errorf("%v: failure %v, want %v", c.err, got, c.down)
		}
	}
}

func TestEachCauseIsOneClearLine(t *testing.T) {
	for name, what := range troubles {
		if what.meaning == "" || what.todo == "" {
			t.Errorf("%s: no meaning or nothing to do", name)
		}
		var log bytes.Buffer
		logDown(slog.New(slog.NewTextHandler(&log, nil)), name, errors.New("what it said"))
		line := log.String()
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, "cause="+name) || !strings.Contains(line, "what it said") {
			t.Errorf("%s: %s", name, line)
		}
	}
	var log bytes.Buffer
	logUp(slog.New(slog.NewJSONHandler(&log, nil)), 3*time.Second)
	if !strings.Contains(log.String(), "the store is back") || !strings.Contains(log.String(), `"after":"3s"`) {
		t.Error(log.String())
	}
}
