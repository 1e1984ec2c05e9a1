#!/usr/bin/env bash
# Runs every fuzz target of the module, each for the time given.
set -euo pipefail
time=${1:-10s}
dirs=$(go list -f '{{.Dir}}' ./...) # by itself: in the loop's head its failure would pass unseen
for dir in $dirs; do
	for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | sed 's/^func //'); do
		echo "== $target"
		# Minimising a rapid run takes most of the time there is, and finds nothing.
		go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 5x
	done
done
