// Package grpcclient keeps a gRPC client within the limits of the servers that it
// calls. It is what package client is for HTTP, as a pair of interceptors: calls
// to a server that refused wait for the time that it told, all of them; they slow
// down before it refuses, where it says what remains; and only what may be sent
// again is sent again, within a budget.
//
//	limits := grpcclient.New(client.Options{}, grpcclient.Options{})
//	conn, err := grpc.NewClient(target, append(limits.DialOptions(), ...)...)
//
// Make one Interceptor for the whole program: what is learnt of a server is shared
// by all connections that have it, by the canonical target of each.
//
// # What is believed
//
// RESOURCE_EXHAUSTED is a refusal, and UNAVAILABLE a server that has too much to
// do; so is an HTTP 429 or 503 from a proxy that does not speak gRPC. Of either,
// the time to wait is the longest of these: the trailer grpc-retry-pushback-ms
// (gRFC A6), the detail google.rpc.RetryInfo, and Retry-After or one of its kin in
// the metadata; where there is none of them, the reset of what is used up, by
// RateLimit fields. A pushback that is negative, no number, or there twice forbids to
// try again. RateLimit fields and their kin in the metadata pace the calls to
// come. A message that is too large is RESOURCE_EXHAUSTED as well, but says
// nothing of a limit: it shuts no gate and is not sent again.
//
// # What is sent again
//
// A refused call is, where the server told a time, which invites; where the method
// is idempotent; or where client.Options.RetryRefused is set. After UNAVAILABLE
// the server may have acted: only idempotent methods are sent again, or those that
// a pushback invites. No other status is.
//
// A server stream that is refused before its first message is opened again, and
// its request sent again. A stream on which the client sends more than one message
// waits in line, and is never opened again.
//
// gRPC's own retries, where a service config asks for them, would multiply with
// these and do not know of the gate: DialOptions has grpc.WithDisableRetry. An
// interceptor that retries belongs nowhere beside this one.
package grpcclient
