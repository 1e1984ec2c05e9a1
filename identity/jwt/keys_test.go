package jwt

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
)

// The public key is known to everybody: as an HMAC secret it would sign for everybody.
func TestAPublicKeyIsNoSecret(t *testing.T) {
	public := &ours().rsa.PublicKey
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	pkix := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	secrets := [][]byte{
		der, pkix, bytes.TrimSpace(pkix), public.N.Bytes(), x509.MarshalPKCS1PublicKey(public),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(public)}),
		[]byte(rsaKey(public, `,"kid":"rsa"`)), []byte(ours().set(t)), []byte(b64(public.N.Bytes())),
		ours().ed.Public().(ed25519.PublicKey), {},
	}
	for name, keys := range map[string]string{
		"a set of public keys":        ours().set(t),
		"keys with and without alg":   set(rsaKey(public, `,"kid":"rsa2","alg":"RS256"`), rsaKey(public, "")),
		"a set that has a secret too": set(rsaKey(public, `,"kid":"rsa"`), octKey(ours().secret, `,"kid":"oct"`)),
	} {
		s := newSource(t, keys, nil)
		for i, secret := range secrets {
			for _, kid := range []string{`,"kid":"rsa"`, `,"kid":"EdDSA"`, ""} {
				token := sign(t, "HS256", secret, `{"alg":"HS256"`+kid+`}`, valid("alice"))
				if who, shown, _ := s.Prove(t.Context(), bearer(token)); shown {
					t.Errorf("%s: secret %d, kid %s proves %v", name, i, kid, who)
				}
			}
		}
	}
}

func octKey(secret []byte, more string) string {
	return fmt.Sprintf(`{"kty":"oct","k":%q%s}`, b64(secret), more)
}

func TestASecretIsNoPublicKey(t *testing.T) {
	s := newSource(t, set(octKey(ours().secret, "")), nil)
	proves(t, s, bearer(ours().token(t, "HS256", valid("alice"))), "alice", "pro")
	for _, alg := range Algorithms() {
		if alg != "HS256" {
			refused(t, s, bearer(ours().token(t, alg, valid("alice"))), errKey)
		}
	}
}

func TestAlgorithmsAreThoseOfTheListTheKeyAndTheCurve(t *testing.T) {
	only := newSource(t, ours().set(t), func(o *Options) { o.Algorithms = []string{"ES256"} })
	refused(t, only, bearer(ours().token(t, "RS256", valid("alice"))), errAlgorithm)
	proves(t, only, bearer(ours().token(t, "ES256", valid("alice"))), "alice", "pro")

	alg := newSource(t, set(rsaKey(&ours().rsa.PublicKey, `,"kid":"rsa","alg":"PS256"`)), nil)
	refused(t, alg, bearer(ours().token(t, "RS256", valid("alice"))), errKey)
	proves(t, alg, bearer(ours().token(t, "PS256", valid("alice"))), "alice", "pro")

	both := newSource(t, ours().set(t), nil)
	for _, alg := range []string{"HS384", "HS512", "ES512", "RS257", "rs256", " RS256", "RS256\x00", "Ed25519", "A128KW"} {
		h := fmt.Sprintf(`{"alg":"%s","kid":"rsa"}`, strings.ReplaceAll(alg, "\x00", `\u0000`))
		refused(t, both, bearer(sign(t, "RS256", ours().rsa, h, valid("alice"))), errAlgorithm)
	}
	// The signature has the length of the algorithm, the key another curve.
	p256 := sign(t, "ES256", ours().ec, `{"alg":"ES256","kid":"ES384"}`, valid("alice"))
	refused(t, both, bearer(p256), errKey)
}

func TestKids(t *testing.T) {
	o, other := ours(), theirs()
	with := func(kid string) string {
		return sign(t, "RS256", o.rsa, `{"alg":"RS256"`+kid+`}`, valid("alice"))
	}
	s := newSource(t, set(rsaKey(&other.rsa.PublicKey, `,"kid":"old"`), rsaKey(&o.rsa.PublicKey, `,"kid":"new"`)), nil)
	proves(t, s, bearer(with(`,"kid":"new"`)), "alice", "pro")
	proves(t, s, bearer(with(``)), "alice", "pro")
	proves(t, s, bearer(with(`,"kid":""`)), "alice", "pro")
	refused(t, s, bearer(with(`,"kid":"old"`)), errSignature)
	for _, kid := range []string{
		"../../../../dev/null", "/dev/null", "new\x00", "NEW", "new ", "' OR 1=1 --", "https://evil.example/jwks.json", "*", strings.Repeat("k", 3000),
	} {
		refused(t, s, bearer(with(fmt.Sprintf(`,"kid":"%s"`, strings.ReplaceAll(kid, "\x00", `\u0000`)))), errKey)
	}
	for _, kid := range []string{`7`, `null`, `["new"]`, `{"a":"new"}`, `true`} {
		refused(t, s, bearer(with(`,"kid":`+kid)), errForm)
	}
	refused(t, s, bearer(with(`,"kid":"new","kid":"old"`)), errForm)
	refused(t, s, bearer(with(`,"kid":"new","alg":"RS256"`)), errForm)

	twice := newSource(t, set(rsaKey(&other.rsa.PublicKey, `,"kid":"k"`), ecKey(t, &o.ec.PublicKey, `,"kid":"k"`), rsaKey(&o.rsa.PublicKey, `,"kid":"k"`)), nil)
	proves(t, twice, bearer(with(`,"kid":"k"`)), "alice", "pro")
	nameless := newSource(t, set(rsaKey(&o.rsa.PublicKey, "")), nil)
	proves(t, nameless, bearer(with(`,"kid":"whatever"`)), "alice", "pro")
}

// A token without kid costs a few signatures, however many keys there are.
func TestTriesAreBounded(t *testing.T) {
	keys := make([]string, maxKeys)
	for i := range keys {
		keys[i] = rsaKey(&theirs().rsa.PublicKey, fmt.Sprintf(`,"kid":"%d"`, i))
	}
	s := newSource(t, set(keys...), nil)
	if few, named := candidates(s.ring.Load().keys, "", "RS256"); len(few) != maxTries || !named {
		t.Errorf("%d candidates, %v", len(few), named)
	}
}

// What a token brings along is no key.
func TestKeysInTokensAreIgnored(t *testing.T) {
	stranger := theirs()
	mine := rsaKey(&stranger.rsa.PublicKey, `,"kid":"rsa"`)
	der := x509.MarshalPKCS1PublicKey(&stranger.rsa.PublicKey)
	s := newSource(t, ours().set(t), nil)
	for _, more := range []string{
		`"jwk":` + mine, `"jku":"https://evil.example/jwks.json"`, `"x5u":"https://evil.example/cert.pem"`,
		fmt.Sprintf(`"x5c":["%x"]`, der), `"x5t":"AAAA"`, `"jku":"file:///etc/passwd"`,
	} {
		for _, kid := range []string{`"kid":"rsa",`, ``} {
			header := `{"alg":"RS256",` + kid + more + `}`
			refused(t, s, bearer(sign(t, "RS256", stranger.rsa, header, valid("alice"))), errSignature)
			if len(header) < 3000 {
				proves(t, s, bearer(sign(t, "RS256", ours().rsa, header, valid("alice"))), "alice", "pro")
			}
		}
	}
}

func TestHeadersThatProveNothing(t *testing.T) {
	s := newSource(t, ours().set(t), nil)
	for header, why := range map[string]reason{
		`{"alg":"RS256","crit":["exp"],"exp":1}`:     errCritical,
		`{"alg":"RS256","crit":["b64"],"b64":false}`: errCritical,
		`{"alg":"RS256","crit":[]}`:                  errCritical,
		`{"alg":"RS256","crit":null}`:                errCritical,
		`{"alg":"none","alg":"RS256"}`:               errForm,
		`{"alg":"RS256"}x`:                           errForm,
		`{"alg":["RS256"]}`:                          errAlgorithm,
		`{"Alg":"RS256"}`:                            errAlgorithm,
		`{}`:                                         errAlgorithm,
		`"RS256"`:                                    errForm,
		`{"alg":"RS256","x":` + strings.Repeat("[", 3000) + `}`: errForm,
	} {
		refused(t, s, bearer(sign(t, "RS256", ours().rsa, header, valid("alice"))), why)
	}
}

func TestSetsThatAreNone(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := rsaKey(&ours().rsa.PublicKey, "")
	no := "it holds no key that verifies signatures of the algorithms that are taken"
	for _, c := range []struct{ name, keys, want string }{
		{"empty", "", "it is not a JSON Web Key Set"},
		{"a page", "<html>", "it is not a JSON Web Key Set"},
		{"one key", good, "it is not a JSON Web Key Set"},
		{"no keys", `{"keys":[]}`, no},
		{"keys for other uses", set(rsaKey(&ours().rsa.PublicKey, `,"use":"enc"`), rsaKey(&ours().rsa.PublicKey, `,"key_ops":["encrypt"]`)), no},
		{"a curve that is not taken", set(ecKey(t, &p521.PublicKey, "")), no},
		{"a type that is not taken", set(`{"kty":"OKP","crv":"X25519","x":"AAAA"}`, `{"kty":"AKP"}`), no},
		{"an algorithm that is not taken", set(rsaKey(&ours().rsa.PublicKey, `,"alg":"RSA-OAEP"`)), no},
		{"a short key", set(rsaKey(&small.PublicKey, `,"kid":"a"`), good), `key 1 (kid "a"): an RSA key of 1024 bits is not taken`},
		{"a short secret", set(good, octKey([]byte("tiny"), "")), "key 2: an HMAC secret of 4 bytes is too short: at least 32"},
		{"a point off its curve", set(good, `{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}`), "key 2: "},
		{"a key that is no object", set(good, `7`), "key 2: it is not a JSON Web Key"},
		{"another's algorithm", set(good, rsaKey(&ours().rsa.PublicKey, `,"alg":"ES256"`)), "key 2: it is no key for its algorithm, ES256"},
		{"too many", set(strings.Split(strings.Repeat(good+"\n", maxKeys)+good, "\n")...), "it holds 129 keys: at most 128"},
		{"too large", strings.Repeat(" ", maxSet+1), "it is larger than 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSource(t, ours().set(t), nil)
			write(t, s.o.File, c.keys)
			err := s.Load(context.Background())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), b64([]byte("tiny"))) {
				t.Errorf("the error holds the secret: %v", err)
			}
			if stats := s.Stats(); stats.Problem == nil || stats.Keys != 4 {
				t.Errorf("the old keys are not in use: %+v", stats)
			}
			proves(t, s, bearer(ours().token(t, "ES256", valid("alice"))), "alice", "pro")
		})
	}
}

func TestSecretFiles(t *testing.T) {
	o := options(t)
	o.SecretFile = t.TempDir() + "/secret"
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	write(t, o.SecretFile, strings.Repeat("s", MinSecret-1)+"\r\n")
	if err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "an HMAC secret of 31 bytes is too short") || strings.Contains(err.Error(), "ssss") {
		t.Errorf("got %v", err)
	}
	for _, end := range []string{"", "\n", "\r\n"} {
		write(t, o.SecretFile, string(ours().secret)+end)
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		proves(t, s, bearer(ours().token(t, "HS256", valid("alice"))), "alice", "pro")
	}
	refused(t, s, bearer(ours().token(t, "RS256", valid("alice"))), errKey)
	refused(t, s, bearer(theirs().token(t, "RS256", valid("alice"))), errKey)
}
