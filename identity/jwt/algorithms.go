package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"

	"github.com/golang-jwt/jwt/v5"
)

// An algorithm verifies signatures with keys that fit it.
type algorithm struct {
	name   string // as tokens give it
	method jwt.SigningMethod
	fits   func(key any) bool
}

// algorithms are all that are ever taken. There is no none among them.
var algorithms = [...]algorithm{
	{"RS256", jwt.SigningMethodRS256, isRSA},
	{"RS384", jwt.SigningMethodRS384, isRSA},
	{"RS512", jwt.SigningMethodRS512, isRSA},
	{"PS256", jwt.SigningMethodPS256, isRSA},
	{"PS384", jwt.SigningMethodPS384, isRSA},
	{"PS512", jwt.SigningMethodPS512, isRSA},
	{"ES256", jwt.SigningMethodES256, isCurve(256)},
	{"ES384", jwt.SigningMethodES384, isCurve(384)},
	{"EdDSA", jwt.SigningMethodEdDSA, isEd25519},
	{"HS256", jwt.SigningMethodHS256, isSecret},
}

// Algorithms are the names of all algorithms that are ever taken.
func Algorithms() (names []string) {
	for i := range algorithms {
		names = append(names, algorithms[i].name)
	}
	return names
}

// algorithmOf is the algorithm of a name; nil where it is none that is taken.
func algorithmOf(name string) *algorithm {
	for i := range algorithms {
		if algorithms[i].name == name {
			return &algorithms[i]
		}
	}
	return nil
}

func isRSA(key any) bool {
	_, is := key.(*rsa.PublicKey)
	return is
}

// isCurve holds a key to the algorithm's own curve, which verifying does not.
func isCurve(bits int) func(any) bool {
	return func(key any) bool {
		k, is := key.(*ecdsa.PublicKey)
		return is && k.Curve.Params().BitSize == bits
	}
}

func isEd25519(key any) bool {
	_, is := key.(ed25519.PublicKey)
	return is
}

func isSecret(key any) bool {
	_, is := key.([]byte)
	return is
}
