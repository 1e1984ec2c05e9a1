//go:build !unix

package gateway

// refuseNew does what can be done here to keep clients out of the queue of a
// listener that is about to close: nothing.
func (l *listener) refuseNew() {}
