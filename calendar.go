package comporta

import (
	"fmt"
	"time"
)

// A Period is a calendar period that a quota counts over.
type Period uint8

const (
	Day Period = iota + 1
	Week
	Month
	Year
)

var periods = [...]string{Day: "day", Week: "week", Month: "month", Year: "year"}

// String is the period's name, as in 100/day.
func (p Period) String() string {
	if p >= Day && int(p) < len(periods) {
		return periods[p]
	}
	return fmt.Sprintf("Period(%d)", uint8(p))
}

// longest is the longest that a period lasts, clock changes included.
func (p Period) longest() time.Duration {
	days := [...]time.Duration{Day: 1, Week: 7, Month: 31, Year: 366}[p]
	return days*24*time.Hour + time.Hour
}

// A Calendar says where a quota's windows start: at midnight, on Monday, on the
// 1st, on 1 January, or where its fields say. The zero fields are these defaults.
type Calendar struct {
	Period Period
	// Zone is the time zone; nil is UTC.
	Zone *time.Location
	// Hour and Minute of the start, 0 to 23 and 0 to 59.
	Hour, Minute int
	// Weekday on which a week starts, 1 (Monday) to 7 (Sunday); 0 is Monday.
	Weekday int
	// MonthDay on which a month or a year starts, 1 to 31; 0 is the 1st. Past the
	// month's end it is the month's last day.
	MonthDay int
	// YearMonth in which a year starts; 0 is January.
	YearMonth time.Month
}

func (c *Calendar) check() error {
	switch {
	case c.Period < Day || c.Period > Year:
		return wrong("quota", "unknown period %v: use day, week, month or year", c.Period)
	case c.Hour < 0 || c.Hour > 23 || c.Minute < 0 || c.Minute > 59:
		return wrong("starts_at", "%02d:%02d is no time of day", c.Hour, c.Minute)
	case c.Weekday < 0 || c.Weekday > 7 || c.Weekday > 0 && c.Period != Week:
		return wrong("starts_at", "a weekday is for a quota per week")
	case c.MonthDay < 0 || c.MonthDay > 31 || c.MonthDay > 0 && c.Period < Month:
		return wrong("starts_at", "a day of the month, 1 to 31, is for a quota per month or year")
	case c.YearMonth < 0 || c.YearMonth > 12 || c.YearMonth > 0 && c.Period != Year:
		return wrong("starts_at", "a month is for a quota per year")
	}
	return nil
}

func (c *Calendar) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// same compares calendars by what they say, defaults written out.
func (c *Calendar) same(o *Calendar) bool {
	if c == nil || o == nil {
		return c == o
	}
	a, b := c.full(), o.full()
	zoneA, zoneB := a.zone().String(), b.zone().String()
	a.Zone, b.Zone = nil, nil
	return a == b && zoneA == zoneB
}

// full is the calendar with its defaults written out.
func (c *Calendar) full() Calendar {
	f := *c
	f.Weekday = max(f.Weekday, 1)
	f.MonthDay = max(f.MonthDay, 1)
	f.YearMonth = max(f.YearMonth, time.January)
	return f
}

// period is the window that t lies in.
func (c *Calendar) period(t Instant) span {
	f := c.full()
	at := t.Time().In(f.zone())
	year, month, day := at.Date()
	n := 0 // periods from the one that the local date suggests
	switch f.Period {
	case Week:
		day -= (int(at.Weekday()) + 7 - f.Weekday%7) % 7
	case Month:
		day = 1
	case Year:
		month, day = f.YearMonth, 1
	}
	start := func(n int) Instant {
		y, m, d := year, month, day
		switch f.Period {
		case Day:
			d += n
		case Week:
			d += 7 * n
		case Month:
			m += time.Month(n)
		case Year:
			y += n
		}
		if f.Period >= Month {
			d = min(f.MonthDay, daysIn(y, m))
		}
		return InstantOf(firstAt(y, m, d, f.Hour, f.Minute, f.zone()))
	}
	for t < start(n) {
		n--
	}
	for t >= start(n+1) {
		n++
	}
	return span{start(n), start(n + 1)}
}

// daysIn is the number of days in a month, which may be past December.
func daysIn(y int, m time.Month) int {
	return time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// firstAt is the first instant at which the clocks of a zone show a time, or,
// where they skip it, the first instant after the gap.
func firstAt(year int, month time.Month, day, hour, minute int, zone *time.Location) time.Time {
	wall := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
	// The offsets in force around that time: at most one change is within a day of it.
	var first time.Time
	for _, near := range [...]time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(near).In(zone).Zone()
		t := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, really := t.Zone(); really == offset && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !first.IsZero() {
		return first
	}
	// Skipped: it lies in the change that comes after the offset of the day before.
	_, change := wall.Add(-24 * time.Hour).In(zone).ZoneBounds()
	return change
}
