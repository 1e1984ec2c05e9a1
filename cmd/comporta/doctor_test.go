package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

// examine runs doctor on a store.
func examine(t *testing.T, url string) (code int, out string) {
	t.Helper()
	code, out, errs := commandUnder(t.Context(), "doctor", "--store", url)
	if errs != "" {
		t.Errorf("on the standard error: %s", errs)
	}
	return code, out
}

func TestDoctorFindsNothingWhereAllIsWell(t *testing.T) {
	s := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "noeviction", "--appendonly", "yes")
	code, out := examine(t, s.URL())
	for _, want := range []string{
		"ok    encryption ", "ok    connection   redis://" + s.Addr + " answers", "ok    round trip   p50 ", "ok    clock ",
		"ok    commands ", "ok    version ", "ok    memory ", "ok    persistence  append-only file, written each second",
		"ok    replication  no replica", "ok    keys         0 keys", "ok    decision ", "ok    script ", "0 that break limits\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if code != 0 || strings.Contains(out, "fail ") {
		t.Errorf("code %d\n%s", code, out)
	}
	// What it wrote is gone by itself.
	redistest.Until(t, 5*time.Second, func() error {
		if n := s.MustDo("DBSIZE"); n != int64(0) {
			return fmt.Errorf("%v keys are left: %v", n, s.MustDo("KEYS", "*"))
		}
		return nil
	})
}

func TestDoctorSaysWhatToChange(t *testing.T) {
	s := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	s.MustDo("SET", "comporta:{3:abc}1:x", "made by hand")
	s.MustDo("SET", "comporta:{3:abc}1:y", "expires", "EX", "100")
	s.MustDo("SET", "comporta:secret", "is meant to stay")
	s.MustDo("LPUSH", "comporta:jobs", "of another program")
	code, out := examine(t, s.URL())
	for _, want := range []string{
		"fail  memory       when 100 MiB are full, allkeys-lru drops counts that are live: whoever is at a limit, or has used up a quota, starts anew\n                   → set maxmemory-policy noeviction",
		"warn  persistence  nothing is kept on disk: after a restart every budget is full, quotas too\n                   → set appendonly yes",
		"warn  keys         2 keys, 1 of them without expiry: something other than the store wrote them\n",
		"warn  keys         1 key under comporta: without the form of a state\n",
		"1 that break limits\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if code != 1 || strings.Contains(out, "abc") {
		t.Errorf("code %d\n%s", code, out)
	}
}

func TestDoctorSaysWhyNobodyAnswers(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "hunter2")
	for url, want := range map[string]string{
		"redis://127.0.0.1:1":                "fail  connection   nothing listens at the address\n                   → start the server, or correct host and port\n",
		"redis://:hunter3@" + s.Addr:         "fail  connection   the server knows no such user with this password",
		"redis://" + s.Addr:                  "fail  connection   the server wants a password and was given none",
		"redis-cluster://:hunter2@" + s.Addr: "fail  cluster      this server is no node of a cluster\n                   → write redis:// in the address\n",
		"redis-sentinel://:hunter2@" + s.Addr + "/main?sentinel_password=hunter2": "fail  connection   this is no sentinel\n",
		"rediss://:hunter2@" + s.Addr:                "deadline: the server hangs or has too much to do, or the network loses what is sent\n                   → check that the port speaks TLS",
		"redis://:hunter2@" + s.Addr + "/999999":     ": \"DB index is out of range\"\n",
		"unix://:hunter2@" + t.TempDir() + "/nobody": "none could be made: no such file or directory\n",
	} {
		if code, out := examine(t, url); code != 1 || !strings.Contains(out, want) || strings.Contains(out, "hunter") {
			t.Errorf("%s: code %d, want %q\n%s", url, code, want, out)
		}
	}
	if code, out := examine(t, "redis://:hunter2@"+s.Addr); code != 0 || strings.Contains(out, "hunter") {
		t.Errorf("with the password: code %d\n%s", code, out)
	}
}

func TestDoctorTakesThePolicysWord(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "hunter2")
	password := file(t, "password", "hunter2\n")
	policy := file(t, "policy.yaml", `store: {redis: {url: "redis://`+s.Addr+`", password_file: "`+password+`", prefix: shop, timeout: 1s}}`+"\nlimits: [{name: a, per: address, limit: 1/s}]\n")
	s.Password = "hunter2"
	s.MustDo("SET", "shop:{3:abc}1:x", "made by hand")
	code, out, errs := commandUnder(t.Context(), "doctor", "--json", "-c", policy)
	var said struct {
		Address        string
		OK, Warn, Fail int
		Findings       []struct{ Check, Level, Text, Do string }
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if code != 0 || said.Fail != 0 || said.OK+said.Warn != len(said.Findings) || said.Address != "redis://"+s.Addr && said.Address != "redis://:***@"+s.Addr {
		t.Errorf("code %d: %s", code, out)
	}
	if !strings.Contains(out, "1 of them without expiry") || !strings.Contains(out, "requests wait 1s at most") || strings.Contains(out, "hunter") {
		t.Errorf("got %s", out)
	}
}

func TestDoctorIsToldOneStore(t *testing.T) {
	memory := file(t, "policy.yaml", "limits: [{name: a, per: address, limit: 1/s}]\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "give --store URL, or -c FILE"},
		{[]string{"--store", "redis://a", "-c", memory}, "give --store URL, or -c FILE"},
		{[]string{"-c", memory}, "names no redis"},
		{[]string{"--store", "localhost:6379"}, `"://" is missing`},
	} {
		if code, out, errs := command(t, append([]string{"doctor"}, c.args...)...); code != 1 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: code %d\n%s%s", c.args, code, out, errs)
		}
	}
}

// The rights in the manual are enough for a store, and no single one is too much.
func TestTheRightsInTheManual(t *testing.T) {
	manual, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```text acl\n(.*?)```").FindSubmatch(manual)
	if block == nil {
		t.Fatal("the manual has no rights")
	}
	s := redistest.Start(t)
	var rights []string
	for line := range strings.Lines(string(block[1])) {
		words := strings.Fields(line)
		s.MustDo(words...)
		rights = append(rights, words[3:]...)
	}
	url := "redis://comporta:PASSWORD@" + s.Addr
	if code, out := examine(t, url); code != 0 || strings.Contains(out, "may not") {
		t.Errorf("code %d\n%s", code, out)
	}
	if refused := s.MustDo("ACL", "LOG"); len(refused.([]any)) > 0 {
		t.Errorf("refused: %v", refused)
	}
	s.MustDo("ACL", "SETUSER", "comporta", "-evalsha", "-zadd")
	if code, out := examine(t, url); code != 1 || !strings.Contains(out, "→ ACL SETUSER comporta ~comporta:* +evalsha +zadd\n") {
		t.Errorf("without two rights: code %d\n%s", code, out)
	}
}

func TestDoctorLooksAtEachServerOfACluster(t *testing.T) {
	c := redistest.StartCluster(t)
	code, out := examine(t, c.URL())
	for _, n := range c.Nodes[:3] {
		if !strings.Contains(out, n.Addr+"\nok    round trip ") {
			t.Errorf("nothing about %s", n.Addr)
		}
	}
	if code != 0 || strings.Count(out, "ok    cluster      all slots are served by 3 primaries") != 3 || strings.Count(out, "ok    decision ") != 1 {
		t.Errorf("code %d\n%s", code, out)
	}
	if code, out := examine(t, c.Nodes[0].URL()); code != 1 || !strings.Contains(out, "→ write redis-cluster:// in the address") {
		t.Errorf("one node: code %d\n%s", code, out)
	}
}

func TestDoctorAsksSentinels(t *testing.T) {
	s := redistest.StartSentinel(t)
	code, out := examine(t, s.URL())
	if code != 0 || strings.Count(out, "ok    sentinel ") != 3 || !strings.Contains(out, "2 replicas") {
		t.Errorf("code %d\n%s", code, out)
	}
	if code, out := examine(t, s.Servers[1].URL()); code != 1 || !strings.Contains(out, "this is a replica, which takes no writes") {
		t.Errorf("a replica: code %d\n%s", code, out)
	}
	s.Sentinels[1].Kill()
	s.Sentinels[2].Kill()
	redistest.Until(t, 10*time.Second, func() error {
		if code, out := examine(t, s.URL()); code != 1 || !strings.Contains(out, "too few sentinels are left") {
			return fmt.Errorf("code %d\n%s", code, out)
		}
		return nil
	})
}
