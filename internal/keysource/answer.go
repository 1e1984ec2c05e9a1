package keysource

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/comporta/comporta/identity"
)

// maxAnswer is the most bytes of an answer that are read.
const maxAnswer = 16 << 10

// parse reads what a source says of a key.
func parse(data []byte) (identity.Key, error) {
	var said struct {
		ID      string  `json:"id"`
		Plan    string  `json:"plan"`
		Expires *string `json:"expires"`
	}
	if len(data) > maxAnswer {
		return identity.Key{}, errors.New("the answer is larger than 16 KiB")
	}
	if json.Unmarshal(data, &said) != nil {
		return identity.Key{}, errors.New(`the answer is not as it must be: JSON like {"id": "acme", "plan": "pro", "expires": "2027-01-31T00:00:00Z"}`)
	}
	key := identity.Key{ID: said.ID, Plan: said.Plan}
	if said.Expires != nil {
		at, err := time.Parse(time.RFC3339, *said.Expires)
		if err != nil {
			return identity.Key{}, errors.New("expires in the answer is no instant: write it like 2027-01-31T00:00:00Z, or leave it out")
		}
		key.Expires = at
	}
	return key, nil
}
