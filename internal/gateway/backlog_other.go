//go:build !linux

package gateway

// refuseNew does what can be done here against new connections to a listener that
// is about to close: nothing. One that is made in that moment may be reset.
func (l *listener) refuseNew() {}
