package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/comporta/comporta"
)

func TestQuickIsAPolicyOfOneLimit(t *testing.T) {
	c, err := Quick(QuickOptions{Upstream: "http://127.0.0.1:9000", Limit: "100/min", Algorithm: "sliding_log", Per: "header:x-api-key"})
	if err != nil {
		t.Fatal(err)
	}
	l := c.Policy.Limits[0]
	if l.Name != "default" || l.Per.String() != "{header: X-Api-Key}" || l.Limit.String() != "100/min" || l.Limit.Algorithm != comporta.SlidingLog {
		t.Errorf("got %+v", l)
	}
	if c.Server.Upstream.Host != "127.0.0.1:9000" || c.Server.Listen != "127.0.0.1:8080" {
		t.Errorf("got %+v", c.Server)
	}
}

func TestQuickNamesTheFlag(t *testing.T) {
	good := QuickOptions{Upstream: "http://127.0.0.1:9000", Limit: "100/min"}
	for _, c := range []struct {
		change func(*QuickOptions)
		want   string
	}{
		{func(q *QuickOptions) {}, ""},
		{func(q *QuickOptions) { q.Per = "everyone" }, ""},
		{func(q *QuickOptions) { q.Upstream = "" }, "--upstream: upstream is empty (write it like http://127.0.0.1:9000)"},
		{func(q *QuickOptions) { q.Upstream = "127.0.0.1:9000" }, "--upstream: upstream is not a URL (write it like http://127.0.0.1:9000)"},
		{func(q *QuickOptions) { q.Limit = "100/day" }, "--limit: limit: a day is a calendar period (write 100/24h, or `quota: 100/day`)"},
		{func(q *QuickOptions) { q.Algorithm = "tokens" }, "--algorithm: unknown algorithm \"tokens\" (one of token_bucket, leaky_bucket, fixed_window, sliding_counter, sliding_log)"},
		{func(q *QuickOptions) { q.Algorithm, q.Limit = "sliding_log", "5/s burst 10" }, "--limit: burst: is for token_bucket and leaky_bucket only, not for sliding_log (leave the burst out, or give it to a token_bucket or leaky_bucket that can fill it)"},
		{func(q *QuickOptions) { q.Per = "adress" }, "--per: unknown per \"adress\" (did you mean \"address\"?)"},
		{func(q *QuickOptions) { q.Per = "header:" }, "--per: header is empty (write it like X-Tenant)"},
		{func(q *QuickOptions) { q.Per = "X-Key" }, "--per: unknown \"X-Key\" (a header is written header:NAME, as header:X-API-Key)"},
		{func(q *QuickOptions) { q.Per = "cookie:x" }, "--per: unknown \"cookie:\" (one of address, everyone, header:NAME)"},
		{func(q *QuickOptions) { q.Per = "path:id" }, "--per: path:id needs a pattern to take {id} from (write a policy file, with match: and per: {path: id})"},
		{func(q *QuickOptions) { q.Store = "redis://127.0.0.1:6379/0" }, ""},
		{func(q *QuickOptions) { q.Store = "127.0.0.1:6379" }, "--store: url: \"://\" is missing (write redis://host:6379)"},
		{func(q *QuickOptions) { q.Per, q.Limit = "cookie:x", "" }, "--per: unknown \"cookie:\" (one of address, everyone, header:NAME)\n--limit: limit is empty (write it like 100/min)"},
	} {
		q := good
		c.change(&q)
		_, err := Quick(q)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: got %s\nwant %s", q, got, c.want)
		}
	}
}

func TestFilesAreRelativeToThePolicy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.yaml")
	text := "server: {tls: {cert: c.pem, key: /k.pem}}\nsecret_file: s\nstore: {memory: {save: state}}\nlimits: []\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	got := [...]string{c.Server.TLS.Cert, c.Server.TLS.Key, c.SecretFile, c.Store.Save}
	want := [...]string{filepath.Join(dir, "c.pem"), "/k.pem", filepath.Join(dir, "s"), filepath.Join(dir, "state")}
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}
