package httplimit

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// refuse answers a request that a limit denied, or that could not be decided and
// is not to pass without a decision.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, d *desk) {
	v, h := &d.verdict, w.Header()
	tellStore(h, v.Fallen)
	switch {
	case v.Refused != nil:
		g.refuseItself(w, r, d)
		return
	case v.Failed != nil && v.Fallen != policy.Local:
		g.refuseUndecided(w, r, v)
		return
	}
	putWarnings(h, g.warningsOf(v))
	of := refusing(v)
	// One array holds the values of all header fields, one string their texts.
	count := g.sets.count
	lines := make([]string, count+4)
	told := fields{values: lines[:count]}
	var ends [allValues]int
	d.text = told.write(v, &g.sets, d.text[:0], &ends)
	if isGRPC(r) {
		told.share(string(d.text), &ends)
		told.put(h, &g.sets)
		code := grpcResourceExhausted
		if of.Status == http.StatusServiceUnavailable {
			code = grpcUnavailable
		}
		detail := appendDetail(d.text[:0], v, of.Status)
		if of.Message != "" {
			detail = append(append(detail, ' '), of.Message...)
		}
		g.answerGRPC(w, r, code, string(detail), pushback(v))
		return
	}
	fieldsEnd := len(d.text)
	retry, ok := retryOf(v)
	if ok {
		d.text = strconv.AppendInt(d.text, retry, 10)
	}
	retryEnd := len(d.text)
	d.problem = appendProblem(d.problem[:0], v, of)
	d.text = strconv.AppendInt(d.text, int64(len(d.problem)), 10)
	text := string(d.text)
	told.share(text, &ends)
	told.put(h, &g.sets)
	if ok {
		lines[count] = text[fieldsEnd:retryEnd]
		h["Retry-After"] = lines[count : count+1 : count+1]
	} else {
		delete(h, "Retry-After")
	}
	g.answer(w, r, statusOf(of), d.problem, text[retryEnd:], (*[3]string)(lines[count+1:]))
}

// refuseUndecided answers what nobody could decide and is not to pass undecided:
// never as a refusal for its quota is answered, since it is not the client's doing.
func (g *guard) refuseUndecided(w http.ResponseWriter, r *http.Request, v *policy.Verdict) {
	const detail = "The limits cannot be looked up at the moment. That is no fault of the request: retry it as it is."
	if isGRPC(r) {
		g.answerGRPC(w, r, grpcUnavailable, detail, pushback(v))
		return
	}
	if retry, ok := retryOf(v); ok {
		w.Header()["Retry-After"] = []string{strconv.FormatInt(retry, 10)}
	}
	g.answerProblem(w, r, http.StatusServiceUnavailable, detail)
}

// refusing is the limit whose words a denial is answered in: the one that headers
// name where it denies, else, of those that do, the one with the longest retry.
func refusing(v *policy.Verdict) *policy.Limit {
	if v.Named >= 0 && v.Applied[v.Named].Denies() {
		return v.Applied[v.Named].Limit
	}
	var of *policy.Applied
	for i := range v.Applied {
		if a := &v.Applied[i]; a.Denies() && (of == nil || comporta.Stricter(a.Decision, of.Decision)) {
			of = a
		}
	}
	if of == nil {
		return new(policy.Limit)
	}
	return of.Limit
}

func statusOf(l *policy.Limit) int { return cmp.Or(l.Status, http.StatusTooManyRequests) }

// appendProblem writes the problem document of a denial, by hand because it is
// written for every request of a flood. Nothing in it needs escaping but the
// operator's own words: the names of limits are [a-z*][a-z0-9_.*-]*.
func appendProblem(buf []byte, v *policy.Verdict, of *policy.Limit) []byte {
	status := statusOf(of)
	kind := `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":`
	if status == http.StatusServiceUnavailable {
		kind = `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary reduced capacity","status":`
	}
	buf = strconv.AppendInt(append(buf, kind...), int64(status), 10)
	buf = appendDetail(append(buf, `,"detail":"`...), v, status)
	if of.Message != "" {
		buf = appendJSON(append(buf, ' '), of.Message)
		buf = appendJSON(append(buf, `","message":"`...), of.Message)
	}
	if of.Help != "" {
		buf = appendJSON(append(buf, `","help":"`...), of.Help)
	}
	buf = append(buf, `","violated-policies":[`...)
	separator := ""
	for i := range v.Applied {
		if a := &v.Applied[i]; a.Shown && a.Denies() {
			buf = append(append(append(append(buf, separator...), '"'), a.Limit.Name...), '"')
			separator = ","
		}
	}
	return append(buf, "]}\n"...)
}

// appendJSON writes a text as within a JSON string's quotes.
func appendJSON(buf []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil { // a string: it cannot be
		return buf
	}
	return append(buf, quoted[1:len(quoted)-1]...)
}

// appendDetail says in words, in ASCII, when to ask again.
func appendDetail(buf []byte, v *policy.Verdict, status int) []byte {
	retry, ok := retryOf(v)
	if !ok {
		return append(buf, "This request costs more than a full budget holds, so it can never pass: do not retry it as it is."...)
	}
	why := "Too many requests: retry in "
	if status == http.StatusServiceUnavailable {
		why = "More is asked of this service than it can do at the moment: retry in "
	}
	buf = appendWait(append(buf, why...), retry)
	return append(buf, '.')
}

// appendWait writes a wait in words: 1 hour 30 seconds.
func appendWait(buf []byte, wait int64) []byte {
	separator := ""
	for _, unit := range [...]struct {
		name    string
		seconds int64
	}{{" day", 86400}, {" hour", 3600}, {" minute", 60}, {" second", 1}} {
		n := wait / unit.seconds
		wait %= unit.seconds
		if n == 0 {
			continue
		}
		buf = strconv.AppendInt(append(buf, separator...), n, 10)
		buf = append(buf, unit.name...)
		if n > 1 {
			buf = append(buf, 's')
		}
		separator = " "
	}
	return buf
}

// answerProblem answers what was not refused for its quota.
func (g *guard) answerProblem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	body, err := json.Marshal(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail})
	if err != nil { // two strings and a number: it cannot be
		body = []byte("{}")
	}
	body = append(body, '\n')
	g.answer(w, r, status, body, strconv.Itoa(len(body)), new([3]string))
}

// answer sends a problem document (RFC 9457) of our own, whose length is also
// given as text. The header will point into own.
func (g *guard) answer(w http.ResponseWriter, r *http.Request, status int, body []byte, length string, own *[3]string) {
	h := w.Header()
	own[0], own[1], own[2] = "no-store", "application/problem+json", length
	h["Cache-Control"], h["Content-Type"], h["Content-Length"] = own[0:1:1], own[1:2:2], own[2:3:3]
	g.cors.allow(h, r)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // who does not take the answer has gone
	}
}
