package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/comporta/comporta/redisstore"
)

// needed are the commands that the store sends or that its scripts call, each
// made harmless: KEY is a key that nobody else has.
var needed = [...]string{
	"TIME", "EVALSHA 0123456789012345678901234567890123456789 0", "EVAL return{} 0",
	"SET KEY 0 PX 1000", "SETRANGE KEY 0 0", "EXPIREAT KEY 1", "GET KEY", "GETRANGE KEY 0 0", "STRLEN KEY", "PTTL KEY", "DEL KEY",
	"ZADD KEY 0 x", "PEXPIRE KEY 1000", "ZCARD KEY", "ZREMRANGEBYSCORE KEY 1 2", "ZREM KEY x", "TYPE KEY",
}

// ownPrefix begins the keys of an examination: those of the limits' prefix too,
// so that a user who may use these may use them, and no other's.
func (e *examination) ownPrefix() string { return e.Prefix + ":doctor-" + rand.Text() }

// commands says which commands the user may not run.
func (e *examination) commands(ctx context.Context) {
	key := e.ownPrefix()
	var missing []string
	for _, line := range needed {
		words := strings.Fields(strings.ReplaceAll(line, "KEY", key))
		_, err := e.do(ctx, words...)
		var said redisstore.ServerError
		switch {
		case err == nil:
		case errors.As(err, &said) && said.Code() == "NOPERM":
			missing = append(missing, "+"+strings.ToLower(words[0]))
		case !errors.As(err, &said): // others are refused for another reason, which another check tells
			e.failed("commands", Fail, err)
			return
		}
	}
	if len(missing) > 0 {
		e.say("commands", Fail, "ACL SETUSER "+e.user()+" ~"+e.Prefix+":* "+strings.Join(missing, " "), "the user may not run all that the store needs")
		return
	}
	e.say("commands", OK, "", "the user may run all that the store needs")
}

func (e *examination) user() string {
	if e.Address.Username == "" {
		return "default"
	}
	return e.Address.Username
}
