package callers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// python is Debian's, whose urllib3 is meant, whatever else is in the path.
const python = "/usr/bin/python3"

// demand ends the test where a program that the clients need is not there.
func demand(t *testing.T) {
	t.Helper()
	const how = "scripts/tools.sh installs it (or go test -short)"
	for _, name := range []string{"curl", "node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is not installed: %s", name, how)
		}
	}
	if out, err := exec.Command(python, "-c", "import urllib3").CombinedOutput(); err != nil {
		t.Fatalf("%s has no urllib3: %s\n%s", python, how, out)
	}
	// undici asks for 18.17; Debian 12 has 18.20.
	if major, err := strconv.Atoi(strings.SplitN(strings.TrimPrefix(said(t, "node", "--version"), "v"), ".", 2)[0]); err != nil || major < 18 {
		t.Fatalf("node is version %d: 18.17 or later is needed", major)
	}
}

// said is the output of a command, trimmed.
func said(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return strings.TrimSpace(string(out))
}

// script is a client that is a program: it is run with the query as arguments, and
// says in lines of JSON how each call ended.
func script(dir, interpreter, file string) func(context.Context, query) outcome {
	return func(ctx context.Context, q query) (o outcome) {
		order := "in-turn"
		if q.together {
			order = "together"
		}
		cmd := exec.CommandContext(ctx, interpreter, filepath.Join(dir, file), q.settings, q.method, "http://"+q.addr+q.path, q.key, strconv.Itoa(q.calls), order)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		cmd.WaitDelay = 5 * time.Second
		err := cmd.Run()
		for line := range strings.Lines(out.String()) {
			var said struct {
				Status *int
				Timer  float64
			}
			if err := json.Unmarshal([]byte(line), &said); err != nil {
				o.err = fmt.Errorf("%s says %q: %w", file, line, err)
				return o
			}
			if said.Status != nil {
				o.statuses = append(o.statuses, *said.Status)
			} else {
				o.timers = append(o.timers, time.Duration(said.Timer*float64(time.Millisecond)))
			}
		}
		// curl's exit code is that of the last call, whose status it has told.
		var exit *exec.ExitError
		if o.stopped = ctx.Err() != nil; err != nil && !o.stopped && (!errors.As(err, &exit) || len(o.statuses) < q.calls) {
			o.err = fmt.Errorf("%s: %w\n%s", file, err, &errs)
		}
		return o
	}
}
