// Redis measures Comporta's limits in Redis beside what one would use instead, on
// one redis-server that it starts, and prints a table with ratios. See
// docs/benchmarks.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/comporta/comporta/bench/internal/report"
)

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 5, "how many rounds each side runs in each scenario, after one to warm up")
	flag.DurationVar(&b.round, "round", 1500*time.Millisecond, "how long a round is: leases need more than the second that they last")
	only := flag.String("only", "", "measure the scenarios only whose name this regular expression matches, such as '64 callers'")
	each := flag.Bool("each", false, "print what each side needs, too")
	file := flag.String("write", "", "write the tables into this file, between its markers")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := func() (err error) {
		if b.only, err = regexp.Compile(*only); err != nil {
			return err
		}
		if err := b.run(ctx); err != nil {
			return err
		}
		fmt.Print(b.table())
		if *each {
			fmt.Print("\n", b.each())
		}
		if *file != "" {
			return report.WriteSection(*file, "redis", b.environment()+"\n"+b.table()+"\nEach side:\n\n"+b.each())
		}
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/redis:", err)
		os.Exit(1)
	}
}
