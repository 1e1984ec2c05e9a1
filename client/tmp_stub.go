package client

import (
	"net/http"
	"time"
)

func readProblem(contentType string, body []byte) (final bool, wait time.Duration, told bool) {
	return
}
func wordOf(h http.Header) Word                 { return Unsaid }
func refusedForbidden(resp *http.Response) bool { return false }

func retryAfterTmp(resp *http.Response) (time.Duration, bool) {
	d, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
	return d, err == nil && d >= 0
}
