// Package identity says who is asking: by address, by an API key, by a header, by
// a field of the body, by a part of the path, or everyone as one. Users with tokens
// are in package jwt below it.
//
// # The bargain
//
// A [Source] turns a [Request] into the text that a client is counted and
// stored under. What it reads was sent by the client or by the proxies before
// us, so each source says in its comment what a client may forge: with [APIKey]
// nothing; with [Address] and [ProxyHeader] nothing, as long as only proxies that
// one controls are trusted; with [Header], [Path] and [Claimed] everything, unless
// something before or behind us checks it.
//
// An identity never holds what a client sent: addresses aside, which are what
// access logs hold too, values are there only as an HMAC under a [Secret], so
// that who reads the store, a log or a metric finds no key or name in it. Of an
// API key it holds the id that an operator gave it. Each identity begins with its
// kind ("address:", "header:x-tenant:", "path:id:", "everyone"), and the hash
// covers name and value with their lengths: no two different things are ever the
// same text.
//
// Beside the standard library it imports golang.org/x/text: what one name is,
// however it is spelled, is Unicode's to say (normal forms, full case folding), in
// tables that the standard library does not have.
//
// Sources are safe for concurrent use, and immutable but for the keys that an APIKey
// is given ([APIKey.Use]); a Request belongs to one goroutine. An identity costs one allocation, its own text.
package identity
