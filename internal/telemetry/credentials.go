package telemetry

import "github.com/comporta/comporta/identity"

// credential is a kind of what clients show to say who they are, from a fixed list.
type credential uint8

const (
	apiKey credential = iota
	user
	header
	credentials
)

var credentialNames = [credentials]string{"api_key", "user", "header"}

// credentialOf is the kind of a source's credential.
func credentialOf(s identity.Source) credential {
	switch s.String() {
	case "api_key":
		return apiKey
	case "user":
		return user
	}
	return header
}
