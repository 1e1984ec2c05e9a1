// Package keysource looks API keys up where a file does not hold them: by HTTP,
// or in a Redis hash.
//
// Both are asked for the SHA-256 of a key, in lower-case hex, and never for the key
// itself. Both answer with the same JSON, of which more is not read:
//
//	{"id": "acme", "plan": "pro", "expires": "2027-01-31T00:00:00Z"}
//
// The id is mandatory. What is left out of the others, or null, is no plan and no
// expiry. expires is an instant (RFC 3339).
//
// The functions here remember nothing and ask for each call: they are for an
// identity.Cached. Their errors show neither a sum nor a secret, nor what was answered.
package keysource
