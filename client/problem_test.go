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
		{"application/json", `{"error":{"type":"billing_hard_limit_reached"}}`, true, untold},
		{"application/json", `{"type":7,"error":{"code":"insufficient_quota","details":"none"}}`, true, untold}, // one part hides no other
		{"application/json", `{"retry_after":"soon","error":{"code":"insufficient_quota"}}`, true, untold},
		{"application/json", `{"message":"insufficient_quota"}`, false, untold},
		{"application/json", `{"code":8,"message":"slow","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}`, false, 3 * time.Second},
		{"application/json", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[7,{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"x"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"9s"}]}}`, false, 9 * time.Second},
		{"application/json", `{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"315576000000s"}]}`, false, 1<<63 - 1},
		{"application/json", `{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-3s"}]}`, false, untold},
		{"application/json", `{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"3"}]}`, false, untold},
		{"application/json", `{"retry_after":0}`, false, 0},
		{"application/json", `{"retry_after":"1.5"}`, false, 1500 * time.Millisecond},
		{"application/json", `{"retry_after":6.5e1}`, false, 65 * time.Second},
		{"application/json", `{"retry_after":1e999}`, false, 1<<63 - 1},
		{"application/json", `{"retry_after":1e-999}`, false, 0},
		{"application/json", `{"retry_after":null}`, false, untold},
		{"application/json", `{"retry_after":"Inf"}`, false, untold},
		{"application/json", `{"retry_after":"NaN"}`, false, untold},
		{"application/json", `{"retry_after":"0x10"}`, false, untold},
		{"application/json", `{"retry_after":[5]}`, false, untold},
		{"application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"Anthropic tells it in fields"}}`, false, untold},
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

func TestRefusedForbidden(t *testing.T) {
	for _, c := range []struct {
		fields []string
		want   bool
	}{
		{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Limit: 60"}, true}, // GitHub's primary limit
		{[]string{"Retry-After: 60", "X-RateLimit-Remaining: 59"}, true},      // its secondary one
		{[]string{"X-RateLimit-Remaining: 59"}, false},
		{[]string{"X-RateLimit-Remaining: 00"}, false},
		{[]string{"Retry-After:"}, false},
		{nil, false},
	} {
		if got := refusedForbidden(respond(c.fields...)); got != c.want {
			t.Errorf("%q: %v", c.fields, got)
		}
	}
}

func FuzzReadProblem(f *testing.F) {
	f.Add(`{"retry_after":64.57}`)
	f.Add(`{"error":{"code":"insufficient_quota","details":[{"@type":"google.rpc.RetryInfo","retryDelay":"3.5s"}]}}`)
	f.Add(`{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","retry_after":1e999}`)
	f.Fuzz(func(t *testing.T, body string) {
		_, wait, told := readProblem("application/json", []byte(body))
		if wait < 0 || !told && wait != 0 {
			t.Fatalf("%v, %v", wait, told)
		}
	})
}
