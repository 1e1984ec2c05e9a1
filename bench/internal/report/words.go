package report

import (
	"fmt"
	"slices"
	"time"
)

// Median is the middle of the values, the upper one of two; 0 of none.
func Median[T time.Duration | float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// Count is "1 key", "1,000 keys".
func Count(n int, what string) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if n != 1 {
		what += "s"
	}
	return digits + " " + what
}
