package config

import (
	"slices"

	"github.com/comporta/comporta/identity/jwt"
)

// The words about who is asking, and those of what operators and clients may ask.

var identitiesWords = []word{
	{name: "api_key", doc: "Clients by their API keys.", shape: object(apiKeyWords, "keys")},
	{name: "user", doc: "Clients by a verified token, or by a header of a proxy that checks who they are.",
		shape: either(object(only(userWords, "jwt"), "jwt"), object(without(userWords, "jwt"), "header", "from"))},
	{name: "address", doc: "How a client's address is found.", shape: object(addressWords)},
	{name: "claimed", doc: "Bounds of what is done for identities that nobody proves.", shape: object(claimedWords)},
}

var apiKeyWords = []word{
	{name: "header", doc: "A header that holds the key.", shape: aText},
	{name: "query", doc: "A query parameter that holds it.", shape: aText},
	{name: "cookie", doc: "A cookie that holds it.", shape: aText},
	{name: "bearer", doc: "Authorization: Bearer holds it. Default: false.", shape: aBoolean},
	{name: "keys", doc: "The file of keys, or where to ask for them.",
		shape: either(aText, object(without(keysWords, "url", "token_file"), "redis"), object(without(keysWords, "redis"), "url"))},
}

var keysWords = []word{
	{name: "redis", doc: "The hash of keys in the Redis of store.", shape: aText},
	{name: "url", doc: "Where to ask for a key: https, or http on the loopback.", shape: aText},
	{name: "token_file", doc: "The file of the token that is shown to url.", shape: aText},
	{name: "cache", doc: "How long an answer is remembered. Default: 1m.", shape: aDuration},
	{name: "cache_unknown", doc: "How long it is remembered that there is no such key. Default: 10s.", shape: aDuration},
	{name: "max_cached", doc: "The most answers that are remembered. Default: 100_000.", shape: aNumber(minCached, maxCached)},
	{name: "timeout", doc: "For an answer. Default: 500ms.", shape: aDuration},
	{name: "on_error", doc: "What holds while nobody answers: the last answer, no key is known, or requests with a key are refused with 503. Default: stale.",
		shape: oneOf("stale", "unknown", "deny")},
}

var userWords = []word{
	{name: "jwt", doc: "JSON Web Tokens.", shape: object(jwtWords)},
	{name: "header", doc: "The header in which a proxy says who it is.", shape: aText},
	{name: "from", doc: "The proxies that are believed.", shape: oneOrList(aText)},
	{name: "plan_header", doc: "The header in which it says the plan.", shape: aText},
	{name: "unknown_plan", doc: "The plan of those for whom it says none that there is.", shape: aText},
}

var jwtWords = []word{
	{name: "keys", doc: "The issuer's key set: a file, or an https URL.", shape: aText},
	{name: "secret_file", doc: "The file of the secret of HS256, instead.", shape: aText},
	{name: "issuer", doc: "What iss must be. Default: anything.", shape: aText},
	{name: "audience", doc: "Names of which aud must hold one. Default: anything.", shape: oneOrList(aText)},
	{name: "claim", doc: "The claim that names the user. Default: sub.", shape: aText},
	{name: "plan_claim", doc: "The claim that names the plan. Default: none.", shape: aText},
	{name: "unknown_plan", doc: "The plan of users whose tokens name none that there is.", shape: aText},
	{name: "algorithms", doc: "The algorithms of signatures that are taken. Default: all of them.", shape: oneOrList(oneOf(jwt.Algorithms()...))},
	{name: "leeway", doc: "How far the issuer's clock may be off, up to 10m. Default: 30s.", shape: aDuration},
	{name: "header", doc: "A header that holds the token alone. Default: Authorization, after Bearer.", shape: aText},
}

var addressWords = []word{
	{name: "trusted_proxies", doc: "Addresses and ranges whose forwarding header is believed. Default: none.", shape: oneOrList(aText)},
	{name: "header", doc: "The forwarding header. Default: X-Forwarded-For.", shape: aText},
	{name: "ipv6_prefix", doc: "How many bits of an IPv6 address are one client. Default: 64.", shape: aNumber(1, 128)},
	{name: "ipv6_outer", doc: "A wider IPv6 range that has a multiple of each limit per address. Default: {prefix: 48, times: 16}.",
		shape: either(oneOf("off"), object(outerWords))},
}

var outerWords = []word{
	{name: "prefix", doc: "The bits of the wider range. Default: 48.", shape: aNumber(1, 127)},
	{name: "times", doc: "How many times the limit it has. Default: 16.", shape: aNumber(1, maxTimes)},
}

var claimedWords = []word{
	{name: "max_body", doc: "How much of a body is read to find a field; longer ones are refused with 413. Default: 64KiB.", shape: aSize},
	{name: "new_keys", doc: "How many new values one address may come with for each limit. Default: 100/min burst 300.", shape: aText},
}

// sourceWords are the mappings that tell clients apart, perWords also what joins them.
var (
	sourceWords = []word{
		{name: "header", doc: "The value of a request header; anybody can send any.", shape: aText},
		{name: "from", doc: "The proxies whose header is believed; from others it is dropped.", shape: oneOrList(aText)},
		{name: "path", doc: "The value of a wildcard of the patterns in match.", shape: aText},
		{name: "claimed", doc: "A field of a form or JSON body, which nobody proves.", shape: aText},
		{name: "exact", doc: "Take the field as it is, neither trimmed nor folded. Default: false.", shape: aBoolean},
	}
	perWords = append(slices.Clone(sourceWords), word{name: "all", doc: "Several of these as one client.", shape: listOf(sourceShape)})
)

// sourceShape is one way to tell clients apart, perShape whatever a limit counts by.
var (
	sourceShape = either(oneOf(sourceNames...), object(only(sourceWords, "header", "from"), "header"),
		object(only(sourceWords, "path"), "path"), object(only(sourceWords, "claimed", "exact"), "claimed"))
	optionShape = either(sourceShape, object(only(perWords, "all"), "all"))
	perShape    = oneOrList(optionShape)
)

var adminWords = []word{
	{name: "listen", doc: "Where operators come in: host:port, or unix: and a path.", shape: aText},
	{name: "token_file", doc: "The file of the token that they must show.", shape: aText},
	{name: "overrides", doc: "The file of the overrides that begin at run time. Default: beside the policy, its name with .overrides.json.", shape: aText},
	{name: "audit", doc: "The file that tells who did what, when and why. Default: the gateway's log.", shape: aText},
}

var selfServiceWords = []word{
	{name: "path", doc: "Where clients may ask for their own limits. Default: /.well-known/rate-limits.", shape: aText},
	{name: "limit", doc: "How often an address may. Default: 60/min.", shape: aText},
}

var whoWords = []word{
	{name: "api_key", doc: "The id of an API key.", shape: aText},
	{name: "user", doc: "A user, as the token or the proxy's header names it.", shape: aText},
	{name: "address", doc: "An address or a network.", shape: aText},
	{name: "header", doc: "A header; its value is in value.", shape: aText},
	{name: "from", doc: "The proxies whose header is believed, as a limit says it.", shape: oneOrList(aText)},
	{name: "path", doc: "A wildcard; its value is in value.", shape: aText},
	{name: "claimed", doc: "A field; its value is in value.", shape: aText},
	{name: "value", doc: "The value of the header, wildcard or field.", shape: aText},
}

// whoShape is one client, listedShape one entry of allow and deny.
var (
	whoShapes = []shape{
		object(only(whoWords, "api_key"), "api_key"), object(only(whoWords, "user"), "user"), object(only(whoWords, "address"), "address"),
		object(only(whoWords, "header", "from", "value"), "header", "value"),
	}
	whoShape = either(slices.Concat(whoShapes, []shape{
		object(only(whoWords, "path", "value"), "path", "value"), object(only(whoWords, "claimed", "value"), "claimed", "value"),
	})...)
	listedShape = either(slices.Concat(whoShapes, []shape{aText})...)
)

// only are the words of those names.
func only(words []word, names ...string) []word {
	return slices.DeleteFunc(slices.Clone(words), func(w word) bool { return !slices.Contains(names, w.name) })
}

// without are all words but those of those names.
func without(words []word, names ...string) []word {
	return slices.DeleteFunc(slices.Clone(words), func(w word) bool { return slices.Contains(names, w.name) })
}
