package httplimit

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

const (
	grpcResourceExhausted = "8"
	grpcUnavailable       = "14"
)

// refuse answers a request that a limit denied, or that could not be decided and
// is not to pass without a decision.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, d *desk) {
	v, h := &d.verdict, w.Header()
	tellStore(h, v.Fallen)
	if v.Failed != nil && v.Fallen != policy.Local {
		g.refuseUndecided(w, r, v)
		return
	}
	// One array holds the values of all header fields, one string their texts.
	count := g.sets.count
	lines := make([]string, count+4)
	told := fields{values: lines[:count]}
	var ends [allValues]int
	d.text = told.write(v, &g.sets, d.text[:0], &ends)
	if isGRPC(r) {
		told.share(string(d.text), &ends)
		told.put(h, &g.sets)
		g.answerGRPC(w, r, grpcResourceExhausted, string(appendDetail(d.text[:0], v)), pushback(v))
		return
	}
	fieldsEnd := len(d.text)
	retry, ok := retryOf(v)
	if ok {
		d.text = strconv.AppendInt(d.text, retry, 10)
	}
	retryEnd := len(d.text)
	d.body = appendQuotaExceeded(d.body[:0], v)
	d.text = strconv.AppendInt(d.text, int64(len(d.body)), 10)
	text := string(d.text)
	told.share(text, &ends)
	told.put(h, &g.sets)
	if ok {
		lines[count] = text[fieldsEnd:retryEnd]
		h["Retry-After"] = lines[count : count+1 : count+1]
	} else {
		delete(h, "Retry-After")
	}
	g.answer(w, r, http.StatusTooManyRequests, d.body, text[retryEnd:], (*[3]string)(lines[count+1:]))
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

// appendQuotaExceeded writes the problem document of a denial, by hand because
// it is written for every request of a flood. Nothing in it needs escaping: the
// names of limits are [a-z*][a-z0-9_.*-]*.
func appendQuotaExceeded(buf []byte, v *policy.Verdict) []byte {
	buf = append(buf, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":"`...)
	buf = appendDetail(buf, v)
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

// appendDetail says in words, in ASCII, when to ask again.
func appendDetail(buf []byte, v *policy.Verdict) []byte {
	retry, ok := retryOf(v)
	if !ok {
		return append(buf, "This request costs more than a full budget holds, so it can never pass: do not retry it as it is."...)
	}
	buf = append(buf, "Too many requests: retry in "...)
	buf = appendWait(buf, retry)
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

func isGRPC(r *http.Request) bool {
	types := r.Header["Content-Type"]
	return len(types) > 0 && strings.HasPrefix(types[0], "application/grpc")
}

// answerGRPC answers in trailers-only form: HTTP 200, the status in the header,
// no body. An HTTP 429 would read as UNAVAILABLE, which clients retry at once.
// The message is printable ASCII without percent signs, which is its own
// percent-encoding.
func (g *guard) answerGRPC(w http.ResponseWriter, r *http.Request, status, message, pushback string) {
	h := w.Header()
	h["Cache-Control"] = []string{"no-store"}
	h["Content-Type"] = []string{"application/grpc"}
	h["Grpc-Status"] = []string{status}
	h["Grpc-Message"] = []string{message}
	if pushback != "" {
		h["Grpc-Retry-Pushback-Ms"] = []string{pushback}
	}
	g.cors.allow(h, r)
	w.WriteHeader(http.StatusOK)
}

// pushback is when a gRPC client may retry, in milliseconds (gRFC A6); −1, which
// is not at all, where that is never or does not fit the 32 bits that clients
// read it into.
func pushback(v *policy.Verdict) string {
	ms := int64((v.RetryAfter + time.Millisecond - 1) / time.Millisecond)
	if v.RetryAfter == comporta.Never || ms > math.MaxInt32 {
		return "-1"
	}
	return strconv.FormatInt(ms, 10)
}
