package jwt_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	signer "github.com/golang-jwt/jwt/v5"

	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/identity/jwt"
)

// An issuer publishes its public key; who shows a token that it signed is the user
// that the token names.
func Example() {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public := base64.RawURLEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
	dir, err := os.MkdirTemp("", "jwt")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "jwks.json")
	set := fmt.Sprintf(`{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "2026", "x": %q}]}`, public)
	if err := os.WriteFile(file, []byte(set), 0o600); err != nil {
		panic(err)
	}

	users, err := jwt.New(jwt.Options{
		File:   file,
		Issuer: "https://id.example.com", Audience: []string{"api"},
		PlanClaim: "plan", UnknownPlan: "free",
		Secret: new(identity.Secret),
	})
	if err != nil {
		panic(err)
	}
	if err := users.Load(context.Background()); err != nil {
		panic(err)
	}

	token, err := signer.NewWithClaims(signer.SigningMethodEdDSA, signer.MapClaims{
		"iss": "https://id.example.com", "aud": "api", "sub": "alice", "plan": "pro",
		"exp": time.Now().Add(time.Hour).Unix(),
	}).SignedString(private)
	if err != nil {
		panic(err)
	}
	request := identity.Request{Header: map[string][]string{"Authorization": {"Bearer " + token}}}
	who, shown, err := users.Prove(context.Background(), &request)
	fmt.Println(who.Name, who.Plan, shown, err)

	request = identity.Request{Header: map[string][]string{"Authorization": {"Bearer " + token + "AAAA"}}}
	_, shown, err = users.Prove(context.Background(), &request)
	fmt.Println(shown, err, errors.Is(err, identity.ErrUnproved))
	// Output:
	// user:alice pro true <nil>
	// false the credential proves nothing: its signature is not valid true
}
