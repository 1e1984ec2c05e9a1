// Gateway measures what a request costs a gateway that limits it: ours beside
// nginx, HAProxy and a reverse proxy with httprate, in processor time, by wrk.
// See docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/comporta/comporta/bench/internal/process"
	"github.com/comporta/comporta/bench/internal/report"
)

func main() {
	rounds := flag.Int("rounds", 5, "how many runs each proxy gets, in turns, after one to warm up")
	seconds := flag.Int("seconds", 3, "how long a run is")
	connections := flag.Int("connections", 32, "how many connections wrk keeps busy")
	comporta := flag.String("comporta", "", "the comporta program to measure; built from this repository when left out")
	each := flag.Bool("each", false, "print what each proxy needs, too")
	file := flag.String("write", "", "write the tables into this file, between its markers")
	role := flag.String("serve", "", "be the upstream or the peer (used internally, with -listen, -upstream and -mode)")
	listen := flag.String("listen", "", "")
	upstream := flag.String("upstream", "", "")
	as := flag.String("mode", "", "")
	flag.Parse()

	var err error
	switch *role {
	case "upstream":
		err = serveUpstream(*listen)
	case "peer":
		err = servePeer(*listen, *upstream, mode(*as))
	default:
		var table, all string
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		table, all, err = measure(ctx, *rounds, time.Duration(*seconds)*time.Second, *connections, *comporta)
		if err != nil {
			break
		}
		fmt.Print(table)
		if *each {
			fmt.Print("\n", all)
		}
		if *file != "" {
			err = report.WriteSection(*file, "gateway", report.Environment()+"\n"+table+"\nEach proxy:\n\n"+all)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/gateway:", err)
		os.Exit(1)
	}
}

// measure lets all proxies that are installed run in turns. It stops them all
// again, when the context ends too.
func measure(ctx context.Context, rounds int, run time.Duration, connections int, comporta string) (table, all string, err error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		return "", "", errors.New("wrk is not installed: on Debian, apt-get install wrk nginx haproxy")
	}
	dir, err := os.MkdirTemp("", "comporta-bench-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	load, err := newWrk(dir, connections)
	if err != nil {
		return "", "", err
	}
	w, upstream, err := newWorkshop(dir, comporta)
	if err != nil {
		return "", "", err
	}
	defer upstream.Stop()
	runners, err := w.launchAll()
	defer func() {
		for _, r := range runners {
			r.process.Stop()
		}
	}()
	if err != nil {
		return "", "", err
	}
	for i := range rounds + 1 {
		for _, r := range runners {
			d := run
			if i == 0 {
				d = time.Second
			}
			if err := r.run(ctx, load, d, i == 0); err != nil {
				return "", "", err
			}
		}
	}
	return report.Table(rows(runners)), eachTable(runners), nil
}

// newWorkshop builds what is to be measured and starts the upstream.
func newWorkshop(dir, comporta string) (*workshop, *process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	if comporta == "" {
		if comporta, err = build(dir); err != nil {
			return nil, nil, err
		}
	} else if comporta, err = filepath.Abs(comporta); err != nil {
		return nil, nil, err
	}
	port, err := process.FreePort()
	if err != nil {
		return nil, nil, err
	}
	upstream, err := process.Start("upstream", dir, port, self, "-serve", "upstream", "-listen", process.Address(port))
	if err != nil {
		return nil, nil, err
	}
	return &workshop{dir: dir, upstream: port, comporta: comporta, self: self}, upstream, nil
}

// build builds the comporta program of this repository.
func build(dir string) (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/comporta/comporta").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the repository (run this in bench/): %w", err)
	}
	program := filepath.Join(dir, "comporta")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/comporta")
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building comporta: %w\n%s", err, out)
	}
	return program, nil
}

// launchAll starts each proxy once in each mode. One that is not installed is
// left out, and said so. What was started is returned with an error too.
func (w *workshop) launchAll() ([]*runner, error) {
	var runners []*runner
	for _, p := range proxies {
		if p.needs != "" {
			if _, err := exec.LookPath(p.needs); err != nil {
				fmt.Fprintf(os.Stderr, "%s is not installed and left out: on Debian, apt-get install %s\n", p.name, p.needs)
				continue
			}
		}
		for _, m := range p.modes {
			port, err := process.FreePort()
			if err != nil {
				return runners, err
			}
			started, err := p.launch(w, m, port)
			if err != nil {
				return runners, err
			}
			runners = append(runners, &runner{proxy: p, mode: m, port: port, process: started})
		}
	}
	return runners, nil
}

// A runner is a proxy at work in one mode, and what it has needed.
type runner struct {
	proxy   proxy
	mode    mode
	port    string
	process *process.Process
	cpu     []float64 // µs of processor time a request, a value a run
	rate    []float64 // requests a second
}

func (r *runner) run(ctx context.Context, load *wrk, d time.Duration, warmUp bool) error {
	before, err := r.process.CPU()
	if err != nil {
		return err
	}
	a, err := load.run(ctx, r.port, d)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", r.proxy.name, r.mode, err)
	}
	after, err := r.process.CPU()
	if err != nil {
		return err
	}
	// A refusing limit may let a first request through.
	if want := map[bool]int{true: a.Requests, false: 0}[r.mode == refused]; a.Refused > want || a.Refused < want-2 {
		return fmt.Errorf("%s, %s: %d of %d requests were refused", r.proxy.name, r.mode, a.Refused, a.Requests)
	}
	if !warmUp {
		r.cpu = append(r.cpu, float64((after-before).Microseconds())/float64(a.Requests))
		r.rate = append(r.rate, float64(a.Requests)/d.Seconds())
	}
	return nil
}
