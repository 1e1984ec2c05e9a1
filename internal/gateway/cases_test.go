package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A call is a request at a time after the case's start, and the answer that is
// right: its status and what remains, on a refusal the time to retry, too.
type call struct {
	at        time.Duration
	target    string
	forwarded string // X-Forwarded-For, when not empty
	want      string
}

// calls are some that come alike, with the answers one after the other.
func calls(at time.Duration, target, forwarded string, wants ...string) (out []call) {
	for _, want := range wants {
		out = append(out, call{at, target, forwarded, want})
	}
	return out
}

// trusting is what a policy needs for its clients to be told by a header: the
// tests' own address is the nearest proxy.
const trusting = "identities: {address: {trusted_proxies: [127.0.0.1, 172.16.0.0/12]}}\n"

// Faults that other limiters had, each asked for over HTTP.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		name, policy, start string // the start is 2026-11-30T12:00:00Z unless said
		calls               []call
	}{
		{
			name:   "A05 the whole capacity can be had",
			policy: "limits: [{name: a, per: address, limit: 1/s burst 5, cost: {GET /five: 5}}]",
			calls: []call{
				{target: "/", want: "200 4"},
				{target: "/five", want: "429 4 retry 1"},
				{at: time.Second, target: "/five", want: "200 0"},
			},
		},
		{
			name:   "A05 what can never pass is told so and takes nothing",
			policy: "limits: [{name: a, per: address, limit: 1/s burst 5, cost: {GET /six: 6}}]",
			calls:  []call{{target: "/six", want: "429 5 never"}, {target: "/", want: "200 4"}},
		},
		{
			name:   "A09 a denial takes nothing",
			policy: "limits: [{name: a, per: address, limit: 1/10s burst 5, cost: {GET /two: 2, GET /three: 3, GET /five: 5, GET /million: 1000000}}]",
			calls: []call{
				{target: "/three", want: "200 2"},
				{target: "/five", want: "429 2 retry 30"},
				{target: "/million", want: "429 2 never"},
				{target: "/two", want: "200 0"},
				{target: "/", want: "429 0 retry 10"},
			},
		},
		{
			name:   "A13 costs count in a sliding log",
			policy: "limits: [{name: a, per: address, limit: 10/60s, algorithm: sliding_log, cost: {GET /two: 2, GET /eight: 8}}]",
			calls: []call{
				{target: "/eight", want: "200 2"},
				{at: time.Second, target: "/two", want: "200 0"},
				{at: 2 * time.Second, target: "/", want: "429 0 retry 58"},
				{at: time.Minute, target: "/eight", want: "200 0"},
				{at: time.Minute, target: "/", want: "429 0 retry 1"},
			},
		},
		{
			name:   "T03 a day is one window",
			policy: "limits: [{name: a, per: address, quota: 3/day}]",
			start:  "2026-06-01T10:00:00Z",
			calls: []call{
				{at: 0, target: "/", want: "200 2"},
				{at: 5 * time.Minute, target: "/", want: "200 1"},
				{at: 10 * time.Minute, target: "/", want: "200 0"},
				{at: 15 * time.Minute, target: "/", want: "429 0 retry 49500"},
				{at: 14*time.Hour - time.Microsecond, target: "/", want: "429 0 retry 1"},
				{at: 14 * time.Hour, target: "/", want: "200 2"},
			},
		},
		{
			name:   "T05 a day of 25 hours",
			policy: "time_zone: Europe/Paris\nlimits: [{name: a, per: address, quota: 1/day}]",
			start:  "2026-10-25T00:30:00+02:00",
			calls: []call{
				{at: 0, target: "/", want: "200 0"},
				{at: 0, target: "/", want: "429 0 retry 88200"},
				{at: 24 * time.Hour, target: "/", want: "429 0 retry 1800"},
				{at: 88_200 * time.Second, target: "/", want: "200 0"},
			},
		},
		{
			name:   "T05 a day of 23 hours",
			policy: "time_zone: Europe/Paris\nlimits: [{name: a, per: address, quota: 1/day}]",
			start:  "2026-03-29T00:30:00+01:00",
			calls: []call{
				{at: 0, target: "/", want: "200 0"},
				{at: 0, target: "/", want: "429 0 retry 81000"},
				{at: 81_000 * time.Second, target: "/", want: "200 0"},
			},
		},
		{
			name:   "T05 a start that the clocks skip",
			policy: "time_zone: Europe/Paris\nlimits: [{name: a, per: address, quota: 1/day, starts_at: \"02:30\"}]",
			start:  "2026-03-29T00:30:00+01:00",
			calls: []call{
				{at: 0, target: "/", want: "200 0"},
				{at: 0, target: "/", want: "429 0 retry 5400"}, // 01:00:00Z
				{at: 5400 * time.Second, target: "/", want: "200 0"},
			},
		},
		{
			name:   "I01 a port is no part of the address",
			policy: trusting + "limits: [{name: a, per: address, limit: 1/min}]",
			calls: []call{
				{target: "/", forwarded: "203.0.113.7:51034", want: "200 0"},
				{target: "/", forwarded: "203.0.113.7:51035", want: "429 0 retry 60"},
				{target: "/", forwarded: "[2001:db8::7]:443", want: "200 0"},
				{target: "/", forwarded: "2001:db8::7", want: "429 0 retry 60"},
			},
		},
		{
			name:   "I03 a /64 is one subscriber",
			policy: trusting + "limits: [{name: a, per: address, limit: 3/min}]",
			calls: []call{
				{target: "/", forwarded: "2001:db8:1:2::1", want: "200 2"},
				{target: "/", forwarded: "2001:db8:1:2::2", want: "200 1"},
				{target: "/", forwarded: "2001:db8:1:2::3", want: "200 0"},
				{target: "/", forwarded: "2001:db8:1:2::4", want: "429 0 retry 20"},
				{target: "/", forwarded: "2001:db8:1:3::1", want: "200 2"},
			},
		},
		{
			name:   "I03 unless it is said to be many",
			policy: "identities: {address: {trusted_proxies: [127.0.0.1], ipv6_prefix: 128}}\nlimits: [{name: a, per: address, limit: 3/min}]",
			calls: []call{
				{target: "/", forwarded: "2001:db8:1:2::1", want: "200 2"},
				{target: "/", forwarded: "2001:db8:1:2::2", want: "200 2"},
				{target: "/", forwarded: "2001:db8:1:2::3", want: "200 2"},
				{target: "/", forwarded: "2001:db8:1:2::4", want: "200 2"},
				{target: "/", forwarded: "2001:db8:1:3::1", want: "200 2"},
			},
		},
		{
			name:   "I05 what was forged on the left is not reached",
			policy: trusting + "limits: [{name: a, per: address, limit: 3/min}]",
			calls: []call{
				{target: "/", forwarded: "9.9.9.1, 198.51.100.23, 172.17.0.1", want: "200 2"},
				{target: "/", forwarded: "9.9.9.2, 198.51.100.23, 172.17.0.1", want: "200 1"},
				{target: "/", forwarded: "9.9.9.3, 198.51.100.23, 172.17.0.1", want: "200 0"},
				{target: "/", forwarded: "9.9.9.4, 198.51.100.23, 172.17.0.1", want: "429 0 retry 20"},
				{target: "/", forwarded: "172.18.0.1, 172.17.0.1", want: "200 2"}, // all trusted: the leftmost
				{target: "/", forwarded: "172.18.0.1", want: "200 1"},
			},
		},
		{
			name:   "I05 nor is a stranger's header read",
			policy: "limits: [{name: a, per: address, limit: 1/min}]",
			calls: []call{
				{target: "/", forwarded: "9.9.9.1", want: "200 0"},
				{target: "/", forwarded: "9.9.9.2", want: "429 0 retry 60"},
			},
		},
		{
			name: "P03 a shadow hides nothing, and two limits of one match count apart",
			policy: `limits:
  - {name: shadow, match: /items/, per: address, limit: 1/min, algorithm: fixed_window, mode: shadow}
  - {name: wide, match: /items/, per: address, limit: 1000/min, algorithm: fixed_window}
  - {name: narrow, match: /items/, per: address, limit: 10/min, algorithm: fixed_window}`,
			calls: calls(0, "/items/7", "", "200 9", "200 8", "200 7", "200 6", "200 5", "200 4", "200 3", "200 2", "200 1", "200 0", "429 0 retry 60", "429 0 retry 60"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := newClock().at
			if c.start != "" {
				var err error
				if start, err = time.Parse(time.RFC3339, c.start); err != nil {
					t.Fatal(err)
				}
			}
			clock := &clock{at: start}
			h := serve(t, api(t, hello), c.policy, clock)
			client := client(t)
			var got, want []string
			for i, call := range c.calls {
				clock.move(start.Add(call.at).Sub(clock.now()))
				var fields []string
				if call.forwarded != "" {
					fields = []string{"X-Forwarded-For", call.forwarded}
				}
				res, text := get(t, client, h.url+call.target, fields...)
				answer := fmt.Sprintf("%d %s", res.StatusCode, res.Header.Get("RateLimit-Remaining"))
				retry, told := res.Header["Retry-After"]
				switch {
				case told:
					answer += " retry " + strings.Join(retry, "|")
				case strings.Contains(text, "can never pass"):
					answer += " never"
				}
				got = append(got, fmt.Sprintf("%d: %s", i+1, answer))
				want = append(want, fmt.Sprintf("%d: %s", i+1, call.want))
			}
			if !slices.Equal(got, want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}
