package redisstore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// The key prefix:secret holds one of two things, for all instances: the secret
// that one of them made, or the fingerprint of the one that all of them were given.
const (
	madeSecret  = "made:"
	givenSecret = "given:"
	secretBytes = 32
)

// ErrSecret is the error of an instance whose secret is not that of the others:
// it will not pass by itself.
var ErrSecret = errors.New("redisstore: the shared secret")

// sharedSecret is the one secret of all instances of a prefix. Without mine it is
// made once, by the first, and kept in Redis. With mine only a fingerprint is
// kept, by which the others see whether theirs is the same: another, or none, is
// an error. No error shows a secret.
//
// A made secret has no expiry: without it, what clients were counted by is lost.
// A fingerprint is there as long as somebody keeps it. A server that evicts one of
// them or comes back empty must be told again: see [keepSecret].
func sharedSecret(ctx context.Context, client Client, prefix string, mine []byte) ([]byte, error) {
	given := len(mine) > 0
	secret := mine
	if !given {
		secret = make([]byte, secretBytes)
		rand.Read(secret)
	}
	held, err := holdSecret(ctx, client, prefix, keptSecret(secret, given), given)
	if err != nil {
		return nil, err
	}
	made, isMade := strings.CutPrefix(held, madeSecret)
	_, isGiven := strings.CutPrefix(held, givenSecret)
	key := secretKey(prefix)
	switch {
	case given && hmac.Equal([]byte(held), []byte(keptSecret(mine, true))):
		return mine, nil
	case given && isGiven:
		return nil, fmt.Errorf("%w: other instances have another secret: give all the same secret_file; to change the secret, stop all of them, delete the key %q, and start them with the new one", ErrSecret, key)
	case given && isMade:
		return nil, fmt.Errorf("%w: other instances have no secret_file and share a secret made in Redis: give all of them the file or none; to go over to a file, stop all of them, delete the key %q, and start them with it", ErrSecret, key)
	case isGiven:
		return nil, fmt.Errorf("%w: other instances have a secret_file and this one has none: give it the same file; to do without, stop all of them, delete the key %q, and start them without", ErrSecret, key)
	}
	secret, err = base64.RawStdEncoding.DecodeString(made)
	if !isMade || err != nil || len(secret) != secretBytes {
		return nil, fmt.Errorf("%w: the key %q holds no secret: another program uses it, or it was changed; give the store a prefix of its own, or delete the key", ErrSecret, key)
	}
	return secret, nil
}

// keepSecret tells Redis again the secret that sharedSecret returned, should it
// have lost it, and that its fingerprint is to stay; given says that it was mine. An error is also that Redis has come
// to know another: an instance was started while there was none, and counts by
// itself until all are started anew.
func keepSecret(ctx context.Context, client Client, prefix string, secret []byte, given bool) error {
	kept := keptSecret(secret, given)
	held, err := holdSecret(ctx, client, prefix, kept, given)
	if err == nil && !hmac.Equal([]byte(held), []byte(kept)) {
		err = fmt.Errorf("redisstore: the secret in Redis is no longer that of this instance, so that instances count apart: the key %q was lost and made anew; restart all instances, and see that it is not evicted", secretKey(prefix))
	}
	return err
}

func secretKey(prefix string) string { return prefix + ":secret" }

// keptSecret is what Redis keeps for a secret.
func keptSecret(secret []byte, given bool) string {
	if !given {
		return madeSecret + base64.RawStdEncoding.EncodeToString(secret)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("comporta: the fingerprint of a shared secret"))
	return givenSecret + base64.RawStdEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// fingerprintStays is for how long a fingerprint stays in Redis that nobody keeps.
const fingerprintStays = "60000" // ms

// holdSecret puts a value where there is none, and is the one that is there.
func holdSecret(ctx context.Context, client Client, prefix, value string, passing bool) (string, error) {
	key := secretKey(prefix)
	put := []string{"SET", key, value, "NX"}
	if passing {
		put = append(put, "PX", fingerprintStays)
	}
	for range 3 {
		if _, err := client.Do(ctx, key, put...); err != nil {
			return "", fmt.Errorf("redisstore: putting the shared secret: %w", err)
		}
		reply, err := client.Do(ctx, key, "GET", key)
		if err != nil {
			return "", fmt.Errorf("redisstore: reading the shared secret: %w", err)
		}
		held, ok := reply.(string)
		if !ok {
			continue
		}
		if passing && held == value {
			if _, err := client.Do(ctx, key, "PEXPIRE", key, fingerprintStays); err != nil {
				return "", fmt.Errorf("redisstore: keeping the shared secret: %w", err)
			}
		}
		return held, nil
	}
	return "", errors.New("redisstore: the shared secret does not stay in Redis: it may write but not keep; look at maxmemory-policy and at who deletes keys")
}
