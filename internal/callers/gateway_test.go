package callers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/gatewaytest"
)

// The policy, of several limits: each client has a key for each of its runs, so none disturbs another.
const policyFile = `server: {upstream: "http://UPSTREAM"}
identities: {api_key: {header: X-API-Key, keys: keys.yaml}}
limits:
  - {name: bucket, match: GET /bucket, per: api_key, limit: 1/s burst 2}
  - {name: window, match: GET /window, per: api_key, limit: 2/2s, algorithm: fixed_window}
  - {name: slow, match: [GET /slow, POST /slow], per: api_key, limit: 1/5s}
  - {name: hourly, match: GET /hourly, per: api_key, limit: 1/h}
  - {name: calls, match: POST /grpc.health.v1.Health/Check, per: api_key, limit: 1/s burst 2}
  - {name: hourly-calls, match: POST /grpc.health.v1.Health/List, per: api_key, limit: 1/h}
  - {name: dear, match: [GET /dear, POST /callers.Dear/Call], per: api_key, limit: 1/s burst 2, cost: 5}
  - {name: everybody, per: address, limit: 1000/s}
`

// secret is the API key of an id.
func secret(id string) string { return "secret-of-" + id }

// A gateway is a comporta serve, a process of its own.
type gateway struct {
	*gatewaytest.Gateway
	t *testing.T
}

// startGateway starts one in front of an upstream, for the keys of ids.
func startGateway(t *testing.T, upstream string, ids []string) *gateway {
	t.Helper()
	dir := t.TempDir()
	var keys strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&keys, "- {id: %q, key: %q}\n", id, secret(id))
	}
	for name, text := range map[string]string{"policy.yaml": strings.ReplaceAll(policyFile, "UPSTREAM", upstream), "keys.yaml": keys.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &gateway{gatewaytest.Start(t, "-c", filepath.Join(dir, "policy.yaml"), "--metrics", "off"), t}
}

// An entry is a line of the access log.
type entry struct {
	Time    time.Time
	Us      int64
	Verdict string
	Who     string
}

// left is when the answer was done.
func (e entry) left() time.Time { return e.Time.Add(time.Duration(e.Us) * time.Microsecond) }

// log stops the gateway and reads its access log, by id.
func (g *gateway) log() map[string][]entry {
	g.t.Helper()
	g.End()
	byID := map[string][]entry{}
	for line := range strings.Lines(g.Out.String()) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			g.t.Fatalf("the access log: %v in %s", err, line)
		}
		id, known := strings.CutPrefix(e.Who, "api_key:")
		if !known {
			g.t.Errorf("a request without its key: %s", line)
		}
		byID[id] = append(byID[id], e)
	}
	return byID
}
