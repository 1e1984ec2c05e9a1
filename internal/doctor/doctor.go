package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	if !e.answers(ctx) {
		return e.findings
	}
	for name, client := range e.servers(ctx) {
		e.server, e.Client = name, client
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
	server   string // that is looked at
	findings []Finding
}

func (e *examination) say(check string, level Level, do, format string, args ...any) {
	e.findings = append(e.findings, Finding{e.server, check, level, fmt.Sprintf(format, args...), do})
}

// failed says that a question went unanswered.
func (e *examination) failed(check string, level Level, err error) {
	meaning, todo := redisstore.Explain(err)
	e.say(check, level, todo, "%s", meaning)
}

// do asks one question.
func (e *examination) do(ctx context.Context, args ...string) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return e.Client.Do(ctx, "", args...)
}

// answers says whether there is anybody at all.
func (e *examination) answers(ctx context.Context) bool {
	_, err := e.do(ctx, "PING")
	if err != nil {
		e.failed("connection", Fail, err)
		return false
	}
	e.say("connection", OK, "", "%v answers", e.Address)
	return true
}

// servers are all primaries by name, in order; of one alone the name is "".
func (e *examination) servers(ctx context.Context) func(yield func(string, redisstore.Client) bool) {
	all := map[string]redisstore.Client{"": e.Client}
	if several, ok := e.Client.(redisstore.Nodes); ok && e.Client.Cluster() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		found, err := several.Nodes(ctx)
		if err != nil {
			e.failed("servers", Fail, err)
			return func(func(string, redisstore.Client) bool) {}
		}
		all = found
	}
	return func(yield func(string, redisstore.Client) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(name, all[name]) {
				return
			}
		}
	}
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
