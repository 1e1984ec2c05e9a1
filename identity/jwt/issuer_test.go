package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/comporta/comporta/identity"
)

// now is when all tests begin.
var now = time.Unix(1_800_000_000, 0)

// An issuer has a key of each type.
type issuer struct {
	rsa    *rsa.PrivateKey
	ec     *ecdsa.PrivateKey
	ec384  *ecdsa.PrivateKey
	ed     ed25519.PrivateKey
	secret []byte
}

func newIssuer() *issuer {
	i := &issuer{secret: []byte("a secret of at least thirty-two bytes")}
	var errs [4]error
	i.rsa, errs[0] = rsa.GenerateKey(rand.Reader, 2048)
	i.ec, errs[1] = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	i.ec384, errs[2] = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, i.ed, errs[3] = ed25519.GenerateKey(rand.Reader)
	for _, err := range errs {
		if err != nil {
			panic(err)
		}
	}
	return i
}

var (
	ours   = sync.OnceValue(newIssuer)
	theirs = sync.OnceValue(newIssuer) // a stranger's
)

// key is what the issuer signs such an algorithm with.
func (i *issuer) key(alg string) any {
	switch {
	case alg == "ES256":
		return i.ec
	case alg == "ES384":
		return i.ec384
	case alg == "EdDSA":
		return i.ed
	case alg == "HS256":
		return i.secret
	}
	return i.rsa
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// sign is a token of exactly that header and payload.
func sign(t testing.TB, alg string, key any, header, payload string) string {
	t.Helper()
	signed := b64([]byte(header)) + "." + b64([]byte(payload))
	signature, err := jwt.GetSigningMethod(alg).Sign(signed, key)
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + b64(signature)
}

// token is one of ours under the kid that set gives the key.
func (i *issuer) token(t testing.TB, alg, payload string) string {
	t.Helper()
	return sign(t, alg, i.key(alg), fmt.Sprintf(`{"alg":%q,"kid":%q,"typ":"JWT"}`, alg, kid(alg)), payload)
}

func kid(alg string) string {
	switch alg {
	case "ES256", "ES384", "EdDSA", "HS256":
		return alg
	}
	return "rsa"
}

// rsaKey is a public key as a set has it, with more members, each after a comma.
func rsaKey(k *rsa.PublicKey, more string) string {
	return fmt.Sprintf(`{"kty":"RSA","n":%q,"e":%q%s}`, b64(k.N.Bytes()), b64(big.NewInt(int64(k.E)).Bytes()), more)
}

func ecKey(t testing.TB, k *ecdsa.PublicKey, more string) string {
	t.Helper()
	point, err := k.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	size := len(point) / 2
	return fmt.Sprintf(`{"kty":"EC","crv":"P-%d","x":%q,"y":%q%s}`, k.Curve.Params().BitSize, b64(point[1:1+size]), b64(point[1+size:]), more)
}

func set(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

// set is all public keys of the issuer.
func (i *issuer) set(t testing.TB) string {
	return set(
		rsaKey(&i.rsa.PublicKey, `,"kid":"rsa"`),
		ecKey(t, &i.ec.PublicKey, `,"kid":"ES256","use":"sig"`),
		ecKey(t, &i.ec384.PublicKey, `,"kid":"ES384","key_ops":["verify"]`),
		fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":%q,"kid":"EdDSA","alg":"EdDSA"}`, b64(i.ed.Public().(ed25519.PublicKey))),
	)
}

// valid are claims that newSource believes for another hour.
func valid(sub string) string {
	return fmt.Sprintf(`{"iss":"https://id.example.com","aud":"api","sub":%q,"exp":%d,"plan":"pro"}`, sub, now.Add(time.Hour).Unix())
}

func options(t testing.TB) Options {
	secret, err := identity.NewSecret([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Issuer: "https://id.example.com", Audience: []string{"api", "web"},
		PlanClaim: "plan", UnknownPlan: "free",
		Secret: secret, Now: func() time.Time { return now },
	}
}

// newSource is one with a file of keys, loaded.
func newSource(t testing.TB, keys string, change func(*Options)) *Source {
	t.Helper()
	o := options(t)
	o.File = filepath.Join(t.TempDir(), "jwks.json")
	write(t, o.File, keys)
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func bearer(token string) *identity.Request {
	return &identity.Request{Header: map[string][]string{"Authorization": {"Bearer " + token}}}
}
