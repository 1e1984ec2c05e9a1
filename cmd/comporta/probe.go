package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/config"
	"github.com/comporta/comporta/internal/probe"
	"golang.org/x/term"
)

// probeCmd finds out from outside how an API limits its callers.
type probeCmd struct {
	URL            string        `arg:"" help:"What is asked for, again and again."`
	Header         []string      `short:"H" sep:"none" placeholder:"NAME: VALUE" help:"A field that says who asks, like 'X-API-Key: k1'. It is in no report."`
	SecondIdentity []string      `sep:"none" placeholder:"NAME: VALUE" help:"The same of another client, to see whether one is refused for the other."`
	Method         string        `short:"X" placeholder:"METHOD" help:"The method (default: GET, or POST with -d)."`
	Data           string        `short:"d" placeholder:"TEXT" help:"The body."`
	Denied         int           `placeholder:"STATUS" help:"A status that means a refusal, beside 429: nginx answers 503, and HAProxy 403, unless told otherwise."`
	MaxRequests    int           `default:"5000" placeholder:"N" help:"Never send more (default: 5000)."`
	MaxTime        time.Duration `default:"10m" placeholder:"TIME" help:"Never take longer (default: 10m)."`
	Yes            bool          `short:"y" help:"Do not ask before sending to a host that is not this machine."`
	Quick          bool          `help:"Only find out what the limit is."`
	Expect         string        `placeholder:"LIMIT" help:"The limit that it ought to be, like '100/min burst 20': anything else fails."`
	Algorithm      string        `placeholder:"NAME" help:"With --expect: the algorithm that it ought to be (default: any)."`
	Config         string        `short:"c" placeholder:"FILE" help:"Instead of --expect: the policy file that has it."`
	LimitName      string        `placeholder:"NAME" help:"With -c: which of its limits, where there are several."`
	HTML           string        `name:"html" placeholder:"FILE" help:"Also write the report as a page with pictures."`
	JSON           string        `name:"json" placeholder:"FILE" help:"Also write it as JSON; - writes it on the standard output, and nothing else."`
	JUnit          string        `name:"junit" placeholder:"FILE" help:"Also write it as JUnit XML, for build servers."`
}

// Help says what it does and how it ends.
func (probeCmd) Help() string {
	return `It uses up the limit of the first identity, several times, and compares what passes with what each algorithm would do. Then it asks whether headers tell the truth, whether another client is left alone, and whether there is a way past the limit. Probe your own APIs, or with their owner's consent: it says what it will send before it does, never sends more, and stops when the server fails.

Fields of -H whose names --second-identity has too say who asks; without one, those do that are named like keys or tokens. The others go with every request.

It ends with 0; with 1 where a contract (--expect, -c) is broken or could not be proved, or where the server gave no answers to judge by; with 2 where a flag is wrong or nobody said yes.`
}

// Run carries out the command.
func (c *probeCmd) Run(ctx context.Context, std *streams) error {
	o, err := c.options()
	if err == nil {
		o.Expect, err = c.contract(std)
	}
	switch {
	case errors.Is(err, errReported): // of the policy file
		return err
	case err != nil:
		fmt.Fprintf(std.Err, "comporta: %v\n", err)
		return errUsage
	}
	messages := std.Out
	if c.JSON == "-" {
		messages = std.Err
	}
	fmt.Fprintln(messages, probe.Plan(o))
	if err := c.consent(o.Target.URL, std); err != nil {
		return err
	}
	progress := newProgress(std.Err)
	o.Progress = progress.tell
	report, interrupted := probe.Run(ctx, o)
	progress.end()
	if err := c.write(report, std); err != nil {
		return err
	}
	f := report.Finding
	unanswered := !f.Limited && (report.Ended != "" || f.AtLeast == 0)
	if interrupted != nil || unanswered || o.Expect != nil && !report.Kept() {
		return errReported
	}
	return nil
}

func (c *probeCmd) options() (o probe.Options, err error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return o, errors.New("write the URL like http://127.0.0.1:8080/search")
	}
	if u.User != nil {
		return o, errors.New("the URL has a user in it: give -H 'Authorization: Basic …' instead")
	}
	if c.Denied != 0 && (c.Denied < 400 || c.Denied > 599) {
		return o, errors.New("--denied: a status from 400 to 599")
	}
	method := c.Method
	switch {
	case method == "" && c.Data != "":
		method = http.MethodPost
	case method == "":
		method = http.MethodGet
	}
	if c.MaxRequests < 1 || c.MaxTime <= 0 {
		return o, errors.New("--max-requests and --max-time: more than nothing")
	}
	if strings.Trim(strings.ToLower(method), "abcdefghijklmnopqrstuvwxyz-_") != "" {
		return o, errors.New("--method: letters, like POST")
	}
	for _, file := range []string{c.HTML, c.JSON, c.JUnit} {
		if file == "" || file == "-" {
			continue
		}
		if in, err := os.Stat(filepath.Dir(file)); err != nil || !in.IsDir() { // better now than after ten minutes
			return o, fmt.Errorf("cannot write %s: there is no folder %s", file, filepath.Dir(file))
		}
	}
	o = probe.Options{
		Target: probe.Target{Method: method, URL: c.URL, Body: c.Data, Denied: c.Denied},
		Budget: probe.Budget{Requests: c.MaxRequests, Time: c.MaxTime}, Quick: c.Quick,
	}
	var both [2]http.Header
	for i, identity := range []struct {
		flag  string
		lines []string
	}{{"-H", c.Header}, {"--second-identity", c.SecondIdentity}} {
		fields := http.Header{}
		for _, line := range identity.lines {
			name, value, ok := strings.Cut(line, ":")
			control := func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
			if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\"(),/;<=>?@[\\]{}") || strings.ContainsFunc(line, control) {
				return o, fmt.Errorf("%s: write it like 'X-API-Key: k1'", identity.flag) // it is not repeated: it is a secret
			}
			fields.Add(name, strings.TrimSpace(value))
		}
		both[i] = fields
	}
	o.Target.Identify(both[0], both[1])
	return o, nil
}

// contract is what the limit ought to be; nil where nothing was said.
func (c *probeCmd) contract(std *streams) (*probe.Contract, error) {
	switch {
	case c.Algorithm != "" && c.Expect == "":
		return nil, errors.New("--algorithm goes with --expect")
	case c.LimitName != "" && c.Config == "":
		return nil, errors.New("--limit-name goes with -c")
	case c.Expect != "" && c.Config != "":
		return nil, errors.New("give either --expect or -c")
	case c.Expect != "":
		limit, err := comporta.ParseLimit(c.Expect)
		if err != nil {
			return nil, fmt.Errorf("--expect: %w", err)
		}
		contract := &probe.Contract{Limit: limit, AnyAlgorithm: c.Algorithm == ""}
		if c.Algorithm != "" {
			if contract.Limit.Algorithm, err = comporta.ParseAlgorithm(c.Algorithm); err != nil {
				return nil, fmt.Errorf("--algorithm: %w", err)
			}
		}
		if _, err := contract.Limit.Compile(); err != nil {
			return nil, fmt.Errorf("--expect: %w", err)
		}
		return contract, nil
	case c.Config != "":
		cfg, err := load(c.Config, std)
		if err != nil {
			return nil, err
		}
		return c.policyContract(cfg)
	}
	return nil, nil
}

func (c *probeCmd) policyContract(cfg *config.Config) (*probe.Contract, error) {
	var names []string
	for _, l := range cfg.Policy.Limits {
		limit := l.Limit
		if limit.Calendar != nil || limit.Unlimited || c.LimitName != "" && l.Name != c.LimitName {
			continue
		}
		names = append(names, l.Name)
		if c.LimitName != "" {
			return &probe.Contract{Limit: limit}, nil
		}
	}
	switch {
	case c.LimitName != "":
		return nil, fmt.Errorf("%s: no limit with a window is named %s", c.Config, c.LimitName)
	case len(names) == 0:
		return nil, fmt.Errorf("%s: it has no limit with a window", c.Config)
	case len(names) > 1:
		return nil, fmt.Errorf("%s: it has several limits: say which with --limit-name: %s", c.Config, strings.Join(names, ", "))
	}
	c.LimitName = names[0]
	return c.policyContract(cfg)
}

// consent asks before anything is sent to another machine.
func (c *probeCmd) consent(target string, std *streams) error {
	if c.Yes || loopback(target) {
		return nil
	}
	if in, ok := std.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprint(std.Err, "This is not a host of this machine. Is it yours to probe? [y/N] ")
		line, _ := bufio.NewReader(in).ReadString('\n') // an end is no yes
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			return nil
		}
		fmt.Fprintln(std.Err, "comporta: nothing was sent.")
		return errUsage
	}
	fmt.Fprintln(std.Err, "comporta: this is not a host of this machine, so nothing was sent: add --yes if it is yours to probe.")
	return errUsage
}

// loopback says whether a URL leads to this machine alone.
func loopback(target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return addr.Unmap().IsLoopback()
	}
	if u.Hostname() != "localhost" {
		return false // a name may lead elsewhere the next time
	}
	addrs, err := net.LookupIP("localhost")
	for _, a := range addrs {
		if !a.IsLoopback() {
			return false
		}
	}
	return err == nil && len(addrs) > 0
}

// write writes the report wherever it was asked for: what fails in one place is in
// the others.
func (c *probeCmd) write(r *probe.Report, std *streams) error {
	var errs []error
	if c.JSON == "-" {
		errs = append(errs, r.WriteJSON(std.Out))
	} else {
		screen := screenOf(std.Out)
		fmt.Fprintln(std.Out)
		errs = append(errs, r.WriteText(std.Out, probe.Screen{Width: screen.Width, Color: screen.Color}))
	}
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{{c.HTML, r.WriteHTML}, {c.JUnit, r.WriteJUnit}, {c.JSON, r.WriteJSON}} {
		if file.name != "" && file.name != "-" {
			errs = append(errs, writeFile(file.name, file.write))
		}
	}
	return errors.Join(errs...)
}

// A progress tells on a terminal what goes on, in one line that is written over.
type progress struct {
	to       io.Writer // nil where nobody watches
	sent     int
	refused  int
	doing    string
	written  time.Time
	anything bool
}

func newProgress(w io.Writer) *progress {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &progress{to: w}
	}
	return &progress{}
}

func (p *progress) tell(doing string, s *probe.Shot) {
	if p.to == nil {
		return
	}
	p.doing = doing
	if s != nil {
		p.sent++
		if s.Denied() {
			p.refused++
		}
		if s.Received.Sub(p.written) < 100*time.Millisecond {
			return
		}
		p.written = s.Received
	}
	p.anything = true
	fmt.Fprintf(p.to, "\r\x1b[K%d sent, %d refused; %s …", p.sent, p.refused, p.doing)
}

func (p *progress) end() {
	if p.anything {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
