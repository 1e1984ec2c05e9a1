package client

import (
	"net/http"
	"testing"
	"time"
)

func TestReadProblem(t *testing.T) {
	for _, c := range []struct {
		kind, body string
		final      bool
		wait       time.Duration
	}{
		{"application/problem+json", `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","status":429}`, true, untold},
		{"application/problem+json", `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","status":429}`, false, untold},
		{"application/json; charset=utf-8", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, true, untold},
		{"application/json", `{"error":{"code":"rate_limit_exceeded"}}`, false, untold},
		{"application/json", `{"message":"You are being rate limited.","retry_after":64.57,"global":false}`, false, 64570 * time.Millisecond},
		{"application/json", `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.5s"}]}}`, false, 3500 * time.Millisecond},
		{"application/json", `{"retry_after":-1}`, false, untold},
		{"application/json", `{"retry_after":"soon"}`, false, untold},
		{"application/json", `{"retry_after":1e300}`, false, 1<<63 - 1},
		{"application/json", `{"error":"slow down"}`, false, untold},
		{"application/json", `{"retry_after":64`, false, untold}, // cut short
		{"application/json", ``, false, untold},
		{"application/json", `[1,2]`, false, untold},
		{"text/plain", `{"retry_after":64}`, false, untold},
	} {
		final, wait, told := readProblem(c.kind, []byte(c.body))
		if !told {
			wait = untold
		}
		if final != c.final || wait != c.wait {
			t.Errorf("%s: final %v, wait %v", c.body, final, wait)
		}
	}
}

func TestWordOf(t *testing.T) {
	for value, want := range map[string]Word{"true": Again, "false": Never, " TRUE ": Again, "": Unsaid, "maybe": Unsaid} {
		for _, name := range []string{"X-Should-Retry", "Stripe-Should-Retry"} {
			if got := wordOf(http.Header{name: {value}}); got != want {
				t.Errorf("%s: %s is %d, want %d", name, value, got, want)
			}
		}
	}
}
