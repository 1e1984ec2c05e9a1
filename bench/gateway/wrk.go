package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta/bench/internal/process"
)

// wrkScript makes wrk's report one line of JSON. Errors are of status what is not
// 2xx or 3xx; the others are requests that got no answer.
const wrkScript = `done = function(summary)
  local e = summary.errors
  io.write(string.format('\nRESULT {"requests": %d, "refused": %d, "failed": %d}\n',
    summary.requests, e.status, e.connect + e.read + e.write + e.timeout))
end
`

// An answer is what a run of wrk counted.
type answer struct {
	Requests, Refused, Failed int
}

// A wrk is a load tool that is ready to run.
type wrk struct {
	script      string
	connections int
}

func newWrk(dir string, connections int) (*wrk, error) {
	w := &wrk{filepath.Join(dir, "report.lua"), connections}
	return w, os.WriteFile(w.script, []byte(wrkScript), 0o644)
}

// run makes requests as fast as they are answered, for so many whole seconds.
func (w *wrk) run(ctx context.Context, port string, d time.Duration) (a answer, err error) {
	out, err := exec.CommandContext(ctx, "wrk", "-t", "1", "-c", strconv.Itoa(w.connections), "-d", strconv.Itoa(int(d.Seconds()))+"s",
		"-s", w.script, "http://"+process.Address(port)+"/v1/things").CombinedOutput()
	if err != nil {
		return a, fmt.Errorf("wrk: %w: %s", err, out)
	}
	_, line, found := strings.Cut(string(out), "RESULT ")
	if !found {
		return a, fmt.Errorf("wrk said nothing of use: %s", out)
	}
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		return a, fmt.Errorf("wrk: %w", err)
	}
	if a.Failed > 0 || a.Requests == 0 {
		return a, fmt.Errorf("wrk: %d of %d requests got no answer", a.Failed, a.Requests)
	}
	return a, nil
}
