package jwt

import (
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
)

const (
	maxKeys     = 128
	maxTries    = 4 // keys that one token is held against
	minRSA      = 2048
	maxRSA      = 8192 // what a forged signature may cost
	shownOfText = 64   // bytes of a name in an error
)

// A key verifies signatures of those algorithms.
type key struct {
	kid        string // "" fits any token
	algorithms []string
	value      any // as algorithm.fits has it
}

// readSet reads a key set. Keys for other uses, and of types or algorithms that are not
// taken, are left out: sets hold such (RFC 7517, section 5). Keys that are meant for us
// and broken are errors beside those that are whole; without any, that is an error too.
func readSet(data []byte, taken []string, secrets bool) (keys []key, broken, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(data, &set) != nil || set.Keys == nil {
		return nil, nil, errors.New(`it is not a JSON Web Key Set, which is written {"keys": [{"kty": "RSA", …}]}`)
	}
	if len(set.Keys) > maxKeys {
		return nil, nil, fmt.Errorf("it holds %d keys: at most %d", len(set.Keys), maxKeys)
	}
	var problems []error
	for i, raw := range set.Keys {
		k, err := readKey(raw, taken, secrets)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("key %d%s: %w", i+1, called(k.kid), err))
		case len(k.algorithms) > 0:
			keys = append(keys, k)
		}
	}
	broken = errors.Join(problems...)
	if len(keys) == 0 {
		return nil, broken, errors.Join(errors.New("it holds no key that verifies signatures of the algorithms that are taken"), broken)
	}
	return keys, broken, nil
}

func called(kid string) string {
	if kid == "" {
		return ""
	}
	return fmt.Sprintf(" (kid %q)", kid[:min(len(kid), shownOfText)])
}

// readKey reads one key; one without algorithms is not for us.
func readKey(raw json.RawMessage, taken []string, secrets bool) (key, error) {
	var m jwkset.JWKMarshal
	if json.Unmarshal(raw, &m) != nil {
		return key{}, errors.New("it is not a JSON Web Key")
	}
	k := key{kid: m.KID}
	secret := m.KTY == jwkset.KtyOct
	switch {
	case m.USE != "" && m.USE != jwkset.UseSig,
		len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify),
		m.ALG != "" && !slices.Contains(taken, string(m.ALG)),
		secret && !secrets,
		!slices.Contains([]jwkset.KTY{jwkset.KtyRSA, jwkset.KtyEC, jwkset.KtyOKP, jwkset.KtyOct}, m.KTY),
		m.KTY == jwkset.KtyEC && m.CRV != jwkset.CrvP256 && m.CRV != jwkset.CrvP384,
		m.KTY == jwkset.KtyOKP && m.CRV != jwkset.CrvEd25519:
		return k, nil
	}
	// Only what verifying takes is read: no private parts, no certificates.
	public := jwkset.JWKMarshal{KTY: m.KTY, CRV: m.CRV, X: m.X, Y: m.Y, N: m.N, E: m.E, K: m.K}
	read, err := jwkset.NewJWKFromMarshal(public, jwkset.JWKMarshalOptions{Private: secret}, jwkset.JWKValidateOptions{})
	if err != nil {
		return k, err
	}
	k.value = read.Key()
	switch v := k.value.(type) {
	case *rsa.PublicKey:
		if bits := v.N.BitLen(); bits < minRSA || bits > maxRSA {
			return k, fmt.Errorf("an RSA key of %d bits is not taken: %d to %d", bits, minRSA, maxRSA)
		}
	case []byte:
		if len(v) < MinSecret {
			return k, tooShort(len(v))
		}
	}
	for _, name := range taken {
		if algorithmOf(name).fits(k.value) && (m.ALG == "" || string(m.ALG) == name) {
			k.algorithms = append(k.algorithms, name)
		}
	}
	if m.ALG != "" && len(k.algorithms) == 0 {
		return k, fmt.Errorf("it is no key for its algorithm, %s", m.ALG)
	}
	return k, nil
}

func tooShort(size int) error {
	return fmt.Errorf("an HMAC secret of %d bytes is too short: at least %d random ones", size, MinSecret)
}

// candidates are the keys that a token may have been signed with, few, and whether one
// is called as the token says.
func candidates(keys []key, kid, alg string) (few []*key, named bool) {
	for i := range keys {
		k := &keys[i]
		named = named || k.kid == kid
		if kid != "" && k.kid != "" && k.kid != kid || !slices.Contains(k.algorithms, alg) {
			continue
		}
		if len(few) < maxTries {
			few = append(few, k)
		}
	}
	return few, named || kid == ""
}
