package main

import (
	"bytes"
	"strings"
	"testing"
)

func fleet(t *testing.T, args string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), append([]string{"fleet"}, strings.Fields(args)...), &streams{strings.NewReader(""), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

func TestFleet(t *testing.T) {
	const busy = "--limit 10000/10s --rate 1000 --for 5s "
	for args, want := range map[string]string{
		busy + "--lease off": " 0  leased",
		busy + "--unreachable 1s@2s --on-error deny --die 2@1s --forget 10ms@4s --drift 500 --late 0.01 --uneven --clients 3": " 0  of them without the store",
	} {
		code, out, errs := fleet(t, args)
		_, again, _ := fleet(t, args)
		if code != exitOK || errs != "" || !strings.Contains(out, want) || out != again {
			t.Errorf("%s: exit %d, %s\n%s", args, code, errs, out)
		}
	}
}

func TestFleetErrorsSayWhichFlag(t *testing.T) {
	for args, want := range map[string]string{
		"--limit 10/s --rate 1 --lease 1x":          "--lease",
		"--limit 10/s --rate 1 --die 5":             "--die",
		"--limit 10/s --rate 1 --unreachable x@1s":  "--unreachable",
		"--limit 10/s --rate 1 --for x":             "--for",
		"--limit 10/s --rate NaN":                   "--rate",
		"--limit x --rate 1":                        "--limit",
		"--limit 10/s --rate 1 --algorithm x":       "--algorithm",
		"--limit 10/s --rate 1 --share 70":          "lease",
		"--limit 10/s --rate 1 --drift 900000":      "drift",
		"--limit 10/s --rate 1 --instances 0":       "instances",
		"--limit 10/s --rate 1 --ttl x":             "--ttl",
		"--limit 10/s --rate 1e9 --instances 10000": "--rate",
	} {
		if code, _, errs := fleet(t, args); code != exitFailed || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", args, code, errs)
		}
	}
}
