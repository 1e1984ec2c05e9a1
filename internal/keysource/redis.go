package keysource

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/redisstore"
)

// NewRedis looks keys up in a hash, by HGET: its fields are the sums and its values
// the JSON. A field that is not there is an unknown key. The hash lives on one server
// of a cluster. The client stays the caller's to close.
func NewRedis(client redisstore.Client, hash string) (identity.Lookup, error) {
	if hash == "" {
		return nil, errors.New("name the Redis hash that holds the API keys, as comporta-keys")
	}
	return func(ctx context.Context, sum [32]byte) (identity.Key, bool, error) {
		reply, err := client.Do(ctx, hash, "HGET", hash, hex.EncodeToString(sum[:]))
		if reply == nil && err == nil {
			return identity.Key{}, false, nil
		}
		var key identity.Key
		if err == nil {
			key, err = parseReply(reply)
		}
		if err != nil {
			return identity.Key{}, false, fmt.Errorf("the API keys in the Redis hash %s: %w", hash, err)
		}
		return key, true, nil
	}, nil
}

func parseReply(reply any) (identity.Key, error) {
	text, is := reply.(string)
	if !is {
		return identity.Key{}, errors.New("the server's reply is no text")
	}
	return parse([]byte(text))
}
