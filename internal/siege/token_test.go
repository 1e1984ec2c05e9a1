package siege

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// A mint signs tokens.
type mint struct{ key ed25519.PrivateKey }

func newMint(t *testing.T) mint {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return mint{key}
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// set is the JSON Web Key Set that its tokens are verified with.
func (m mint) set() string {
	return fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"k1","x":%q}]}`, b64(m.key.Public().(ed25519.PublicKey)))
}

// token is one for a user; claims are more of them, or others.
func (m mint) token(user string, claims map[string]any) string {
	all := map[string]any{"iss": "https://id.example.com", "aud": "api", "sub": user, "exp": time.Now().Add(time.Hour).Unix()}
	for name, v := range claims {
		all[name] = v
	}
	payload, _ := json.Marshal(all) // of texts and numbers
	text := b64([]byte(`{"alg":"EdDSA","kid":"k1","typ":"JWT"}`)) + "." + b64(payload)
	return text + "." + b64(ed25519.Sign(m.key, []byte(text)))
}

// unsigned is a token that says it needs no signature.
func unsigned(user string) string {
	payload, _ := json.Marshal(map[string]any{"iss": "https://id.example.com", "aud": "api", "sub": user, "exp": time.Now().Add(time.Hour).Unix()})
	return b64([]byte(`{"alg":"none"}`)) + "." + b64(payload) + "."
}
