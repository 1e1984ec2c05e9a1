package policy

import "fmt"

// An OnError says what becomes of a request when the store cannot answer. They
// are in the order of what they hold: a request falls the strictest way that one
// of its limits asks for.
type OnError uint8

const (
	// Default is what the policy says, for a limit; and for the policy Local where
	// [Options.Local] is given, else Allow.
	Default OnError = iota
	// Allow lets the request pass as far as this limit goes. It decides nothing and
	// shows nothing: a limiter that is down does not take down what it protects.
	Allow
	// Local asks [Options.Local], under this instance's share of the limit.
	Local
	// Deny refuses the request, and nothing is spent anywhere. A limit that refuses
	// nothing, for it is in shadow, marks or demotes, has no say: there it is Allow.
	Deny
)

var onErrors = [...]string{Default: "default", Allow: "allow", Local: "local", Deny: "deny"}

// String is the word for it in policy files and metrics.
func (o OnError) String() string {
	if int(o) < len(onErrors) {
		return onErrors[o]
	}
	return fmt.Sprintf("OnError(%d)", uint8(o))
}

// or is o, or another where o is the default.
func (o OnError) or(other OnError) OnError {
	if o == Default {
		return other
	}
	return o
}

// OnError is what becomes of the limits that say nothing else when the store
// cannot answer: Allow, Local or Deny.
func (e *Engine) OnError() OnError { return e.fallback.onError }
