package egress

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/comporta/comporta/client"
)

// reasonField tells a program that and why the gateway refused, or did not try
// again: see client.Reason.
const reasonField = "Comporta-Egress"

// longestTold is the longest time that is told: there are clients that sleep for
// months, and others in which the timer overflows and that come at once.
const longestTold = 24 * time.Hour

// refuse answers a request by the gateway itself, with a problem document (RFC
// 9457) and, where it is known, when to come again: whole seconds, at least one.
func refuse(w http.ResponseWriter, status int, detail string, wait time.Duration) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if wait > 0 || status == http.StatusTooManyRequests {
		wait = min(wait, longestTold)
		h.Set("Retry-After", strconv.FormatInt(max(1, int64((wait+time.Second-1)/time.Second)), 10))
	}
	body, _ := json.Marshal(struct { // it has text and a number
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{problemType(status), http.StatusText(status), status, detail})
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a program that is gone cannot be told
}

func problemType(status int) string {
	switch status {
	case http.StatusTooManyRequests:
		return "https://iana.org/assignments/http-problem-types#quota-exceeded"
	case http.StatusServiceUnavailable:
		return "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	}
	return "about:blank"
}

// tellReason is why a request was not sent, for the program.
func tellReason(why *client.RateLimitError) string {
	switch why.Reason {
	case client.ReasonGate:
		return "Not sent: the API said not to call yet."
	case client.ReasonLine:
		return "Not sent: too many requests are in line for this API."
	case client.ReasonLimit:
		return "Not sent: the limit that all programs share is used up."
	case client.ReasonThrottle:
		return "Not sent: the API refuses most requests at the moment."
	}
	return "Not sent."
}
