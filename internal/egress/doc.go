// Package egress is a gateway for programs that call the APIs of others: they
// call it in its place, and it keeps within each API's limits for all of them, with
// the manners of package client.
package egress
