package probe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A reading is what one standard says of a refusal: kept, or what is against it.
type reading struct {
	standard string
	used     bool
	broken   []string // against a MUST or the grammar
	weak     []string // against a SHOULD
	todo     string
}

// standards reads a refusal by each standard and draft there is.
func (p *prober) standards() (Check, error) {
	s := p.denied()
	if s == nil {
		return Check{Verdict: Unknown, Seen: "nothing was refused"}, nil
	}
	c := Check{Verdict: Good}
	var against, todo []string
	for _, read := range []func(*Shot) reading{readStatus, readRetryAfter, readTriple, readDictionary, readLists, readProblem, readCaching} {
		r := read(s)
		switch {
		case !r.used:
			c.Details = append(c.Details, r.standard+": not used")
			continue
		case len(r.broken) > 0:
			c.Verdict = Bad
			c.Details = append(c.Details, r.standard+": broken: "+strings.Join(append(r.broken, r.weak...), "; "))
		case len(r.weak) > 0:
			if c.Verdict == Good {
				c.Verdict = Warn
			}
			c.Details = append(c.Details, r.standard+": "+strings.Join(r.weak, "; "))
		default:
			c.Details = append(c.Details, r.standard+": kept")
			continue
		}
		against = append(against, r.standard)
		if r.todo != "" {
			todo = append(todo, r.todo)
		}
	}
	if len(against) == 0 {
		c.Seen = "a refusal keeps to all that it uses"
	} else {
		c.Seen = "a refusal is not as these have it: " + strings.Join(against, ", ")
	}
	c.Todo = strings.Join(todo, "; ")
	return c, nil
}

func readStatus(s *Shot) (r reading) {
	r = reading{standard: "RFC 6585 (429)", used: true}
	if s.Status != http.StatusTooManyRequests {
		r.weak = append(r.weak, fmt.Sprintf("the status is %d: 429 is the one for this", s.Status))
	}
	if len(s.Body) == 0 {
		r.weak = append(r.weak, "no body that says why")
		r.todo = "say in the body which limit it was"
	}
	return r
}

var delaySeconds = regexp.MustCompile(`^[0-9]+$`)

// readRetryAfter: delay-seconds or a date (RFC 9110, 10.2.3), on one line, since it
// is no list.
func readRetryAfter(s *Shot) (r reading) {
	lines := s.Header.Values("Retry-After")
	r = reading{standard: "RFC 9110 (Retry-After)", used: len(lines) > 0, todo: "send one Retry-After, in whole seconds"}
	if len(lines) > 1 {
		r.broken = append(r.broken, fmt.Sprintf("%d lines of a field that is no list", len(lines)))
	}
	for _, l := range lines {
		if delaySeconds.MatchString(l) {
			continue
		}
		at, err := http.ParseTime(l)
		switch {
		case err != nil:
			r.broken = append(r.broken, fmt.Sprintf("%.60q is neither whole seconds nor a date", l))
		case at.UTC().Format(http.TimeFormat) != l:
			r.broken = append(r.broken, fmt.Sprintf("%.60q is a date in a form that is no longer to be sent", l))
		}
	}
	return r
}

var firstNumber = regexp.MustCompile(`^[0-9]{1,15}(;|,|$)`)

// epoch: whole seconds from here on are an instant, and no time to wait.
const epoch = 1_000_000_000

// readTriple: the three fields of drafts −00 to −06.
func readTriple(s *Shot) (r reading) {
	h := s.Header
	limit, remaining, reset := h.Get("RateLimit-Limit"), h.Get("RateLimit-Remaining"), h.Get("RateLimit-Reset")
	r = reading{standard: "RateLimit-Limit, -Remaining and -Reset (drafts −00 to −06)", used: limit+remaining+reset != ""}
	if limit != "" && !firstNumber.MatchString(limit) {
		r.broken = append(r.broken, fmt.Sprintf("RateLimit-Limit %.40q does not begin with a number", limit))
	}
	if limit != "" && reset == "" {
		r.broken = append(r.broken, "RateLimit-Limit needs RateLimit-Reset beside it")
	}
	if remaining != "" && !delaySeconds.MatchString(remaining) {
		r.broken = append(r.broken, fmt.Sprintf("RateLimit-Remaining %.40q is no number", remaining))
	}
	if reset != "" {
		n, err := strconv.ParseUint(reset, 10, 63)
		switch {
		case err != nil:
			r.broken = append(r.broken, fmt.Sprintf("RateLimit-Reset %.40q is no whole number of seconds", reset))
		case n >= epoch:
			r.broken = append(r.broken, "RateLimit-Reset is an instant, and ought to be the seconds from now on")
		default:
			r.afterwards(s, time.Duration(n)*time.Second)
		}
	}
	r.todo = "send RateLimit-Limit, -Remaining and -Reset together, as whole numbers, with Reset in seconds from now on"
	return r
}

// afterwards: Retry-After should not end before the quota is there again.
func (r *reading) afterwards(s *Shot, reset time.Duration) {
	if s.Told && s.RetryAfter < reset-time.Second {
		r.weak = append(r.weak, fmt.Sprintf("Retry-After (%v) ends before the reset (%v)", s.RetryAfter.Round(time.Millisecond), reset))
	}
}

var (
	dictionary = regexp.MustCompile(`^ *limit=[0-9]+ *, *remaining=[0-9]+ *, *reset=[0-9]+ *$`)
	looksLike  = regexp.MustCompile(`\b(limit|remaining|reset)=`)
	// A member of a list as drafts −08 to −12 have it: a string, or a token as some
	// write it, and its parameters, numbers, strings, bytes or true.
	member    = `("(?:[ !#-\[\]-~]|\\["\\])*"|[A-Za-z*][A-Za-z0-9!#$%&'*+.^_|~:/-]*)((?:; *[a-z*][a-z0-9_.*-]*(?:=(?:-?[0-9]{1,15}|"(?:[ !#-\[\]-~]|\\["\\])*"|:[A-Za-z0-9+/=]*:|[A-Za-z*][A-Za-z0-9!#$%&'*+.^_|~:/-]*|\?[01]))?)*)`
	list      = regexp.MustCompile(`^ *` + member + `(?:[ \t]*,[ \t]*` + member + `)*[ \t]*$`)
	members   = regexp.MustCompile(member)
	parameter = regexp.MustCompile(`; *([a-z*][a-z0-9_.*-]*)=([0-9]+)`)
)

// readDictionary: RateLimit as draft −07 alone had it.
func readDictionary(s *Shot) (r reading) {
	value := strings.Join(s.Header.Values("RateLimit"), ", ")
	r = reading{standard: "RateLimit as a dictionary (draft −07)", used: looksLike.MatchString(value), todo: "this form was in one draft alone: send RateLimit as a list, with RateLimit-Policy"}
	if r.used {
		if !dictionary.MatchString(value) {
			r.broken = append(r.broken, fmt.Sprintf("%.80q is not limit=, remaining= and reset=", value))
		} else {
			r.weak = append(r.weak, "a form that later drafts do not know")
		}
	}
	return r
}

// readLists: RateLimit and RateLimit-Policy as drafts −08 and later have them.
func readLists(s *Shot) (r reading) {
	value, policy := strings.Join(s.Header.Values("RateLimit"), ", "), strings.Join(s.Header.Values("RateLimit-Policy"), ", ")
	r = reading{standard: "RateLimit and RateLimit-Policy (drafts −08 to −12)", todo: `write them like RateLimit: "name";r=0;t=7 and RateLimit-Policy: "name";q=100;w=60`}
	if looksLike.MatchString(value) || value == "" && (policy == "" || firstNumber.MatchString(policy)) {
		return r // another draft's
	}
	r.used = true
	policies := map[string]bool{}
	r.members("RateLimit-Policy", policy, func(name string, numbers map[string]uint64) {
		policies[name] = true
		if _, ok := numbers["q"]; !ok {
			r.broken = append(r.broken, "the policy "+name+" has no q")
		}
		if w, ok := numbers["w"]; ok && w == 0 {
			r.broken = append(r.broken, "the policy "+name+" has w=0")
		}
	})
	r.members("RateLimit", value, func(name string, numbers map[string]uint64) {
		_, old := numbers["r"]
		_, new := numbers["a"]
		if !old && !new {
			r.broken = append(r.broken, "the limit "+name+" has no r (nor a)")
		}
		if len(policies) > 0 && !policies[name] {
			r.weak = append(r.weak, "the limit "+name+" has no policy of its name")
		}
		if t, ok := numbers["t"]; ok && numbers["r"] == 0 && old {
			r.afterwards(s, time.Duration(min(t, 1e9))*time.Second)
		}
	})
	return r
}

// members reads a list and tells of each member, with those parameters that are
// numbers.
func (r *reading) members(field, value string, each func(name string, numbers map[string]uint64)) {
	if value == "" {
		return
	}
	if !list.MatchString(value) {
		r.broken = append(r.broken, fmt.Sprintf("%s %.80q is no list of names with parameters (RFC 9651)", field, value))
		return
	}
	for _, m := range members.FindAllStringSubmatch(value, -1) {
		if !strings.HasPrefix(m[1], `"`) {
			r.weak = append(r.weak, field+": the name "+m[1]+" is not in quotes")
		}
		numbers := map[string]uint64{}
		for _, one := range parameter.FindAllStringSubmatch(m[2], -1) {
			numbers[one[1]], _ = strconv.ParseUint(one[2], 10, 64) // 15 digits at most
		}
		each(strings.Trim(m[1], `"`), numbers)
	}
}

// readProblem: a problem document (RFC 9457), where the body says that it is one.
func readProblem(s *Shot) (r reading) {
	kind, _, _ := strings.Cut(s.Header.Get("Content-Type"), ";")
	r = reading{standard: "RFC 9457 (problem details)", used: strings.EqualFold(strings.TrimSpace(kind), "application/problem+json"), todo: "mend the problem document"}
	if !r.used {
		return r
	}
	if len(s.Body) == maxBody {
		r.weak = append(r.weak, "a body that is longer than a refusal needs")
		return r
	}
	var problem map[string]any
	if err := json.Unmarshal(s.Body, &problem); err != nil {
		r.broken = append(r.broken, "the body is no JSON object")
		return r
	}
	if status, ok := problem["status"]; ok && status != float64(s.Status) {
		r.weak = append(r.weak, fmt.Sprintf("its status is %v, and the answer's %d", status, s.Status))
	}
	for _, name := range []string{"type", "title", "detail", "instance"} {
		if v, ok := problem[name]; ok {
			if _, text := v.(string); !text {
				r.broken = append(r.broken, "its "+name+" is no text")
			}
		}
	}
	if _, ok := problem["title"]; !ok {
		r.weak = append(r.weak, "it has no title")
	}
	return r
}

// readCaching: a 429 must not be stored by a cache; who says so is safe from those
// that do not know the status.
func readCaching(s *Shot) (r reading) {
	control := strings.ToLower(strings.Join(s.Header.Values("Cache-Control"), ","))
	r = reading{standard: "RFC 9111 (caching)", used: control != "" || s.Header.Get("Expires") != "" || s.Status != http.StatusTooManyRequests, todo: "send Cache-Control: no-store with refusals"}
	if !r.used || strings.Contains(control, "no-store") {
		return r
	}
	age := regexp.MustCompile(`(?:s-)?max(?:age|-age)=([0-9]+)`).FindStringSubmatch(control)
	if age != nil && age[1] != "0" {
		r.broken = append(r.broken, "a refusal may be cached: "+control)
	}
	return r
}
