package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// An OverrideText is an override as operators say it while the gateway runs.
type OverrideText struct {
	// Who is the client, or the network, as [Config.Who] reads it.
	Who string
	// Limits are its numbers by the limits' names, as 5000/min burst 500.
	Limits map[string]string
	// Through is the last day on which it holds, in the file's zone; "" has no end.
	Through string
	Reason  string
}

// Override is an override under this policy. The error is a sentence that says
// what is wrong with the text. It needs the secret: see LoadSecret. The client is
// named as the text names it where nobody else does.
func (c *Config) Override(t OverrideText) (*policy.Override, error) {
	o := &policy.Override{Limits: make(map[string]comporta.Limit), Reason: t.Reason}
	var err error
	if o.Who, err = c.Who(t.Who); err != nil {
		return nil, err
	}
	if o.Who.Who.Name == "" {
		o.Who.Who.Name = t.Who // operators said it
	}
	if len(t.Limits) == 0 {
		return nil, errors.New("an override has no limits: write a limit's name and its numbers, as requests and 100/min")
	}
	for _, name := range slices.Sorted(maps.Keys(t.Limits)) {
		if o.Limits[name], err = c.numbersFor(name, t.Limits[name], &o.Who); err != nil {
			return nil, err
		}
	}
	if t.Through != "" {
		day, err := time.Parse(time.DateOnly, t.Through)
		if err != nil {
			return nil, errors.New("through is no day: write year, month and day, as 2027-01-31")
		}
		o.Until = c.endOf(day)
	}
	if len(t.Reason) > longestReason || !utf8.ValidString(t.Reason) {
		return nil, fmt.Errorf("reason is longer than %d bytes, or no text: write a line, and where the rest is to be read", longestReason)
	}
	return o, nil
}

// numbersFor reads a client's own numbers for the limit of a name.
func (c *Config) numbersFor(name, text string, who *policy.Listed) (comporta.Limit, error) {
	i := slices.IndexFunc(c.Policy.Limits, func(l *policy.Limit) bool { return l.Name == name })
	if i < 0 {
		return comporta.Limit{}, fmt.Errorf("%q is no limit of the policy", name)
	}
	l := c.Policy.Limits[i]
	if !counts(l, who) {
		return comporta.Limit{}, fmt.Errorf("limit %q never counts that client by itself: it counts per %s", name, l.Per)
	}
	parse := comporta.ParseLimit
	if l.Limit.Calendar != nil {
		parse = comporta.ParseQuota
	}
	said, err := parse(text)
	if err == nil {
		_, err = l.With(said).Compile()
	}
	if err != nil {
		return comporta.Limit{}, fmt.Errorf("limit %q: %w", name, err)
	}
	return said, nil
}

// plainWord is a text that YAML reads as itself, unless it is one of notPlain.
var (
	plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)
	notPlain  = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)
)

// YAML is the override as an item of a policy file's overrides.
func (t OverrideText) YAML() string {
	kind, value, _ := strings.Cut(t.Who, ":")
	who := fmt.Sprintf("{%s: %s}", kind, scalar(value))
	if name, value, split := strings.Cut(value, "="); split && (kind == "header" || kind == "path" || kind == "claimed") {
		who = fmt.Sprintf("{%s: %s, value: %s}", kind, scalar(name), scalar(value))
	}
	var limits []string
	for _, name := range slices.Sorted(maps.Keys(t.Limits)) {
		limits = append(limits, fmt.Sprintf("%s: %s", scalar(name), scalar(t.Limits[name])))
	}
	out := fmt.Sprintf("- who: %s\n  limits: {%s}\n", who, strings.Join(limits, ", "))
	if t.Through != "" {
		out += fmt.Sprintf("  through: %s\n", t.Through)
	}
	if t.Reason != "" {
		out += fmt.Sprintf("  reason: %s\n", scalar(t.Reason))
	}
	return out
}

// scalar is a text as YAML reads it again: in JSON's quotes where it must.
func scalar(text string) string {
	if plainWord.MatchString(text) && !notPlain.MatchString(text) {
		return text
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text always can be
	return strings.TrimSuffix(b.String(), "\n")
}
