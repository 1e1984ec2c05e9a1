package httplimit

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sharedCacheMayKeep says whether an answer's Cache-Control lets a cache that
// many clients share keep it (RFC 9111, 5.2.2.9 and 5.2.2.10).
func sharedCacheMayKeep(h http.Header) bool {
	for _, line := range h["Cache-Control"] {
		for line != "" {
			var directive string
			directive, line = cut(line, ',')
			name, _, _ := strings.Cut(directive, "=")
			name = strings.TrimSpace(name)
			if strings.EqualFold(name, "public") || strings.EqualFold(name, "s-maxage") {
				return true
			}
		}
	}
	return false
}

// cut splits s at the first separator that is not in a quoted string.
func cut(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted && s[i] == '\\':
			i++
		case !quoted && s[i] == separator:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// putNumbers writes a family of three fields, unless theirs are there and bind
// as much. The three stay or go together: they are about one budget.
func (f *fields) putNumbers(h http.Header, first int, keys *numberKeys) {
	if f.values[first] == "" {
		return
	}
	for _, key := range keys {
		if _, there := h[key]; there {
			if f.binds(h, first, keys) {
				break
			}
			return
		}
	}
	for i, key := range keys {
		f.set(h, key, first+i)
	}
}

// binds says whether our numbers are tighter than theirs, or theirs unreadable.
func (f *fields) binds(h http.Header, first int, keys *numberKeys) bool {
	var theirs, ours [3]int64
	for i := range theirs {
		lines := h[keys[i]]
		if len(lines) != 1 {
			return true
		}
		var ok bool
		if theirs[i], ok = number(lines[0]); !ok {
			return true
		}
		ours[i], _ = number(f.values[first+i])
	}
	const oldest = 1_000_000_000 // what is less, many take for seconds from now
	if keys == &xKeys && theirs[2] < oldest {
		theirs[2] += int64(f.now / 1_000_000)
	}
	if ours[1] != theirs[1] {
		return ours[1] < theirs[1]
	}
	return ours[2] > theirs[2]
}

// number reads the integer that a field begins with: of 100, 100;w=60 the 100,
// of 598.0 the 598.
func number(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	end := 0
	for end < len(s) && '0' <= s[end] && s[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	return n, err == nil
}

// putLists writes the two lists, joined with theirs.
func (f *fields) putLists(h http.Header, first int) {
	policies, rates := &f.values[first], &f.values[first+1]
	if *rates == "" {
		return
	}
	theirPolicies, there := h[policyKey]
	theirRates, also := h[rateKey]
	if there || also {
		*policies, *rates = join(items(theirPolicies), items(theirRates), *policies, *rates)
	}
	f.set(h, policyKey, first)
	f.set(h, rateKey, first+1)
}

// An item is a member of one of the lists: "name";r=50;t=30.
type item struct {
	text, name  string
	left, reset int64 // −1 when it does not say
}

// items reads a list of named items; none if it is anything else, such as the
// dictionary or the bare integers of earlier drafts.
func items(lines []string) []item {
	var list []item
	for rest := strings.Join(lines, ","); rest != ""; {
		var text string
		text, rest = cut(rest, ',')
		text = strings.TrimSpace(text)
		name, parameters := cut(text, ';')
		if len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
			return nil
		}
		it := item{text: text, name: name, left: -1, reset: -1}
		for parameters != "" {
			var parameter string
			parameter, parameters = cut(parameters, ';')
			key, value, _ := strings.Cut(strings.TrimLeft(parameter, " "), "=")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil || n < 0:
			case key == "r":
				it.left = n
			case key == "t":
				it.reset = n
			}
		}
		list = append(list, it)
	}
	return list
}

// join is the two lists with theirs before ours. Of two items with one name the
// tighter stays, in both lists.
func join(theirPolicies, theirRates []item, policies, rates string) (string, string) {
	ourRates := items([]string{rates})
	theirsBind := make(map[string]bool, len(ourRates)) // by our names; their lists may be long
	for _, o := range ourRates {
		i := slices.IndexFunc(theirRates, func(t item) bool { return t.name == o.name })
		if i < 0 {
			theirsBind[o.name] = false
			continue
		}
		t := theirRates[i]
		theirsBind[o.name] = t.left >= 0 && (t.left < o.left || t.left == o.left && t.reset >= o.reset)
	}
	joined := func(theirs, own []item) string {
		var texts []string
		for _, t := range theirs {
			if bind, ours := theirsBind[t.name]; !ours || bind {
				texts = append(texts, t.text)
			}
		}
		for _, o := range own {
			if !theirsBind[o.name] {
				texts = append(texts, o.text)
			}
		}
		return strings.Join(texts, ", ")
	}
	return joined(theirPolicies, items([]string{policies})), joined(theirRates, ourRates)
}

// putRetry leaves one Retry-After of theirs, the longest; ours where nothing is
// left here for longer than that.
func (f *fields) putRetry(h http.Header) {
	lines := h["Retry-After"]
	if len(lines) == 0 {
		return
	}
	longest, text := int64(-1), lines[0]
	for _, line := range lines {
		if s := f.retrySeconds(line); s > longest {
			longest, text = s, line
		}
	}
	if f.barred > longest {
		text = strconv.FormatInt(f.barred, 10)
	}
	h["Retry-After"] = []string{text}
}

// retrySeconds reads a Retry-After, in seconds or as a date; −1 if it is neither.
func (f *fields) retrySeconds(line string) int64 {
	line = strings.TrimSpace(line)
	if n, err := strconv.ParseUint(line, 10, 63); err == nil {
		return int64(n)
	}
	if date, err := http.ParseTime(line); err == nil {
		return max(0, seconds(date.Sub(f.now.Time().Truncate(time.Second))))
	}
	return -1
}
