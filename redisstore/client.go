package redisstore

import (
	"context"
	"strings"

	"github.com/comporta/comporta"
)

// A Client is what the store needs of a Redis client. It is safe for concurrent
// use.
type Client interface {
	// Do sends one command and waits for its reply until ctx ends. The key says
	// which server it is for, where there are several; "" is any primary.
	//
	// A command that may have reached a server is never sent again (redirections
	// aside, which say that it was not carried out): whoever does not know whether
	// units were spent must not spend them twice.
	//
	// A reply is nil, an int64, a string, or a []any of these. An error that the
	// server replied is a [ServerError]; any other means that it is not known
	// whether the command was carried out.
	Do(ctx context.Context, key string, args ...string) (any, error)
	// Cluster says that keys live in slots on several servers, so that a script
	// may only touch keys of one slot.
	Cluster() bool
	// Close gives the connections back. Calls after it fail.
	Close()
}

// Nodes is a client that can also ask each primary by itself.
type Nodes interface {
	// Nodes are clients of one primary each, by address. They share the
	// connections of the client they come from and need not be closed.
	Nodes(ctx context.Context) (map[string]Client, error)
}

// A ServerError is what a server replied instead of an answer, such as "READONLY
// You can't write against a read only replica." The command was not carried out.
type ServerError string

// Error is the reply without the arguments that some servers repeat of a command
// that they do not know: of AUTH one is the password.
func (e ServerError) Error() string {
	text, _, _ := strings.Cut(string(e), ", with args beginning with")
	return text
}

// Is says that it is a [comporta.ErrUnspent].
func (ServerError) Is(target error) bool { return target == comporta.ErrUnspent }

// Code is the first word: READONLY, LOADING, OOM, NOSCRIPT …
func (e ServerError) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}
