// Package gateway is the daemon: a reverse proxy that asks a policy before it
// lets a request through, and an address of its own for health and metrics.
//
// A request goes through these hands: the listener (a connection that does not
// take what is written to it is cut), the desk (one line in the access log, one
// count in each metric), httplimit (the limits, the header fields, the 429), the
// bounds (size and pace of bodies), the proxy (httputil.ReverseProxy), and a lane
// (a connection to the upstream) or http.Transport.
package gateway
