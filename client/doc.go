// Package client keeps a program within the limits of the APIs that it calls: an
// http.RoundTripper that believes what servers say of their limits, slows down
// before they refuse, waits as long as they tell, and sends again only what may
// be sent again.
//
// Wrap any transport; the zero Options are safe:
//
//	api := &http.Client{Transport: client.New(client.Options{})}
//
// Make one for the whole program: what is learnt of a host is shared by all
// requests through one Transport.
package client
