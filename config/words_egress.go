package config

var egressWords = []word{
	{name: "listen", doc: "Where programs call, host:port. Default: 127.0.0.1:8089.", shape: aText},
	{name: "metrics", doc: "Where health and metrics are told, host:port, or off. Default: 127.0.0.1:9902.", shape: aText},
	{name: "store", doc: "What keeps the counts of limits, as in a policy file. With redis, all instances keep one limit.", shape: object(storeWords)},
	{name: "apis", doc: "The APIs that are called through it.", shape: listOf(object(egressAPIWords, "name", "path", "upstream"))},
}

var egressAPIWords = []word{
	{name: "name", doc: "The API's name, in metrics, logs and keys.", shape: matching(namePattern)},
	{name: "path", doc: "What paths begin with that go to it; the rest follows the upstream's.", shape: aText},
	{name: "upstream", doc: "Where it is, an http or https URL.", shape: aText},
	{name: "limit", doc: "What all programs together may send, retries included. Default: no limit of its own.", shape: aText},
	{name: "algorithm", doc: "How the limit decides. Default: token_bucket.", shape: oneOf("token_bucket", "leaky_bucket", "fixed_window", "sliding_counter", "sliding_log")},
	{name: "per", doc: "Whom the API counts apart: everyone, or header:NAME, such as header:Authorization. Default: everyone.", shape: aText},
	{name: "headers", doc: "Fields that are set on every request; a value, or {file: NAME} for a secret.", shape: mapOf(either(aText, object(egressHeaderWords, "file")))},
	{name: "attempts", doc: "How often a request is sent at most, from 1 to 20. Default: 3.", shape: aNumber(1, 20)},
	{name: "max_wait", doc: "The longest that a request waits, for a time that the API told or in line. Default: 60s.", shape: aDuration},
	{name: "backoff", doc: "The wait where the API told none.", shape: object(egressBackoffWords)},
	{name: "retry_refused", doc: "Whether requests that are not idempotent are sent again after a 429. Default: true.", shape: aBoolean},
	{name: "budget", doc: "What retries may be of all requests, in percent, or off. Default: 10%.", shape: aText},
	{name: "pace", doc: "How what the API says remains is used. Default: gentle.", shape: oneOf("gentle", "strict", "off")},
	{name: "adaptive", doc: "K of adaptive throttling, from 2 to 100. Default: off.", shape: aNumber(2, 100)},
	{name: "max_waiters", doc: "How many requests may be in line. Default: 1000.", shape: aNumber(1, 1_000_000)},
	{name: "max_body", doc: "Up to which size a body is kept so that it can be sent again; larger ones are sent once. Default: 1MiB.", shape: aSize},
	{name: "timeout", doc: "For a request with all its waits. Default: 10m.", shape: aDuration},
}

var egressHeaderWords = []word{
	{name: "file", doc: "The file that holds the value, blanks around it aside.", shape: aText},
}

var egressBackoffWords = []word{
	{name: "base", doc: "Before the second attempt; it doubles from then on. Default: 500ms.", shape: aDuration},
	{name: "cap", doc: "The longest. Default: 30s.", shape: aDuration},
	{name: "jitter", doc: "How chance is mixed in. Default: full.", shape: oneOf("full", "equal", "decorrelated", "additive", "none")},
}
