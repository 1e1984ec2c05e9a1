package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/internal/sim"
	"golang.org/x/term"
)

// simulateCmds are what can be simulated: arrivals, unless another is named.
type simulateCmds struct {
	Arrivals simulateCmd `cmd:"" default:"withargs" help:"Try a limit on arrivals that you write down (the default)."`
	Crowd    crowdCmd    `cmd:"" help:"Try a limit on many callers, naive and well-behaved."`
}

// Help says what stands for the default.
func (simulateCmds) Help() string {
	return `Without a command, the flags are those of arrivals, as in

    comporta simulate --limit '1/s burst 5' --at '7@0s,3@2s,10@10s'`
}

// simulateCmd plays arrivals that are written down against a limit, on a virtual
// clock.
type simulateCmd struct {
	Limit     string `placeholder:"LIMIT" help:"The limit, like '100/min' or '1/s burst 5'." xor:"limit"`
	Quota     string `placeholder:"QUOTA" help:"A quota over a calendar period in UTC, like '1000/month'." xor:"limit"`
	Algorithm string `placeholder:"NAME" help:"token_bucket (the default), leaky_bucket, fixed_window, sliding_counter, sliding_log; or all, to compare the five."`
	At        string `placeholder:"ARRIVALS" help:"What arrives, like '7@0s,3@2s,10@10s'."`
	Cost      int64  `default:"1" placeholder:"UNITS" help:"What each request costs where its arrival does not say (default: 1; 0 only looks)."`
	MaxWait   string `placeholder:"TIME" help:"Let a token_bucket delay what is over it, by at most this long."`
	Charge    string `default:"admitted" enum:"admitted,attempts" help:"Which requests are charged: admitted (the default) or attempts."`
	Start     string `default:"0" placeholder:"TIME" help:"The instant of time 0: a time after the start of a window, like 30s, or a date like 2026-10-25T00:30:00Z."`
	SVG       string `name:"svg" placeholder:"FILE" help:"Also draw the timeline as a picture; - draws it on the standard output, and nothing else."`
	JSON      bool   `name:"json" help:"Write one line of JSON instead of a table and a timeline."`
	Vectors   string `placeholder:"FILE" help:"Answer takes and settles from JSON lines instead; - for the standard input."`
}

// Help is the grammar, below the flags.
func (simulateCmd) Help() string {
	return `Arrivals are written

    ARRIVALS = BURST { "," BURST }
    BURST    = COUNT "@" TIME [ "every" TIME ] [ "cost" UNITS ]
    TIME     = 0 | 2s | 59.9s | 1m30s | 500ms | 250us | 7d

so that '7@0s, 3@2s' is seven at once and three more two seconds later, and '30@0s every 100ms cost 2' is thirty, one every 100 ms, of two units each. They are decided in order of time, those of the same instant in the order written. Time 0 is the start of a window; the client is new.

Limits are written

    LIMIT    = COUNT "/" PERIOD [ "burst" COUNT ]  |  "unlimited"
    QUOTA    = COUNT "/" ( day | week | month | year )
    PERIOD   = s | min | h | a duration such as 500ms, 2m30s, 24h, 7d

With --algorithm all, numbers that an algorithm cannot use are left out, with a note. In the timeline, arrivals stand above the axis and what was admitted below it, at the time when it goes on, after any delay.

Each line of --vectors is a limit with takes and settles on one new client; the same lines are written with each "want" replaced by "got", the decision made here. There, a retry_after_us of -1 is never.`
}

// Run carries out the command.
func (c *simulateCmd) Run(std *streams) error {
	if c.Vectors != "" {
		return c.answer(std)
	}
	report, err := c.play()
	if err != nil {
		return err
	}
	return writeReport(std, report, c.SVG, c.JSON)
}

func (c *simulateCmd) answer(std *streams) error {
	if c.Limit != "" || c.Quota != "" || c.At != "" || c.SVG != "" || c.JSON {
		return errors.New("--vectors brings its own limits and takes: leave out --limit, --quota, --at, --svg and --json")
	}
	if c.Vectors == "-" {
		return sim.Vectors(std.In, std.Out)
	}
	file, err := os.Open(c.Vectors)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := sim.Vectors(file, std.Out); err != nil {
		return fmt.Errorf("%s: %w", c.Vectors, err)
	}
	return nil
}

// play reads the flags and simulates.
func (c *simulateCmd) play() (*sim.Report, error) {
	scene, err := c.scene()
	if err != nil {
		return nil, err
	}
	if c.At == "" {
		return nil, errors.New("--at is missing: write what arrives, like --at '7@0s,3@2s'")
	}
	if scene.Bursts, err = sim.ParseBursts(c.At, c.Cost); err != nil {
		return nil, fmt.Errorf("--at: %w", err)
	}
	if scene.Start, err = sim.ParseStart(c.Start); err != nil {
		return nil, fmt.Errorf("--start: %w", err)
	}
	return scene.Play()
}

// scene is the limit and its algorithms, without arrivals.
func (c *simulateCmd) scene() (scene sim.Scene, err error) {
	switch {
	case c.Limit != "":
		scene.Limit, err = comporta.ParseLimit(c.Limit)
	case c.Quota != "":
		scene.Limit, err = comporta.ParseQuota(c.Quota)
	default:
		err = errors.New("--limit is missing: write it like --limit '1/s burst 5', or --quota 1000/month")
	}
	if err != nil {
		return scene, err
	}
	switch c.Algorithm {
	case "":
		scene.Algorithms = []comporta.Algorithm{scene.Limit.Algorithm}
	case "all":
		scene.Algorithms, scene.Lenient = comporta.Algorithms(), true
	default:
		algorithm, err := comporta.ParseAlgorithm(c.Algorithm)
		if err != nil {
			return scene, fmt.Errorf("--algorithm: %w, or all", err)
		}
		scene.Algorithms = []comporta.Algorithm{algorithm}
	}
	if c.MaxWait != "" {
		if scene.Limit.MaxWait, err = sim.ParseTime(c.MaxWait); err != nil {
			return scene, fmt.Errorf("--max-wait: %w", err)
		}
	}
	scene.Limit.Charge, err = comporta.ParseCharge(c.Charge)
	return scene, err
}

// writeReport writes what was simulated: as a picture into a file, or with - as
// nothing else, and as text, or as JSON.
func writeReport(std *streams, report interface {
	WriteText(io.Writer, sim.Screen) error
	WriteJSON(io.Writer) error
	WriteSVG(io.Writer) error
}, picture string, asJSON bool) error {
	if picture == "-" {
		return report.WriteSVG(std.Out)
	}
	if picture != "" {
		if err := writeFile(picture, report.WriteSVG); err != nil {
			return err
		}
	}
	if asJSON {
		return report.WriteJSON(std.Out)
	}
	return report.WriteText(std.Out, screenOf(std.Out))
}

// writeFile makes a file of what write writes.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// screenOf is what is known of the other end: a terminal tells its width and has
// colours, unless NO_COLOR is set; anything else is 80 columns, or COLUMNS.
func screenOf(w io.Writer) sim.Screen {
	screen := sim.Screen{Width: 80}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 && width <= 1000 {
		screen.Width = width
	}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		screen.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			screen.Width = width
		}
	}
	return screen
}
