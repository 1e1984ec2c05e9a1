package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	shortestToken = 16
	longestTokens = 64 << 10 // of the file
)

// A token is one that is let in: who it is, as the audit log names it.
type token struct{ name, secret string }

// ReadToken is the first token of a file of tokens, for who wants to be let in.
// Errors show no token.
func ReadToken(file string) (string, error) {
	tokens, err := readTokens(file)
	if err != nil {
		return "", err
	}
	return tokens[0].secret, nil
}

// readTokens reads the file of tokens: one a line, a name before it where several
// people have one each. Lines that begin with # say nothing. Errors show no token.
func readTokens(file string) ([]token, error) {
	f, err := os.Open(file)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("the admin token file %s cannot be read: %w", file, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, longestTokens+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the admin token file %s cannot be read", file)
	case len(text) > longestTokens:
		return nil, fmt.Errorf("the admin token file %s is over %d bytes: it holds a token, or a name and a token a line", file, longestTokens)
	}
	var tokens []token
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		t := token{"admin", words[len(words)-1]}
		if len(words) == 2 {
			t.name = words[0]
		}
		switch {
		case len(words) > 2:
			return nil, fmt.Errorf("%s:%d: a line holds a token, or a name and a token", file, i+1)
		case len(t.secret) < shortestToken:
			return nil, fmt.Errorf("%s:%d: a token has at least %d bytes: make one with openssl rand -hex 32", file, i+1, shortestToken)
		}
		tokens = append(tokens, t)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("the admin token file %s holds no token: make one with openssl rand -hex 32", file)
	}
	return tokens, nil
}

// holder is whose a shown token is; "" where it is nobody's. All tokens are
// compared, by their sums, so that the time it takes tells nothing of them.
func holder(tokens []token, shown string) (name string) {
	mine := sha256.Sum256([]byte(shown))
	for _, t := range tokens {
		sum := sha256.Sum256([]byte(t.secret))
		if subtle.ConstantTimeCompare(sum[:], mine[:]) == 1 {
			name = t.name
		}
	}
	return name
}

// bearer is the token in an Authorization field.
func bearer(field []string) (string, bool) {
	if len(field) != 1 {
		return "", false
	}
	scheme, shown, found := strings.Cut(field[0], " ")
	return strings.TrimSpace(shown), found && strings.EqualFold(scheme, "bearer")
}
