package client

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
)

// wordOf is the server's own word on trying again.
func wordOf(h http.Header) Word {
	for _, name := range []string{"X-Should-Retry", "Stripe-Should-Retry"} {
		switch strings.ToLower(strings.TrimSpace(first(h, name))) {
		case "true":
			return Again
		case "false":
			return Never
		}
	}
	return Unsaid
}

// refusedForbidden says whether a 403 is a limit's refusal, as GitHub's are.
func refusedForbidden(resp *http.Response) bool {
	return first(resp.Header, "Retry-After") != "" || strings.TrimSpace(first(resp.Header, "X-RateLimit-Remaining")) == "0"
}

// hopeless are words for a refusal that no waiting mends: codes of OpenAI, and the
// end of a problem type of draft-ietf-httpapi-ratelimit-headers.
var hopeless = []string{"insufficient_quota", "billing_hard_limit_reached"}

const abnormal = "http-problem-types#abnormal-usage-detected"

// A refusal is what bodies of refusals say, in the forms that are known. Each part
// is read by itself: one of another form hides no other.
type refusal struct {
	Type       json.RawMessage `json:"type"`
	RetryAfter json.RawMessage `json:"retry_after"` // Discord, in seconds
	Error      json.RawMessage `json:"error"`
	Details    json.RawMessage `json:"details"` // gRPC's status in JSON; Google has it within error
}

// readProblem reads a refusal's body: whether it is final, and the wait that it
// tells. It must be whole: the beginning of a number is not that number.
func readProblem(contentType string, body []byte) (final bool, wait time.Duration, told bool) {
	if !strings.Contains(strings.ToLower(contentType), "json") {
		return false, 0, false
	}
	var r refusal
	if json.Unmarshal(body, &r) != nil {
		return false, 0, false
	}
	wait, told = readSeconds(r.RetryAfter)
	final = strings.HasSuffix(word(r.Type), abnormal)
	var e struct {
		Type, Code, Details json.RawMessage
	}
	if len(r.Error) > 0 && json.Unmarshal(r.Error, &e) == nil {
		final = final || slices.Contains(hopeless, word(e.Type)) || slices.Contains(hopeless, word(e.Code))
	}
	for _, details := range []json.RawMessage{r.Details, e.Details} {
		if d, ok := readRetryInfo(details); ok {
			wait, told = max(wait, d), true
		}
	}
	return final, wait, told
}

// readSeconds reads a number of seconds, which may be in quotes.
func readSeconds(value json.RawMessage) (time.Duration, bool) {
	text := strings.Trim(string(value), `"`)
	if n, ok := decimal(text); ok {
		return n.of(time.Second), true
	}
	if !json.Valid([]byte(text)) {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64) // JSON has exponents
	switch {
	case errors.Is(err, strconv.ErrRange) && f > 0 || err == nil && f >= math.MaxInt64/1e9:
		return comporta.Never, true
	case err != nil || f < 0:
		return 0, false
	}
	return micros(time.Duration(math.Ceil(f * 1e9))), true
}

// readRetryInfo reads the longest delay of google.rpc.RetryInfo: 3.5s.
func readRetryInfo(details json.RawMessage) (wait time.Duration, told bool) {
	var list []json.RawMessage
	if len(details) == 0 || json.Unmarshal(details, &list) != nil {
		return 0, false
	}
	for _, detail := range list {
		var d struct {
			Type       string `json:"@type"`
			RetryDelay string `json:"retryDelay"`
		}
		if json.Unmarshal(detail, &d) != nil || !strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
			continue
		}
		seconds, ok := strings.CutSuffix(d.RetryDelay, "s")
		if n, isNumber := decimal(seconds); ok && isNumber {
			wait, told = max(wait, n.of(time.Second)), true
		}
	}
	return wait, told
}

// word is a JSON string; "" where the value is none.
func word(value json.RawMessage) (text string) {
	if len(value) > 0 && json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}
