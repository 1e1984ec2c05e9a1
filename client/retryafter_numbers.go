package client

import (
	"math"
	"strings"
	"time"

	"github.com/comporta/comporta"
)

// A number is what digits say, exactly, as far as anything here counts: a whole, at
// most the largest int64, and billionths, up to 1e9 of them, rounded up. Floats
// would round some waits down.
type number struct{ whole, billionths int64 }

// decimal reads digits, with a fraction or without. Any number of digits is a
// number.
func decimal(text string) (n number, ok bool) {
	whole, fraction, dotted := strings.Cut(text, ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return number{}, false
	}
	for _, c := range []byte(whole) {
		d := int64(c - '0')
		if n.whole > (math.MaxInt64-d)/10 {
			return number{whole: math.MaxInt64}, true
		}
		n.whole = n.whole*10 + d
	}
	place := int64(1e8)
	for _, c := range []byte(fraction) {
		if place == 0 {
			if c == '0' {
				continue
			}
			n.billionths++
			break
		}
		n.billionths += int64(c-'0') * place
		place /= 10
	}
	return n, true
}

func digits(text string) bool {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != ""
}

// up is the least whole number that is not less.
func (n number) up() number {
	if n.billionths > 0 && n.whole < math.MaxInt64 {
		return number{whole: n.whole + 1}
	}
	return number{whole: n.whole}
}

// of is so many of a unit up to a second, in whole microseconds, rounded up; Never
// where that is too long.
func (n number) of(unit time.Duration) time.Duration {
	if n.whole >= math.MaxInt64/int64(unit) {
		return comporta.Never
	}
	return micros(time.Duration(n.whole)*unit + time.Duration((n.billionths*int64(unit)+1e9-1)/1e9))
}

// micros is a duration in whole microseconds, rounded up.
func micros(d time.Duration) time.Duration {
	if d > math.MaxInt64-time.Microsecond {
		return comporta.Never
	}
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

// instant is the number as seconds since 1970, or milliseconds where it is too
// large for these; false where it is none of these centuries.
func (n number) instant() (time.Time, bool) {
	switch {
	case n.whole < firstDate || n.whole >= 1e14:
		return time.Time{}, false
	case n.whole < 1e11:
		return time.Unix(n.whole, n.billionths), true
	}
	return time.UnixMilli(n.whole).Add(time.Duration((n.billionths + 999) / 1e3)), true
}
