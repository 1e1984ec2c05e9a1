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
//
// # What is waited for
//
// A time that a server told (Retry-After and its kin, see RetryAfter) is a lower
// bound, for all requests to that host and partition: a gate that is shut until
// then, and moves later only. When it opens, requests leave one by one, in the
// order in which they came. A time over MaxWait, or past the context's deadline,
// is not waited for: what was refused comes back at once, as a response that can
// be read, and GaveUp tells why and how long; what was not sent fails at once, with
// a *RateLimitError. What servers say of what remains (see Hints) spreads requests
// before they are refused, and makes none fail, unless Pace is Strict.
//
// # What is sent again
//
// At most Attempts times, within the Budget of its host, and never where it could
// do harm:
//
//   - after a 429, or a 403 that is a limit's: what is idempotent (GET, HEAD,
//     OPTIONS, TRACE, PUT, DELETE, QUERY) or has an Idempotency-Key or
//     X-Idempotency-Key; with RetryRefused anything, since the server has not acted
//   - after 408, 425, 500, 502, 503, 504, 529, a 413 with Retry-After, and where the
//     connection failed: what is idempotent or has a key
//   - x-should-retry and Stripe-Should-Retry, where a server sends them, say so
//     instead of the status: nothing after false; after true, with any status from
//     400, what is idempotent or has a key, or anything with RetryRefused
//   - a body is sent again from GetBody, or not at all; http.NewRequest sets it for
//     bytes and strings
//   - nothing after an upgrade or CONNECT; nothing where the context is marked by
//     NoRetry; nothing that came with AttemptHeader set: somebody retries already
//
// # What it costs
//
// No goroutine, but while a refusal's body is read ahead, and no timer where nothing
// waits. A body is not kept, but for 64 KiB of a refusal's. Of hosts and partitions 10,000 are remembered.
package client
