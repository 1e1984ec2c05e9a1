package storetest

import (
	"time"

	"github.com/comporta/comporta"
	"pgregory.net/rapid"
)

// Limits generates limits that compile: every algorithm and charge, quotas in
// zones whose clocks change, staggered windows, waits; mostly small numbers,
// where the edges are met often, some at the ends of the ranges, some that are
// unlimited or deny all.
func Limits() *rapid.Generator[comporta.Limit] {
	return rapid.Custom(drawLimit).Filter(compiles)
}

// Changed generates what a person may make of a limit: other numbers under the
// same name, now and then another limit altogether.
func Changed(from comporta.Limit) *rapid.Generator[comporta.Limit] {
	return rapid.Custom(func(t *rapid.T) comporta.Limit {
		if from.Unlimited || seldom(t, "another limit") {
			return drawLimit(t)
		}
		to := from
		if oftener(t, "another count") {
			to.Limit = units(t, "limit")
		}
		if from.Calendar != nil {
			return to
		}
		if rapid.Bool().Draw(t, "another window") {
			to.Window = window(t)
		}
		if from.Algorithm.Bucket() && rapid.Bool().Draw(t, "another burst") {
			to.Burst = units(t, "burst")
		}
		if from.Stagger {
			to.Stagger = rapid.Bool().Draw(t, "stagger")
		}
		if from.MaxWait == 0 {
			to.Charge = rapid.SampledFrom([]comporta.Charge{comporta.Admitted, comporta.Attempts}).Draw(t, "charge")
		}
		return to
	}).Filter(compiles)
}

func compiles(l comporta.Limit) bool {
	_, err := l.Compile()
	return err == nil
}

// seldom is true in one draw of eight; a draw that shrinks is false.
func seldom(t *rapid.T, what string) bool {
	return rapid.SampledFrom([]bool{false, false, false, false, false, false, false, true}).Draw(t, what)
}

func oftener(t *rapid.T, what string) bool { return !seldom(t, "not "+what) }

func drawLimit(t *rapid.T) comporta.Limit {
	if seldom(t, "odd one") {
		return rapid.SampledFrom([]comporta.Limit{
			{Unlimited: true},
			{Window: time.Second},
			{Window: time.Minute, Algorithm: comporta.SlidingLog},
			{Window: time.Hour, Algorithm: comporta.FixedWindow, Charge: comporta.Attempts},
		}).Draw(t, "limit")
	}
	if seldom(t, "quota") {
		return drawQuota(t)
	}
	l := comporta.Limit{
		Algorithm: rapid.SampledFrom(comporta.Algorithms()).Draw(t, "algorithm"),
		Limit:     units(t, "limit"),
		Window:    window(t),
	}
	if l.Algorithm.Bucket() && rapid.Bool().Draw(t, "with burst") {
		l.Burst = units(t, "burst")
	}
	if rapid.Bool().Draw(t, "attempts") {
		l.Charge = comporta.Attempts
	}
	if l.Algorithm == comporta.TokenBucket && l.Charge != comporta.Attempts && rapid.Bool().Draw(t, "waits") {
		l.MaxWait = rapid.SampledFrom([]time.Duration{
			time.Microsecond, 700 * time.Microsecond, l.Window, l.Window + l.Window/3, 2 * time.Second, comporta.MaxWindow,
		}).Draw(t, "max_wait").Truncate(time.Microsecond)
		l.MaxWait = min(l.MaxWait, comporta.MaxWindow)
	}
	if l.Algorithm == comporta.FixedWindow || l.Algorithm == comporta.SlidingCounter {
		l.Stagger = rapid.Bool().Draw(t, "stagger")
	}
	return l
}

func units(t *rapid.T, what string) int64 {
	if seldom(t, "extreme "+what) {
		return rapid.SampledFrom([]int64{1000, 999_983, comporta.MaxUnits - 1, comporta.MaxUnits}).Draw(t, what)
	}
	return rapid.Int64Range(1, 12).Draw(t, what)
}

func window(t *rapid.T) time.Duration {
	if seldom(t, "odd window") {
		us := rapid.Int64Range(1_000, 100_000_000).Draw(t, "window in µs")
		return time.Duration(us) * time.Microsecond
	}
	return rapid.SampledFrom([]time.Duration{
		time.Second, comporta.MinWindow, 7 * time.Second, time.Minute, time.Hour, 30 * 24 * time.Hour, comporta.MaxWindow,
	}).Draw(t, "window")
}

func drawQuota(t *rapid.T) comporta.Limit {
	c := &comporta.Calendar{
		Period: rapid.SampledFrom([]comporta.Period{comporta.Day, comporta.Week, comporta.Month, comporta.Year}).Draw(t, "period"),
		Hour:   rapid.SampledFrom([]int{0, 2, 23}).Draw(t, "hour"),
		Minute: rapid.SampledFrom([]int{0, 30}).Draw(t, "minute"),
	}
	// A machine without a zone database goes on in UTC.
	if zone, err := time.LoadLocation(rapid.SampledFrom([]string{"UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"}).Draw(t, "zone")); err == nil {
		c.Zone = zone
	}
	switch c.Period {
	case comporta.Week:
		c.Weekday = rapid.IntRange(0, 7).Draw(t, "weekday")
	case comporta.Year:
		c.YearMonth = time.Month(rapid.IntRange(0, 12).Draw(t, "month"))
		c.MonthDay = rapid.SampledFrom([]int{0, 29, 31}).Draw(t, "day")
	case comporta.Month:
		c.MonthDay = rapid.SampledFrom([]int{0, 29, 31}).Draw(t, "day")
	}
	l := comporta.Limit{Algorithm: comporta.FixedWindow, Limit: units(t, "quota"), Calendar: c}
	if rapid.Bool().Draw(t, "attempts") {
		l.Charge = comporta.Attempts
	}
	return l
}
