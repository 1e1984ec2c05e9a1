package identity

import "errors"

// Everyone is all requests as one client. A client can forge nothing, and any
// one client can use up the budget of all.
type Everyone struct{}

// Identity is the same for every request.
func (Everyone) Identity(*Request) (string, bool) { return "everyone", true }

// For is everyone, who has no value: "", or "everyone" again.
func (Everyone) For(value string) (Who, error) {
	if value != "" && value != "everyone" {
		return Who{}, errors.New("everyone is one client: it has no value beside it")
	}
	return Who{ID: "everyone"}, nil
}

func (Everyone) String() string { return "everyone" }
