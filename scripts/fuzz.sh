#!/usr/bin/env bash
# Runs every fuzz target of the module, each for the time given.
set -euo pipefail
time=${1:-10s}
dirs=$(go list -f '{{.Dir}}' ./...) # not in the loop: a failure there would pass unseen
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz runs one target. The fuzzing engine may say "context deadline exceeded" when
# the time ends within an execution: that alone is no finding.
fuzz() {
	# Minimising a rapid run takes most of the time there is, and finds nothing.
	go test "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 5x 2>&1 | tee "$log" && return
	grep -q 'context deadline exceeded' "$log" && ! grep -qE 'Failing input written|panic:' "$log"
}

for dir in $dirs; do
	for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | sed 's/^func //'); do
		echo "== $target"
		fuzz "$dir" "$target"
	done
done
