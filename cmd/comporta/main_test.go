package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// command runs one command line in this process. What serves ends at once.
func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return commandUnder(ctx, args...)
}

// commandUnder runs one command line until it ends or ctx does.
func commandUnder(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(ctx, args, &streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// file writes a file of the test's own.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodPolicy = `server: {upstream: "http://127.0.0.1:9000"}
limits:
  - {name: requests, per: address, limit: 100/min burst 20}
  - {name: keys, per: {header: X-API-Key}, limit: 10/s}
`

func TestWhatIsWrongIsOneLineAndACode(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	good := file(t, "good.yaml", goodPolicy)
	for _, test := range []struct {
		line string
		code int
		want string
	}{
		{"serve -c nowhere.yaml", 1, "comporta: cannot read nowhere.yaml: no such file or directory"},
		{"serve -c " + filepath.Dir(good), 1, "comporta: cannot read " + filepath.Dir(good) + ": is a directory"},
		{"serve --upstream nonsense --limit 1/s", 1, "--upstream"},
		{"serve --upstream http://127.0.0.1:9 --limit often", 1, "--limit"},
		{"serve --upstream http://127.0.0.1:9 --limit 1/s --algorithm none", 1, "--algorithm"},
		{"serve --upstream http://127.0.0.1:9 --limit 1/s --per cookie:x", 1, "--per"},
		{"serve --upstream http://127.0.0.1:9", 1, "add --limit"},
		{"serve --limit 1/s", 1, "add --upstream"},
		{"serve -c " + good + " --limit 1/s", 1, "either the file or the flags"},
		{"serve --metrics off --listen " + taken, 1, "comporta: cannot listen on " + taken + ": another program has the port; choose another one, with --listen"},
		{"serve --listen 127.0.0.1:0 --metrics " + taken, 1, "with --metrics"},
		{"serve --listen nowhere", 1, "comporta: cannot listen on nowhere: "},
		{"check nowhere.yaml", 1, "comporta: cannot read nowhere.yaml: no such file or directory"},
		{"serve --lisen x", 2, `comporta: unknown flag --lisen, did you mean "--listen"? See comporta serve --help` + "\n"},
		{"serve --log xml", 2, `comporta: --log must be one of "auto","json","text" but got "xml". See comporta serve --help`},
		{"serv", 2, `did you mean "serve"? See comporta --help`},
		{"dance", 2, "dance"},
		{"check", 2, "<file>"},
	} {
		code, _, errs := command(t, strings.Fields(test.line)...)
		if code != test.code || !strings.Contains(errs, test.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("comporta %s: code %d, want %d and %q:\n%s", test.line, code, test.code, test.want, errs)
		}
	}
}

func TestCheckPrintsThePolicyAndAllThatIsWrong(t *testing.T) {
	code, out, errs := command(t, "check", file(t, "good.yaml", goodPolicy))
	if code != 0 || !strings.Contains(out, "requests") || !strings.Contains(out, "100/min burst 20") || !strings.Contains(errs, "W-FORGEABLE") {
		t.Errorf("code %d\n%s\n%s", code, out, errs)
	}
	code, out, _ = command(t, "check", "--json", file(t, "good.yaml", goodPolicy))
	if code != 0 || !strings.HasPrefix(out, "{") || !strings.Contains(out, `"requests"`) {
		t.Errorf("--json: code %d\n%s", code, out)
	}
	code, out, errs = command(t, "check", file(t, "bad.yaml", "server: {upsteam: x}\nlimits:\n  - {name: a, per: address, limit: 5/secnod}\n"))
	if code != 1 || out != "" || !strings.Contains(errs, "bad.yaml:1:") || !strings.Contains(errs, "bad.yaml:3:") {
		t.Errorf("bad: code %d\n%s\n%s", code, out, errs)
	}
}

// On a terminal both streams are one: what is warned of stands last, below a
// page of policy, where it is seen.
func TestCheckWarnsBelowThePolicy(t *testing.T) {
	var terminal bytes.Buffer
	code := run(t.Context(), []string{"check", file(t, "good.yaml", goodPolicy)}, &streams{strings.NewReader(""), &terminal, &terminal})
	lines := strings.Split(strings.TrimSuffix(terminal.String(), "\n"), "\n")
	if code != 0 || !strings.Contains(lines[len(lines)-1], "W-FORGEABLE") || strings.Count(terminal.String(), "W-FORGEABLE") != 1 {
		t.Errorf("code %d\n%s", code, &terminal)
	}
}

func TestSchemaVersionAndHelpAreOnTheStandardOutput(t *testing.T) {
	for line, want := range map[string]string{"schema": "Comporta policy", "schema --egress": "Comporta egress", "version": "comporta ", "--help": "simulate", "serve --help": "--upstream", "": "serve"} {
		if code, out, errs := command(t, strings.Fields(line)...); code != 0 || !strings.Contains(out, want) || errs != "" {
			t.Errorf("comporta %s: code %d\n%s\n%s", line, code, out, errs)
		}
	}
}

func TestServeEndsWellWhenItIsTold(t *testing.T) {
	code, out, errs := command(t, "serve", "-c", file(t, "good.yaml", goodPolicy), "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--drain-delay", "0s")
	if code != 0 || out != "" || !strings.Contains(errs, `"msg":"stopped"`) || !strings.Contains(errs, `"code":"W-FORGEABLE"`) {
		t.Errorf("code %d\n%s\n%s", code, out, errs)
	}
}

func TestReachableAddressesCanBeDialled(t *testing.T) {
	for given, want := range map[string]string{"0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80", "[::1]:80": "[::1]:80", "10.0.0.1:80": "10.0.0.1:80"} {
		a, err := net.ResolveTCPAddr("tcp", given)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(a); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
