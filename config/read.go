package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// maxFile and maxWords bound a policy file: far more than anybody writes by
// hand, and less than the YAML parser, whose time grows with the square of a
// mapping's length, would choke on.
const (
	maxFile  = 256 << 10
	maxWords = 5_000
)

// Load reads a policy file. All that is wrong with it comes at once, as
// Problems; a file that cannot be read is an error of another kind. It opens no
// other file and listens nowhere. Names of files in it are relative to it.
func Load(file string) (*Config, error) { return Options{}.Load(file) }

// Load is [Load] with options.
func (o Options) Load(file string) (*Config, error) {
	data, info, err := readFile(file)
	if err != nil {
		return nil, err
	}
	c, err := o.Parse(file, data)
	if err != nil {
		return nil, err
	}
	c.warnPassword(info.Mode())
	return c, nil
}

// readFile reads no more of a file than is found to be too much.
func readFile(name string) ([]byte, os.FileInfo, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return data, info, err
}

// Parse is Load of a file's text; name stands for it in problems, and files are
// relative to its directory. It never panics. It takes at most 256 KiB of text
// and 5,000 words, the worst of which take a second or two.
func Parse(name string, data []byte) (*Config, error) { return Options{}.Parse(name, data) }

// Parse is [Parse] with options.
func (o Options) Parse(name string, data []byte) (*Config, error) {
	top, problems := readTree(name, data, &policyForm)
	if problems != nil {
		problems.sort()
		return nil, problems
	}
	return o.read(name, top)
}

// read makes a config of a tree.
func (o Options) read(name string, top *node) (*Config, error) {
	r := &reader{options: o, config: &Config{
		options:     o,
		File:        name,
		Server:      defaultServer(),
		Store:       Store{MaxKeys: defaultKeys, MaxLogBytes: defaultLogBytes},
		Policy:      &policy.Policy{Claimed: defaultClaimed()},
		SelfService: defaultSelfService(),
		secret:      new(identity.Secret), sources: sources{},
	}}
	r.config.Policy.Secret = r.config.secret
	r.file(top)
	if len(r.problems) > 0 {
		r.problems.sort()
		return nil, r.problems
	}
	r.warnings()
	Problems(r.config.Warnings).sort()
	return r.config, nil
}

// file reads the words at the top, those first that others lean on.
func (r *reader) file(top *node) {
	words := r.mapping(top, "the file", fileWords)
	if e, ok := words["server"]; ok {
		r.server(e.value)
	}
	if e, ok := words["store"]; ok {
		r.store(e.value)
	}
	if e, ok := words["secret_file"]; ok {
		if said, ok := r.text(e.value, "secret_file", "comporta.secret"); ok {
			r.config.SecretFile = r.beside(said)
		}
	} else if save := r.config.Store.Save; save != "" {
		r.config.SecretFile = save + ".secret"
	}
	if e, ok := words["self_service"]; ok {
		r.selfService(e.value)
	}
	if e, ok := words["time_zone"]; ok {
		r.zone(e.value)
	}
	if e, ok := words["headers"]; ok {
		r.headers(e.value)
	}
	if e, ok := words["cors"]; ok {
		r.cors(e.value)
	}
	if e, ok := words["paths"]; ok {
		r.paths(e.value)
	}
	r.identities(words["identities"].value)
	r.preflight(words["preflight"].value)
	if e, ok := words["limits"]; ok {
		r.limits(e.value)
		top = e.value
	}
	if e, ok := words["plans"]; ok {
		r.plans(e.value)
	}
	if e, ok := words["overrides"]; ok {
		r.overrides(e.value)
	}
	r.marks(words["marks"].value)
	r.lists(words["allow"].value, words["deny"].value)
	r.checkPlanNames()
	r.limitsAt = top
}

// beside is a file's name as the policy file means it.
func (r *reader) beside(name string) string {
	if filepath.IsAbs(name) || r.config.File == "" {
		return name
	}
	return filepath.Join(filepath.Dir(r.config.File), name)
}

// notZones begin what a database of zones has beside the IANA names: the machine's
// own zone, another on each; copies, not on every machine; and clocks that count
// leap seconds, which no calendar does.
var notZones = regexp.MustCompile(`^(Local$|localtime$|posixrules$|posix/|right/)`)

// zone reads an IANA time zone.
func (r *reader) zone(n *node) {
	said, ok := r.text(n, "time_zone", "America/Sao_Paulo")
	if !ok {
		return
	}
	zone, err := time.LoadLocation(said)
	if err != nil || notZones.MatchString(said) {
		r.fault(n, fmt.Sprintf("unknown time zone %q", said), "write an IANA name, such as Europe/Paris, or UTC")
		return
	}
	r.config.Policy.Zone = zone
}

var headerSets = map[string]policy.HeaderSet{"triple": policy.Triple, "draft-11": policy.Draft11, "x-ratelimit": policy.XRateLimit}

func (r *reader) headers(n *node) {
	sets, seen := []policy.HeaderSet{}, map[string]bool{}
	for _, item := range r.several(n, "headers") {
		name, ok := r.choice(item, "headers", "triple", "draft-11", "x-ratelimit")
		if ok && seen[name] {
			r.fault(item, fmt.Sprintf("headers: %s is named twice", name), "remove one")
		}
		if ok {
			seen[name] = true
			sets = append(sets, headerSets[name])
		}
	}
	r.config.Policy.Headers = sets
}

func (r *reader) cors(n *node) {
	e, ok := r.mapping(n, "cors", corsWords)["origins"]
	if !ok {
		if n.kind == mapping {
			r.fault(n, "cors has no origins", "write origins: [https://app.example.com], or leave cors out")
		}
		return
	}
	cors := &policy.CORS{}
	for _, item := range r.several(e.value, "origins") {
		said, ok := r.text(item, "an origin", "https://app.example.com")
		if !ok {
			continue
		}
		if !isOrigin(said) {
			r.fault(item, fmt.Sprintf("%q is no origin", said), `write scheme and host as browsers send them: https://app.example.com, without path or slash at the end; or "*" for any`)
			continue
		}
		cors.Origins = append(cors.Origins, said)
	}
	if len(e.value.items) == 0 && e.value.kind == list {
		r.fault(e.value, "origins is empty", "name one, or leave cors out")
	}
	r.config.Policy.CORS = cors
}

// isOrigin says whether a browser could send s as an Origin, null aside.
func isOrigin(s string) bool {
	if s == "*" {
		return true
	}
	scheme, host, found := strings.Cut(s, "://")
	return found && scheme != "" && host != "" && s == strings.ToLower(s) && !strings.ContainsAny(host, "/?#@*, \t\r\n")
}

func (r *reader) paths(n *node) {
	p := &r.config.Policy.Paths
	if n.kind == text {
		said, _ := r.choice(n, "paths", "strict", "loose")
		p.Loose = said == "loose"
		return
	}
	for name, e := range r.mapping(n, "paths", pathsWords) {
		switch on := r.boolean(e.value, "paths: "+name); name {
		case "loose":
			p.Loose = on
		case "fold_case":
			p.FoldCase = on
		case "ignore_trailing_slash":
			p.IgnoreTrailingSlash = on
		}
	}
}

// limitError puts the problem of a limit where its field is written, or, where
// the field was left out, at fallback.
func (r *reader) limitError(err error, fields map[string]*node, fallback *node, what string) {
	var wrong *comporta.LimitError
	if !errors.As(err, &wrong) {
		r.fault(fallback, what+": "+err.Error(), limitHints["limit"])
		return
	}
	at, name := fields[wrong.Field], wrong.Field
	if at == nil {
		at = fallback
	}
	if name == "duration" {
		name = what
	}
	said, hint := splitHint(wrong.Problem, limitHints[wrong.Field])
	r.fault(at, name+": "+said, hint)
}

// limitHints are what to do about a field where its error does not say so.
var limitHints = map[string]string{
	"limit":     "write it like 100/min",
	"quota":     "write it like 1000/month",
	"burst":     "leave the burst out, or give it to a token_bucket or leaky_bucket that can fill it",
	"algorithm": "leave it out",
	"max_wait":  "leave it out, or use a token_bucket with numbers and charge: admitted",
	"charge":    "leave it out",
	"stagger":   "leave it out, or use fixed_window or sliding_counter",
	"starts_at": "leave it out, or write the start of the quota's period",
	"lease":     "leave it out",
	"duration":  "write it like 10s",
}

// splitHint parts what is wrong from what to do about it, or else takes a hint.
func splitHint(problem, otherwise string) (said, hint string) {
	first := len(problem)
	for _, verb := range [...]string{": write ", ": use ", ": from ", ": at most ", ": match ", ": let "} {
		if i := strings.Index(problem, verb); i >= 0 {
			first = min(first, i)
		}
	}
	if first == len(problem) {
		return problem, otherwise
	}
	return problem[:first], problem[first+2:]
}
