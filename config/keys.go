package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta/identity"
)

const (
	// maxKeysFile and mostKeys bound a file of keys: so many are read in seconds.
	// Whoever has more asks Redis or a URL for each.
	maxKeysFile = 16 << 20
	mostKeys    = 100_000
	// mostProblems are told of a file, whose keys may all be wrong in the same way.
	mostProblems = 100
	// shortKey is the length under which a key may be guessed.
	shortKey = 16
)

var keyWords = []word{
	{name: "id", doc: "What is counted; several keys may share one."},
	{name: "key", doc: "The key itself."},
	{name: "sha256", doc: "Its SHA-256 in hexadecimal, instead."},
	{name: "plan", doc: "The plan of that id."},
	{name: "expires", doc: "The last day on which it works, or the instant at which it ends."},
}

// LoadKeys reads the file of keys and gives them to APIKey, at any time: keys are
// taken in place of those before, all at once, or, with an error, not at all. What
// is wrong with the file comes as Problems; no error repeats a key. It does nothing
// where Keyring names no file.
func (c *Config) LoadKeys() error {
	if c.Keyring == nil || c.Keyring.File == "" {
		return nil
	}
	keys, _, err := c.ReadKeys()
	if err == nil {
		c.APIKey.Use(keys)
	}
	return err
}

// ReadKeys is LoadKeys that gives the keys to nobody but its caller, with what is
// allowed in the file and probably not meant. Keyring must name one.
func (c *Config) ReadKeys() (*identity.Keys, []Problem, error) {
	f, err := os.Open(c.Keyring.File)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeysFile+1))
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	return c.parseKeys(data, info.Mode())
}

// parseKeys reads a list of keys, or a mapping that has it under keys.
func (c *Config) parseKeys(data []byte, mode fs.FileMode) (*identity.Keys, []Problem, error) {
	k := &keysReader{reader: &reader{config: &Config{Policy: c.Policy}}, of: c, open: mode.Perm()&0o004 != 0,
		sums: make(map[[sha256.Size]byte]int), plans: make(map[string]planned)}
	keys := k.file(data)
	k.unlisted()
	if len(k.problems) > 0 {
		k.problems.sort()
		return nil, nil, k.problems
	}
	ring, err := identity.NewKeys(keys)
	if err != nil {
		return nil, nil, Problems{place{c.Keyring.File, 1, 1}.problem(err.Error(), "change one of the keys")}
	}
	Problems(k.config.Warnings).sort()
	return ring, k.config.Warnings, nil
}

// A keysReader goes over a file of keys. It repeats nothing that could be a key.
type keysReader struct {
	*reader // warns a config of its own
	of      *Config
	open    bool // every user of the machine can read the file
	sums    map[[sha256.Size]byte]int
	plans   map[string]planned // by id
}

// planned is the plan of an id, and the line that says so first.
type planned struct {
	plan string
	line int
}

func (k *keysReader) file(data []byte) (keys []identity.Key) {
	name := k.of.Keyring.File
	top := place{name, 1, 1}
	if len(data) > maxKeysFile {
		k.problems = append(k.problems, top.problem("the file is larger than "+formatSize(maxKeysFile), manyKeys))
		return nil
	}
	parts, items := pieces(data), 0
	for _, piece := range parts {
		if items += piece.items; items > mostKeys {
			k.problems = append(k.problems, place{name, piece.line + 1, 1}.problem(fmt.Sprintf("the file has more than %d keys", mostKeys), manyKeys))
			return nil
		}
	}
	for _, piece := range parts {
		read, problems := readTree(name, piece.data, &keysForm)
		for i := range problems {
			problems[i].Line += piece.line
		}
		if k.problems = append(k.problems, problems...); read == nil {
			continue
		}
		read.shift(piece.line)
		for _, item := range k.list(read) {
			if len(k.problems) >= mostProblems {
				k.fault(item, "from here on the file is not looked at", "mend what is wrong before it, and ask again")
				return nil
			}
			if key, ok := k.key(item); ok {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 0 && len(k.problems) == 0 {
		k.warn(&node{place: top}, "W-NO-KEYS", "there are no keys: no request has one", "list them, each with id: and key: or sha256:")
	}
	return keys
}

const manyKeys = "keep so many in Redis, or behind a URL: keys: {redis: comporta-keys}"

// list is the list that a piece of the file is, or has under keys.
func (k *keysReader) list(n *node) []*node {
	if e, ok := n.entry("keys"); ok && len(n.entries) == 1 {
		n = e.value
	}
	switch n.kind {
	case list:
		return n.items
	case mapping:
		k.fault(n, "a file of keys is a list, or the one word keys with that list", "begin each key with \"- id:\"")
	default:
		k.wrongKind(n, "a file of keys", "a list: each key begins with \"- id:\"")
	}
	return nil
}

// words are those of one key. Unknown ones are not repeated: a key may stand there.
func (k *keysReader) words(n *node) map[string]entry {
	if n.kind != mapping {
		k.wrongKind(n, "a key", "a mapping of words: id, key or sha256, plan, expires")
		return nil
	}
	found := make(map[string]entry, len(n.entries))
	for _, e := range n.entries {
		_, double := found[e.key.text]
		switch {
		case !slices.Contains(names(keyWords), e.key.text):
			k.fault(e.key, "an unknown word stands here", "known here: "+strings.Join(names(keyWords), ", "))
		case double:
			k.fault(e.key, fmt.Sprintf("%q is written twice", e.key.text), "remove one")
		default:
			found[e.key.text] = e
		}
	}
	return found
}

func (k *keysReader) key(n *node) (key identity.Key, sound bool) {
	before := len(k.problems)
	words := k.words(n)
	if words == nil {
		return key, false
	}
	if e, ok := words["id"]; !ok {
		k.fault(n, "a key has no id", "write id: and the name under which it is counted")
	} else if key.ID, ok = k.text(e.value, "id", "acme"); ok {
		if _, err := k.of.APIKey.For(key.ID); err != nil {
			wrong, hint := splitHint(err.Error(), "write it like acme")
			k.fault(e.value, wrong, hint)
		}
	}
	if e, ok := words["plan"]; ok {
		key.Plan = k.plan(e.value)
	}
	k.sum(n, words, &key)
	if e, ok := words["expires"]; ok {
		key.Expires = k.expires(e.value)
	}
	if len(k.problems) > before {
		return key, false
	}
	k.unique(n, &key)
	return key, len(k.problems) == before
}

// plan reads the name of a plan, which the policy must have.
func (k *keysReader) plan(n *node) string {
	said, ok := k.text(n, "plan", "free")
	if !ok {
		return ""
	}
	switch {
	case k.of.hasPlan(said):
	case len(k.of.Policy.Plans) == 0:
		k.warn(n, "W-KEY-PLAN", fmt.Sprintf("the policy has no plans, so %q is none", said), k.of.plansHint(said))
		return ""
	default:
		k.fault(n, fmt.Sprintf("the policy has no plan %q", said), k.of.plansHint(said))
	}
	return said
}

// sum reads a key, or what stands for it. Neither is repeated.
func (k *keysReader) sum(n *node, words map[string]entry, key *identity.Key) {
	plain, isPlain := words["key"]
	hashed, isHashed := words["sha256"]
	switch {
	case isPlain == isHashed:
		k.fault(n, "a key is given by key, or by sha256, and by one of them", "write key: and the key itself, or sha256: and the 64 hexadecimal digits of its SHA-256")
	case isHashed:
		said, ok := k.text(hashed.value, "sha256", "the output of sha256sum")
		if !ok {
			return
		}
		sum, err := hex.DecodeString(said)
		if err != nil || len(sum) != len(key.Sum) {
			k.fault(hashed.value, "sha256 is not 64 hexadecimal digits", "write what printf %s KEY | sha256sum prints; digits alone go in quotes")
			return
		}
		key.Sum = [sha256.Size]byte(sum)
		if key.Sum == sha256.Sum256(nil) {
			k.fault(hashed.value, "sha256 is that of an empty key", "write what printf %s KEY | sha256sum prints")
		}
	default:
		k.plainKey(plain.value, key)
	}
}

func (k *keysReader) plainKey(n *node, key *identity.Key) {
	said, ok := k.text(n, "key", "a long random text")
	if !ok {
		return
	}
	sum, err := identity.SumKey(said)
	if err != nil {
		k.fault(n, err.Error(), "write a long random text without blanks")
		return
	}
	key.Sum = sum
	if len(said) < shortKey {
		k.warn(n, "W-KEY-SHORT", fmt.Sprintf("a key of fewer than %d characters may be guessed", shortKey), "give out a random one of 32")
	}
	if k.open {
		k.open = false // said once
		k.warn(n, "W-KEYS-OPEN", "keys stand here, and every user of this machine can read the file", "run chmod 640 on it, or write sha256: instead of key:")
	}
}

// unlisted warns of clients that the policy names by an id that no key has.
func (k *keysReader) unlisted() {
	for _, n := range k.of.namings {
		if _, listed := k.plans[n.value]; !listed && n.to.Source == identity.Source(k.of.APIKey) {
			k.warn(n.at, "W-KEY-UNLISTED", fmt.Sprintf("no key has the id %q", n.value), fmt.Sprintf("list one in %s, or remove what is said of it here", k.of.Keyring.File))
		}
	}
}

// expires reads the last day on which a key works, or the instant at which it ends.
func (k *keysReader) expires(n *node) time.Time {
	said, ok := k.text(n, "expires", "2027-01-31")
	if !ok {
		return time.Time{}
	}
	end, err := time.Parse(time.RFC3339, said)
	if day, wrong := time.Parse(time.DateOnly, said); wrong == nil {
		end, err = k.of.endOf(day), nil
	}
	if err != nil {
		k.fault(n, "expires is neither a day nor an instant", "write 2027-01-31, the last day on which the key works, or 2027-01-31T12:00:00Z")
		return time.Time{}
	}
	if !k.of.options.now().Before(end) {
		k.warn(n, "W-KEY-EXPIRED", "this key has expired", "remove it; what was counted for its id stays")
	}
	return end
}

// unique wants every key to be listed once, and all of an id to have one plan.
func (k *keysReader) unique(n *node, key *identity.Key) {
	if line, double := k.sums[key.Sum]; double {
		k.fault(n, "the same key is listed twice", fmt.Sprintf("the first is in line %d: remove one, or make a new key", line))
		return
	}
	k.sums[key.Sum] = n.line
	if first, shared := k.plans[key.ID]; !shared {
		k.plans[key.ID] = planned{key.Plan, n.line}
	} else if first.plan != key.Plan {
		k.fault(n, "keys of one id have two plans", fmt.Sprintf("the other is in line %d: they share a budget and so a plan; give them one, or another id", first.line))
	}
}
