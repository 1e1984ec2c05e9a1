// Command comporta limits how often clients may call an HTTP API: a gateway in
// front of any upstream, a checker of its policy files, a simulator of limits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // quotas have time zones wherever the binary runs

	"github.com/alecthomas/kong"
)

// commands are the words after comporta.
type commands struct {
	Serve    serveCmd     `cmd:"" help:"Limit the requests to an upstream. With no flags: a demonstration."`
	Check    checkCmd     `cmd:"" help:"Check a policy file and print how it is understood."`
	Explain  explainCmd   `cmd:"" help:"Tell what a policy does with a request, and why."`
	Publish  publishCmd   `cmd:"" help:"Write the limits as a page for those who call the API."`
	Top      topCmd       `cmd:"" help:"Show the clients of a running gateway with the most use, or denials."`
	Show     showCmd      `cmd:"" help:"Show one client of a running gateway under all limits."`
	Reset    resetCmd     `cmd:"" help:"Make a client of a running gateway new."`
	Grant    grantCmd     `cmd:"" help:"Give a client of a running gateway back units that it used."`
	Override overrideCmd  `cmd:"" help:"Give clients of a running gateway numbers of their own."`
	Schema   schemaCmd    `cmd:"" help:"Print the JSON Schema of policy files."`
	Doctor   doctorCmd    `cmd:"" help:"Examine the Redis or Valkey that is to keep counts, and say what to change."`
	Egress   egressCmd    `cmd:"" help:"Call the APIs of others within their limits, for programs in any language."`
	Probe    probeCmd     `cmd:"" help:"Find out from outside how an API limits its callers."`
	Simulate simulateCmds `cmd:"" help:"Try a limit on arrivals that you write down, or on a crowd of callers."`
	Fleet    fleetCmd     `cmd:"" help:"Try a limit on instances that share it, with leases and failures."`
	Version  versionCmd   `cmd:"" help:"Print the version."`
}

// streams are the standard streams, so that commands can be run in tests.
type streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exit codes. A usage error is a word or flag that does not exist.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// twice is how long after the first signal another one is still the same wish:
// who stops a process and then its whole group, as timeout(1) does, sends
// two. One that comes later ends the process at once.
const twice = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(twice, stop) })
	os.Exit(run(ctx, os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr}))
}

// errReported is a failure whose words have been written already, errUsage one
// that ends as a usage error does.
var (
	errReported = errors.New("reported")
	errUsage    = errors.New("reported, and the usage is wrong")
)

// run carries out one command line and is its exit code. What goes wrong is told
// on std.Err, prefixed with the program's name.
func run(ctx context.Context, args []string, std *streams) (code int) {
	// kong asks to exit after --help; there it has nothing more to do.
	type exit int
	defer func() {
		if p := recover(); p != nil {
			asked, ok := p.(exit)
			if !ok {
				panic(p)
			}
			code = int(asked)
		}
	}()

	parser, err := kong.New(new(commands),
		kong.Name("comporta"),
		kong.Description("Rate limits for HTTP APIs, exact to the microsecond."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(std.Out, std.Err),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.Bind(std),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		panic(err) // the commands themselves are ill-formed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(std.Err, "comporta: %s See %s --help\n", sentence(err.Error()), helpful(parser, err))
		return exitUsage
	}
	switch err := command.Run(); {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errUsage):
		return exitUsage
	default:
		fmt.Fprintf(std.Err, "comporta: %s\n", strings.TrimPrefix(err.Error(), "comporta: "))
		return exitFailed
	}
}

// sentence is a text that ends as a sentence does.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// helpful is the command whose help lists what err is about.
func helpful(parser *kong.Kong, err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		if command := wrong.Context.Selected(); command != nil {
			return command.FullPath()
		}
	}
	return parser.Model.Name
}

type versionCmd struct{}

// Run prints the module's version, as the go command built it in.
func (versionCmd) Run(std *streams) error {
	_, err := fmt.Fprintln(std.Out, "comporta", version())
	return err
}

// version is what the go command recorded: a tag, a pseudo-version, or (devel).
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
