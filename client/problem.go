package client

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"
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

// hopeless are words for a refusal that no waiting mends.
var hopeless = []string{
	"insufficient_quota", "billing_hard_limit_reached", // OpenAI
	"https://iana.org/assignments/http-problem-types#abnormal-usage-detected", // the draft on RateLimit fields, section on problem types
}

// refusal is what bodies of refusals say, in the forms that are known.
type refusal struct {
	Type       string          `json:"type"`
	RetryAfter *float64        `json:"retry_after"` // Discord, in seconds
	Error      json.RawMessage `json:"error"`
}

type refusalError struct {
	Type    string `json:"type"`
	Code    any    `json:"code"`
	Details []struct {
		Type       string `json:"@type"`
		RetryDelay string `json:"retryDelay"` // Google, as 3.5s
	} `json:"details"`
}

// readProblem reads the beginning of a refusal's body: whether it is final, and
// the wait that it tells.
func readProblem(contentType string, body []byte) (final bool, wait time.Duration, told bool) {
	if !strings.Contains(strings.ToLower(contentType), "json") {
		return false, 0, false
	}
	var r refusal
	if json.Unmarshal(body, &r) != nil {
		return false, 0, false
	}
	words := []string{r.Type}
	if r.RetryAfter != nil && *r.RetryAfter >= 0 && !math.IsInf(*r.RetryAfter, 0) {
		wait, told = scaled(*r.RetryAfter, time.Second), true
	}
	var e refusalError
	if len(r.Error) > 0 && json.Unmarshal(r.Error, &e) == nil {
		code, _ := e.Code.(string)
		words = append(words, e.Type, code)
		for _, d := range e.Details {
			if !strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
				continue
			}
			if delay, ok := goDuration(d.RetryDelay); ok {
				wait, told = max(wait, delay), true
			}
		}
	}
	for _, word := range words {
		for _, h := range hopeless {
			if word == h {
				return true, wait, told
			}
		}
	}
	return false, wait, told
}
