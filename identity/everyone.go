package identity

// Everyone is all requests as one client. A client can forge nothing, and any
// one client can use up the budget of all.
type Everyone struct{}

// Identity is the same for every request.
func (Everyone) Identity(*Request) (string, bool) { return "everyone", true }

func (Everyone) String() string { return "everyone" }
