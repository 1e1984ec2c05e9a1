// Package jwt proves users by signed tokens: JSON Web Tokens (RFC 7519) that
// an issuer signed whose keys are known.
//
// # The bargain
//
// Nothing in a token is believed before its signature is verified: not a claim,
// and of its header only which key and algorithm it names, both of which must
// be among what the operator configured. Keys that a token brings along (jwk, jku,
// x5c, x5u) are never looked at, and a key is used with the algorithms of its own
// type alone: a public RSA key is no HMAC secret.
//
// After the signature come the claims, read strictly: a claim that is there twice
// is an error, names are compared letter by letter (RFC 8725). A token must say
// when it expires.
//
// What a client may forge: nothing, as long as the issuer keeps its keys. What a
// client may do: show any of its own tokens, so the claim must be one that the issuer
// chooses. A token that fails proves nothing and is ErrUnproved; it counts for
// whatever else the request shows, such as its address.
//
// # What guests do here
//
// Signatures are verified by golang-jwt, keys are read by jwkset, what keyfunc is
// made of. The reading of tokens is ours: golang-jwt decodes the claims before it
// verifies, and forgives doubled ones.
package jwt
