package redisstore

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]Address{
		"redis://localhost":          {Servers: []string{"localhost:6379"}},
		"REDIS://localhost/":         {Servers: []string{"localhost:6379"}},
		"redis://10.0.0.1:7000/3":    {Servers: []string{"10.0.0.1:7000"}, DB: 3},
		"redis://h?db=3":             {Servers: []string{"h:6379"}, DB: 3},
		"rediss://h":                 {Servers: []string{"h:6379"}, TLS: true},
		"redis://[::1]":              {Servers: []string{"[::1]:6379"}},
		"redis://[fe80::1%25eth0]:1": {Servers: []string{"[fe80::1%eth0]:1"}},
		"redis://:pw@h":              {Servers: []string{"h:6379"}, Password: "pw"},
		"redis://u:p%40:%2F+@h":      {Servers: []string{"h:6379"}, Username: "u", Password: "p@:/+"},
		"redis://u:p@w@h":            {Servers: []string{"h:6379"}, Username: "u", Password: "p@w"},
		"redis://u:@h":               {Servers: []string{"h:6379"}, Username: "u"},
		"redis-sentinel://a,b:1,[::2]/mymaster": {
			Kind: Sentinel, Servers: []string{"a:26379", "b:1", "[::2]:26379"}, Master: "mymaster",
		},
		"redis+sentinel://u:p@a/my%20master/2": {
			Kind: Sentinel, Servers: []string{"a:26379"}, Master: "my master", DB: 2, Username: "u", Password: "p",
		},
		"redis-sentinel://a/2?sentinelMasterId=m&sentinel_user=su&sentinel_password=s+p%26": {
			Kind: Sentinel, Servers: []string{"a:26379"}, Master: "m", DB: 2, SentinelUsername: "su", SentinelPassword: "s+p&",
		},
		"rediss-sentinel://a?master=m&db=1": {Kind: Sentinel, Servers: []string{"a:26379"}, Master: "m", DB: 1, TLS: true},
		"redis-cluster://u:p@a:1,b/0":       {Kind: Cluster, Servers: []string{"a:1", "b:6379"}, Username: "u", Password: "p"},
		"rediss-cluster://a?tls_server_name=redis.internal&ca_file=/etc/ca.pem&cert_file=/c.pem&key_file=/k.pem": {
			Kind: Cluster, Servers: []string{"a:6379"}, TLS: true,
			ServerName: "redis.internal", CAFile: "/etc/ca.pem", CertFile: "/c.pem", KeyFile: "/k.pem",
		},
		"unix:///run/my%20redis.sock?db=4": {Servers: []string{"/run/my redis.sock"}, DB: 4},
		"unix://u:p@/run/redis@1.sock":     {Servers: []string{"/run/redis@1.sock"}, Username: "u", Password: "p"},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := ParseAddress(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Fatal(diff)
			}
			// What it prints says the same, passwords aside.
			again, err := ParseAddress(got.String())
			if err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			want.Password, want.SentinelPassword = again.Password, again.SentinelPassword
			if diff := cmp.Diff(&want, again); diff != "" {
				t.Fatalf("%s: %s", got, diff)
			}
		})
	}
}

func TestParseAddressFaults(t *testing.T) {
	// hunter2 is a piece of a password in each of them.
	for text, want := range map[string]string{
		"":                                               `"://" is missing`,
		"hunter2@h:6379":                                 `"://" is missing`,
		"hunter2://h":                                    "the scheme is none of",
		"redis://:hunter2@":                              "server 1: there is no host",
		"redis://":                                       "there is no host",
		"redis-cluster://:hunter2@a,,b":                  "server 2: there is no host",
		"redis://hunter2@h":                              "a user or a password?",
		"redis://:a#hunter2@h":                           "%23",
		"redis://:a/hunter2@h":                           "%2F",
		"redis://:a?hunter2@h":                           "%3F",
		"redis://:hunter2%@h":                            "the password has a",
		"redis://hunter2%zz:p@h":                         "the user has a",
		"redis://:a?hunter2=b@h":                         "an option is none of",
		"redis://:hunter2@h:0":                           "no number from 1 to 65535",
		"redis://:hunter2@h:65536":                       "no number from 1 to 65535",
		"redis://:hunter2@h:+1":                          "no number from 1 to 65535",
		"redis://h:hunter2":                              "no number from 1 to 65535",
		"redis://h:":                                     "no number from 1 to 65535",
		"redis://::1":                                    "in brackets",
		"redis://[hunter2]":                              "no IPv6 address",
		"redis://[::1":                                   "in brackets",
		"redis://hunter2!":                               "a letter that no host name has",
		"redis://:hunter2@a,b":                           "there are several servers",
		"redis://:hunter2@h/a":                           "the database is a whole number",
		"redis://:hunter2@h/-1":                          "the database is a whole number",
		"redis://:hunter2@h/1/2":                         "a part too many",
		"redis://:hunter2@h/1?db=1":                      "given twice",
		"redis://:hunter2@h?db=1&db=2":                   "option db is given twice",
		"redis://:hunter2@h?db=":                         "option db is empty",
		"redis://:hunter2@h?ca_file=%":                   "option ca_file has a",
		"redis://:hunter2@h?timeout=1s":                  "an option is none of",
		"redis://:hunter2@h?master=m":                    "for redis-sentinel:// only",
		"redis://h?sentinel_password=hunter2":            "for redis-sentinel:// only",
		"redis-sentinel://:hunter2@h":                    "redis-sentinel://host/mymaster",
		"redis-sentinel://:hunter2@h/%":                  "the master's name has a",
		"redis-sentinel://h/m/x?db=hunter2":              "given twice",
		"redis-sentinel://h/m?sentinel_user=hunter2":     "needs sentinel_password",
		"redis-sentinel://h/m?master=a&master_name=b":    "option master is given twice",
		"redis-cluster://:hunter2@h/1":                   "only database 0",
		"redis://:hunter2@h?ca_file=/a":                  "need a scheme that speaks it",
		"rediss://:hunter2@h?cert_file=/a":               "come together",
		"unix://:hunter2@h/run/redis.sock":               "a socket is an absolute path",
		"unix://:hunter2@":                               "a socket is an absolute path",
		"unix:///run/%zz":                                "the path has a",
		"redis-cluster://:hunter2@h?tls_server_name=a.b": "need a scheme that speaks it",
	} {
		t.Run(text, func(t *testing.T) {
			a, err := ParseAddress(text)
			if err == nil {
				t.Fatalf("no error: %#v", a)
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: want %q", err, want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v: the error shows a password", err)
			}
		})
	}
}

func TestAddressShowsNoPassword(t *testing.T) {
	a, err := ParseAddress("redis-sentinel://u:hunter2@h/m?sentinel_password=hunter2")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q %v %#v %s", a, a, a, a, a, *a, *a, asJSON)
	if strings.Contains(shown, "hunter2") {
		t.Fatal(shown)
	}
	if want := "redis-sentinel://u:***@h:26379/m?sentinel_password=***"; a.String() != want {
		t.Fatalf("%s, want %s", a, want)
	}
}

func TestTLSConfig(t *testing.T) {
	none, err := (&Address{}).TLSConfig()
	if none != nil || err != nil {
		t.Fatal(none, err)
	}
	c, err := (&Address{TLS: true, ServerName: "redis.internal"}).TLSConfig()
	if err != nil || c.ServerName != "redis.internal" || c.RootCAs != nil {
		t.Fatal(c, err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, a := range map[string]Address{
		"no such file":            {CAFile: empty + "x"},
		"there is no certificate": {CAFile: empty},
		"cert_file and key_file":  {CertFile: empty, KeyFile: empty},
	} {
		a.TLS = true
		if _, err := a.TLSConfig(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("redis-sentinel://u:p@a:1,[::1]/m/3?sentinel_password=x")
	f.Add("unix://:p@/run/redis.sock?db=1")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if err != nil {
			return
		}
		if _, err := ParseAddress(a.String()); err != nil {
			t.Fatalf("%q became %q: %v", text, a.String(), err)
		}
	})
}
