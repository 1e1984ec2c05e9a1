package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/comporta/comporta"
)

// A word is a key of a mapping in the file. The tables of words are the one
// list of what a policy may say: the reader and the schema are held to them.
type word struct {
	name string
	// doc is the word in one line, for the schema.
	doc string
	// shape is the schema of its value.
	shape shape
	// instead, for a word that is not built yet, is what to do meanwhile.
	instead string
}

var fileWords = []word{
	{name: "server", doc: "Where the gateway listens and what stands behind it.", shape: object(serverWords)},
	{name: "store", doc: "What keeps the counts.", shape: object(storeWords)},
	{name: "secret_file", doc: "The key of the hashes that stand for what clients sent; made once where it does not exist. Default: beside the save file.", shape: aText},
	{name: "time_zone", doc: "An IANA name, for quotas. Default: UTC.", shape: aText},
	{name: "headers", doc: "The header fields that tell of limits. Default: triple.", shape: oneOrList(oneOf("triple", "draft-11", "x-ratelimit"))},
	{name: "cors", doc: "Which origins may read answers.", shape: object(corsWords, "origins")},
	{name: "paths", doc: "How paths are read. Default: strict.", shape: either(oneOf("strict", "loose"), object(pathsWords))},
	{name: "preflight", doc: "The limit per address that CORS preflights stand under, or off. Default: 600/min.", shape: aText},
	{name: "identities", doc: "How clients are told apart.", shape: object(identitiesWords)},
	{name: "self_service", doc: "Where clients may ask for their own limits: a path, off, or a mapping. Default: /.well-known/rate-limits.",
		shape: either(aText, object(selfServiceWords))},
	{name: "allow", doc: "Networks and clients that no limit holds.", shape: oneOrList(listedShape)},
	{name: "deny", doc: "Networks and clients that are refused with 403.", shape: oneOrList(listedShape)},
	{name: "limits", doc: "The limits. All that match a request apply, all or nothing.", shape: listOf(exactlyOne(object(limitWords, "name", "per"), "limit", "quota"))},
	{name: "plans", doc: "Numbers by the names of plans and limits. They replace a limit's own for clients with that plan.", shape: mapOf(mapOf(aText))},
	{name: "marks", doc: "How the upstream is told of requests over a limit that marks.", shape: object(marksWords)},
	{name: "overrides", doc: "Single clients' own numbers.", shape: listOf(object(overrideWords, "who", "limits"))},
	{name: "queue", instead: "use a leaky_bucket, or max_wait on a token_bucket"},
	{name: "concurrency", instead: "limit the rate"},
}

var serverWords = []word{
	{name: "listen", doc: "Where clients come in, host:port. Default: 127.0.0.1:8080.", shape: aText},
	{name: "metrics", doc: "Where health and metrics are told, host:port, or off. Default: 127.0.0.1:9901.", shape: aText},
	{name: "upstream", doc: "The API behind the gateway, an http or https URL.", shape: aText},
	{name: "tls", doc: "The certificate for listen; plain HTTP without it.", shape: object(tlsWords, "cert", "key")},
	{name: "timeouts", doc: "How long the gateway waits for what.", shape: object(timeoutWords)},
	{name: "max_header_bytes", doc: "The largest request header. Default: 64KiB.", shape: aSize},
	{name: "max_body_bytes", doc: "The largest request body. Default: 100MiB.", shape: aSize},
	{name: "proxy_protocol", doc: "Addresses and ranges whose connections begin with the PROXY protocol. Default: none.", shape: oneOrList(aText)},
	{name: "admin", doc: "Where operators look and change things. Default: nowhere.", shape: object(adminWords, "listen", "token_file")},
}

var tlsWords = []word{
	{name: "cert", doc: "The certificate chain, a PEM file.", shape: aText},
	{name: "key", doc: "Its private key, a PEM file.", shape: aText},
}

var timeoutWords = []word{
	{name: "read_header", doc: "For a client to send its header. Default: 10s.", shape: aDuration},
	{name: "idle", doc: "For which a kept connection may be silent. Default: 2m.", shape: aDuration},
	{name: "dial", doc: "For a connection to the upstream. Default: 5s.", shape: aDuration},
	{name: "response_header", doc: "For the upstream's answer to begin. Default: 1m.", shape: aDuration},
	{name: "drain", doc: "For requests in flight when the gateway stops. Default: 30s.", shape: aDuration},
}

var storeWords = []word{
	{name: "memory", doc: "Counts in this process; beside redis, only while that fails.", shape: object(memoryWords)},
	{name: "redis", doc: "Counts in Redis or Valkey, shared by all gateways: an address, or a mapping.", shape: either(aText, object(redisWords, "url"))},
}

var redisWords = []word{
	{name: "url", doc: "The servers: redis://, rediss://, redis-sentinel:// or redis-cluster://.", shape: aText},
	{name: "password_file", doc: "The file that holds the password. Default: the one in url.", shape: aText},
	{name: "sentinel_password_file", doc: "The file that holds the password of the sentinels. Default: the one in url.", shape: aText},
	{name: "timeout", doc: "For an answer, from 1ms to 10s. Default: 50ms.", shape: aDuration},
	{name: "on_error", doc: "What holds while Redis fails. Default: local.", shape: oneOf("local", "allow", "deny")},
	{name: "prefix", doc: "What every key begins with. Default: comporta.", shape: matching(prefixPattern)},
	{name: "max_known", doc: "The keys whose last answer is remembered. Default: 65_536.", shape: aNumber(1, maxKnown)},
}

var memoryWords = []word{
	{name: "max_keys", doc: "The most keys kept. Default: 1_000_000.", shape: aNumber(1, maxKeys)},
	{name: "max_log_bytes", doc: "The most memory for all sliding logs together. Default: 256MiB.", shape: aSize},
	{name: "save", doc: "The file in which counts survive a restart. Default: none.", shape: aText},
}

var corsWords = []word{
	{name: "origins", doc: "Origins such as https://app.example.com, or * for any.", shape: oneOrList(aText)},
}

var pathsWords = []word{
	{name: "loose", doc: "Let through what an upstream might read otherwise. Default: false.", shape: aBoolean},
	{name: "fold_case", doc: "Match paths without regard to case. Default: false.", shape: aBoolean},
	{name: "ignore_trailing_slash", doc: "Match /a/ as /a. Default: false.", shape: aBoolean},
}

var limitWords = []word{
	{name: "name", doc: "The limit's name: a part of each of its keys.", shape: matching(namePattern)},
	{name: "match", doc: "Patterns of requests. Default: all.", shape: oneOrList(aText)},
	{name: "except", doc: "Patterns of requests that are not under it.", shape: oneOrList(aText)},
	{name: "per", doc: "Whose budget a request is counted against.", shape: perShape},
	{name: "limit", doc: "Units per period: 100/min burst 20, or unlimited.", shape: aText},
	{name: "quota", doc: "Units per calendar period: 1000/month, or unlimited.", shape: aText},
	{name: "starts_at", doc: "Where a quota's period starts: HH:MM; mon 06:00; 15 06:00; 04-06 06:00.", shape: either(aText, aNumber(1, 31))},
	{name: "algorithm", doc: "How a limit decides. Default: token_bucket.", shape: oneOf("token_bucket", "leaky_bucket", "fixed_window", "sliding_counter", "sliding_log")},
	{name: "max_wait", doc: "How long a token_bucket may let a request wait instead of refusing it.", shape: aDuration},
	{name: "on_missing", doc: "What becomes of requests that show no such identity: they are not under the limit, are counted by their address, or are refused with 401. Default: skip; address for a claimed field.",
		shape: oneOf("skip", "address", "deny")},
	{name: "cost", doc: "What a request costs: a number, numbers by pattern, what a header says, or an estimate that the answer settles. Default: 1.", shape: costShape},
	{name: "charge", doc: "Which requests are charged. Default: admitted.", shape: oneOf("admitted", "attempts", "failures")},
	{name: "failure", doc: "Which answers are failures, with charge: failures.", shape: object(failureWords, "status")},
	{name: "stagger", doc: "Start each key's windows at an offset of its own. Default: false.", shape: aBoolean},
	{name: "show", doc: "Tell clients of it. Default: true, but false per everyone, in shadow and unlimited.", shape: aBoolean},
	{name: "mode", doc: "enforce, shadow (count and report only) or off. Default: enforce.", shape: oneOf("enforce", "shadow", "off")},
	{name: "enforce", doc: "Enforce it for a share of its clients, from 1% to 99%, and be in shadow for the others. Default: all.", shape: matching(percentPattern)},
	{name: "on_limit", doc: "What becomes of requests over the limit: refuse, mark, demote, or a status. Default: refuse.",
		shape: either(oneOf("refuse", "mark", "demote"), object(onLimitWords, "status"))},
	{name: "block", doc: "How long a client that was denied stays denied. Default: not longer than the limit says.", shape: aDuration},
	{name: "message", doc: "A line of text for clients that are refused.", shape: aText},
	{name: "help", doc: "A link for clients that are refused.", shape: aText},
	{name: "warn_at", doc: "How much of a quota or a fixed window is used when that is told: a share, or a mapping with a header.",
		shape: either(matching(percentPattern), object(warnAtWords, "at"))},
	{name: "lockout", doc: "Accept that whoever can name a client can lock it out.", shape: oneOf("accepted")},
	{name: "on_error", doc: "What holds while Redis fails. Default: what store.redis says.", shape: oneOf("local", "allow", "deny")},
	{name: "lease", doc: "Take units ahead, so that most requests need not ask Redis. Default: none.", shape: either(oneOf("auto"), object(leaseWords))},
	{name: "queue", instead: "use a leaky_bucket, or max_wait on a token_bucket"},
	{name: "concurrency", instead: "limit the rate"},
}

var leaseWords = []word{
	{name: "size", doc: "Units taken at once. Default: auto, which fits them to the rate.", shape: either(oneOf("auto"), aNumber(1, comporta.MaxUnits))},
	{name: "ttl", doc: "How long units that were taken ahead may be used, from 10ms to 1m. Default: 1s.", shape: aDuration},
	{name: "share", doc: "The most of a full budget that lies in leases, from 1% to 50%. Default: 10%.", shape: matching(percentPattern)},
}

// elsewhere are words that people try and that are said otherwise here.
var elsewhere = map[string]string{
	"burst":  "write it into the limit: 100/min burst 20",
	"window": "write it into the limit: 100/10m",
	"period": "write it into the limit: 100/10m",
	"rate":   "write limit: 100/min",
}

// A table is a mapping with its words, for hints about words in the wrong place.
var tables = []struct {
	path  string
	words []word
}{
	{"", fileWords}, {"server", serverWords}, {"server.tls", tlsWords}, {"server.timeouts", timeoutWords},
	{"store", storeWords}, {"store.memory", memoryWords}, {"store.redis", redisWords}, {"cors", corsWords}, {"paths", pathsWords},
	{"identities", identitiesWords}, {"identities.api_key", apiKeyWords}, {"identities.api_key.keys", keysWords},
	{"identities.user", userWords}, {"identities.user.jwt", jwtWords}, {"identities.address", addressWords},
	{"identities.address.ipv6_outer", outerWords}, {"identities.claimed", claimedWords},
	{"server.admin", adminWords}, {"self_service", selfServiceWords},
	{"a limit", limitWords}, {"cost", costWords}, {"estimate", estimateWords}, {"from", fromWords}, {"failure", failureWords},
	{"on_limit", onLimitWords}, {"warn_at", warnAtWords}, {"lease", leaseWords}, {"marks", marksWords}, {"an override", overrideWords}, {"per", perWords}, {"who", whoWords},
}

// mapping reads a mapping of known words. Unknown words, words that are not
// built yet and doubles are problems; what is left is there by name. Of doubles
// the first counts, so that its value is checked too.
func (r *reader) mapping(n *node, what string, words []word) map[string]entry {
	if n.kind != mapping {
		r.wrongKind(n, what, "a mapping of words: "+strings.Join(names(words), ", "))
		return nil
	}
	found := map[string]entry{}
	for _, e := range r.once(n) {
		switch i := slices.IndexFunc(words, func(w word) bool { return w.name == e.key.text }); {
		case i < 0:
			r.fault(e.key, fmt.Sprintf("unknown word %q in %s", e.key.text, what), suggest(e.key.text, words))
		case words[i].instead != "":
			r.notYet(e.key, words[i].instead)
		default:
			found[e.key.text] = e
		}
	}
	return found
}

// once are the entries of a mapping, the first of each key; others are problems.
func (r *reader) once(n *node) (out []entry) {
	lines := map[string]int{}
	for _, e := range n.entries {
		if line, double := lines[e.key.text]; double {
			r.fault(e.key, fmt.Sprintf("%q is written twice", e.key.text), fmt.Sprintf("the first is in line %d: remove one", line))
			continue
		}
		lines[e.key.text] = e.key.line
		out = append(out, e)
	}
	return out
}

func (r *reader) notYet(n *node, instead string) {
	r.fault(n, fmt.Sprintf("%q is not built yet", n.text), "meanwhile: "+instead)
}

// names are the words that can be used.
func names(words []word) (out []string) {
	for _, w := range words {
		if w.instead == "" {
			out = append(out, w.name)
		}
	}
	return out
}

// suggest is a hint for an unknown word: one spelt alike, else the place where
// that very word belongs, else the list.
func suggest(wrong string, words []word) string {
	known := names(words)
	if hint := elsewhere[wrong]; hint != "" {
		return hint
	}
	if near := nearest(wrong, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	for _, t := range tables {
		if slices.Contains(names(t.words), wrong) {
			if t.path == "" {
				return fmt.Sprintf("%q belongs at the top of the file", wrong)
			}
			return fmt.Sprintf("%q belongs in %s", wrong, t.path)
		}
	}
	return "known here: " + strings.Join(known, ", ")
}

// nearest is the choice that is at most a third of its letters away, or "".
func nearest(wrong string, choices []string) string {
	wrong = strings.ToLower(strings.ReplaceAll(wrong, "-", "_"))
	best, least := "", 1<<30
	for _, c := range choices {
		if d := distance(wrong, strings.ReplaceAll(c, "-", "_")); d < least && d <= max(1, len(c)/3) {
			best, least = c, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, replace or swap with a
// neighbour. Words much longer than any choice are as far as they are long.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
