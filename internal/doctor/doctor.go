package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/comporta/comporta/redisstore"
)

// A Level says how bad a finding is.
type Level uint8

const (
	// OK needs nothing.
	OK Level = iota
	// Warn costs something, now or on a bad day.
	Warn
	// Fail breaks limits.
	Fail
)

var levelNames = [...]string{"ok", "warn", "fail"}

func (l Level) String() string { return levelNames[l] }

// MarshalText makes it a word in JSON.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// A Finding is what one check found. None holds a password, a key or a value.
type Finding struct {
	// Server is which one, host:port; "" where it is all of them.
	Server string `json:"server"`
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	// Text is what was found; Do what to change, "" where nothing is.
	Text string `json:"text"`
	Do   string `json:"do"`
}

// Options say what is examined and against what it is held.
type Options struct {
	// Client is a client of all servers. It is not closed.
	Client redisstore.Client
	// Address is what it was opened with.
	Address *redisstore.Address
	// Sentinel opens a client of one sentinel, which is closed again.
	Sentinel func(server string) (redisstore.Client, error)
	// Prefix begins the keys of the limits.
	Prefix string
	// Timeout is how long a request waits for an answer.
	Timeout time.Duration
}

// patience is how long one question may take: far longer than any request waits.
const patience = 5 * time.Second

// Examine runs all checks, the servers one after another in the order of their
// addresses. It writes a few keys under a prefix of its own, which expire within
// seconds, and looks at no more than some hundred thousand others. It takes a
// second or two for each server that answers.
func Examine(ctx context.Context, o Options) []Finding {
	e := &examination{Options: o}
	e.transport()
	if !e.answers(ctx) || !e.findServers(ctx) {
		return e.findings
	}
	for _, name := range slices.Sorted(maps.Keys(e.servers)) {
		e.server, e.Client = name, e.servers[name]
		e.one(ctx)
	}
	e.server, e.Client = "", o.Client
	e.sentinels(ctx)
	e.store(ctx)
	return e.findings
}

// An examination is under way.
type examination struct {
	Options
	servers  map[string]redisstore.Client // the primaries; of one alone the name is ""
	server   string                       // that is looked at
	findings []Finding
}

func (e *examination) say(check string, level Level, do, format string, args ...any) {
	e.findings = append(e.findings, Finding{e.server, check, level, fmt.Sprintf(format, args...), do})
}

// failed says that a question went unanswered.
func (e *examination) failed(check string, level Level, err error) {
	meaning, todo := redisstore.Explain(err)
	var said redisstore.ServerError
	var call *os.SyscallError
	switch {
	case errors.As(err, &said):
		if !e.secret(said.Error()) {
			meaning = fmt.Sprintf("%s: %q", meaning, said.Error())
		}
	case errors.As(err, &call) && call.Err != syscall.ECONNREFUSED: // which the meaning says
		meaning = fmt.Sprintf("%s: %v", meaning, call.Err)
	case e.Address.TLS && errors.Is(err, context.DeadlineExceeded):
		todo = "check that the port speaks TLS: a server without it is silent; else " + todo
	}
	e.say(check, level, todo, "%s", meaning)
}

// secret says whether a text has a password in it, as a server's answer has that
// does not know the command it was sent with.
func (e *examination) secret(text string) bool {
	return slices.ContainsFunc([]string{e.Address.Password, e.Address.SentinelPassword}, func(password string) bool {
		return password != "" && strings.Contains(text, password)
	})
}

// do asks the server that is looked at.
func (e *examination) do(ctx context.Context, args ...string) (any, error) {
	return ask(ctx, e.Client, args...)
}

func ask(ctx context.Context, client redisstore.Client, args ...string) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return client.Do(ctx, "", args...)
}

// answers says whether there is anybody at all.
func (e *examination) answers(ctx context.Context) bool {
	_, err := e.do(ctx, "PING")
	switch {
	case err == nil:
	case e.Address.Kind == redisstore.Sentinel && strings.Contains(err.Error(), "unknown command"):
		e.say("connection", Fail, "name the sentinels, whose port is mostly 26379, or write redis:// for this server", "this is no sentinel")
		return false
	case strings.Contains(err.Error(), "cluster support disabled"):
		e.notClustered()
		return false
	default:
		e.failed("connection", Fail, err)
		return false
	}
	e.say("connection", OK, "", "%v answers", e.Address)
	return true
}

// findServers finds the primaries of a cluster; false where there is no telling.
func (e *examination) findServers(ctx context.Context) bool {
	e.servers = map[string]redisstore.Client{"": e.Client}
	several, ok := e.Client.(redisstore.Nodes)
	if !ok || !e.Client.Cluster() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := several.Nodes(ctx)
	switch {
	case err == nil:
		e.servers = found
	case strings.Contains(err.Error(), "cluster support disabled"):
		e.notClustered()
	default:
		e.failed("cluster", Fail, err)
	}
	return err == nil
}

// one examines one server.
func (e *examination) one(ctx context.Context) {
	e.roundTrip(ctx)
	e.clock(ctx)
	e.commands(ctx)
	if i, err := e.info(ctx); err != nil {
		e.say("INFO", Warn, "let the user run it for an examination: +info", "this user may not see it: version, memory, persistence and replication are not known")
	} else {
		e.version(i)
		e.memory(i)
		e.persistence(i)
		e.replication(i)
		e.fork(i)
		e.cluster(ctx, i)
	}
	e.keys(ctx)
}
