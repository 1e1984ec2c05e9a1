// Package httplimit puts a policy in front of any http.Handler: net/http
// middleware that takes and gives func(http.Handler) http.Handler, so that chi
// and everything like it works unchanged.
//
// The bargain. Every response to a request that a shown limit applies to says
// where the client stands, in the header fields that the policy chooses. A
// request over its limits never reaches the handler, unless they mark or demote it:
// it is answered with 429 or the status that the policy gives, a Retry-After after
// which the same request passes, and a problem document (RFC 9457) that names the
// limits; gRPC requests with HTTP 200 and grpc-status 8. A request that a limit
// delays waits here and then goes on. One that is refused because the store cannot
// answer, which is not the client's doing, gets 503 with a Retry-After, never 429;
// gRPC requests grpc-status 14. The path that the limits saw is the path that the
// handler sees.
//
// What a client sends is believed only as far as the policy's identities say;
// none of it is repeated in an answer but an origin that the policy allows. A
// refused request's body is left to net/http, which reads at most 256 KB of it to
// keep the connection.
//
// Responses that a shared cache may keep (Cache-Control with public or s-maxage,
// status 304) carry none of these fields: they would tell one client's numbers
// to another. Fields that the handler sets itself stay unless ours are the
// tighter; how the two are compared is said at [New].
package httplimit
