// Bench measures Comporta beside the limiters that people would use instead,
// and prints one table with ratios. See docs/benchmarks.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/comporta/comporta/bench/internal/report"
)

// parts are what there is to measure, in order.
var parts = []struct {
	name    string
	measure func(*bench) error
}{
	{"keyed", (*bench).keyed},
	{"memory", (*bench).memory},
	{"middleware", (*bench).middleware},
}

// A bench is one run: how it measures, and what it found.
type bench struct {
	rounds  int
	round   time.Duration
	only    *regexp.Regexp // the scenarios to measure, by name
	rows    []report.Row
	results [][]string // of each contender in each scenario
	weights [][]string // of each contender's keys
}

func main() {
	var b bench
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	part := flag.String("parts", strings.Join(names, ","), "what to measure")
	flag.IntVar(&b.rounds, "rounds", 9, "how many rounds each contender runs in each scenario")
	flag.DurationVar(&b.round, "round", 150*time.Millisecond, "how long a round is")
	only := flag.String("only", "", "measure the scenarios only whose name this regular expression matches, such as '1,000 keys, uniform'")
	each := flag.Bool("each", false, "print what each contender needs, too")
	file := flag.String("write", "", "write the tables into this file, between its markers")
	isWorker := flag.Bool("worker", false, "work for another process (used internally)")
	flag.Parse()

	if *isWorker {
		exitOn(work(os.Stdin, os.Stdout))
		return
	}
	var err error
	b.only, err = regexp.Compile(*only)
	exitOn(err)
	chosen := strings.Split(*part, ",")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			exitOn(fmt.Errorf("no part is named %q: there are %s", name, strings.Join(names, ", ")))
		}
	}
	for _, p := range parts {
		if slices.Contains(chosen, p.name) {
			exitOn(p.measure(&b))
		}
	}
	fmt.Print(report.Table(b.rows))
	if *each {
		fmt.Print("\n", b.each())
	}
	if *file != "" {
		exitOn(report.WriteSection(*file, "bench", report.Environment()+"\n"+report.Table(b.rows)+"\nEach contender:\n\n"+b.each()))
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
