// Package admin is where operators look and change things while a gateway runs:
// a JSON API behind a token, on an address or socket of its own, and the record of
// what was done there. It also tells of overrides that begin and end.
package admin
