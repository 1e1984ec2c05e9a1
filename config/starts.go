package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
)

var weekdays = map[string]int{"mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6, "sun": 7}

// startForms is how starts_at is written for each period.
var startForms = map[comporta.Period]string{
	comporta.Day:   `write a time of day, "06:00"`,
	comporta.Week:  `write a weekday, "mon", with a time if you like, "mon 06:00"`,
	comporta.Month: `write a day of the month, "15", with a time if you like, "15 06:00"`,
	comporta.Year:  `write month and day, "04-06", with a time if you like, "04-06 06:00"`,
}

// startsAt reads where a quota's period starts.
func (r *reader) startsAt(n *node, isQuota bool, l *comporta.Limit) {
	switch {
	case !isQuota:
		r.fault(n, "starts_at is for quotas: the windows of a limit are counted from 1970", "leave it out, or write quota: and a calendar period")
		return
	case l.Unlimited:
		r.fault(n, "starts_at: an unlimited quota has no periods", "leave it out")
		return
	case l.Calendar == nil: // the quota itself is wrong, and said to be
		return
	}
	hint := startForms[l.Calendar.Period]
	said := n.text
	if n.kind != number || !digits(said) {
		var ok bool
		if said, ok = r.text(n, "starts_at", "06:00"); !ok {
			return
		}
	}
	if !parseStart(said, l.Calendar) {
		r.fault(n, fmt.Sprintf("starts_at: %q is no start of a %v", said, l.Calendar.Period), hint)
	}
}

// parseStart fills in where the periods of c start.
func parseStart(said string, c *comporta.Calendar) bool {
	day, clock, timed := strings.Cut(said, " ")
	if c.Period == comporta.Day {
		day, clock, timed = "", said, true
	}
	if timed {
		t, err := time.Parse("15:04", clock)
		if err != nil || len(clock) != len("15:04") {
			return false
		}
		c.Hour, c.Minute = t.Hour(), t.Minute()
	}
	switch c.Period {
	case comporta.Week:
		c.Weekday = weekdays[day]
		return c.Weekday > 0
	case comporta.Month:
		v, err := strconv.Atoi(day)
		c.MonthDay = v
		return err == nil && 1 <= v && v <= 31 && digits(day)
	case comporta.Year:
		t, err := time.Parse("2006-01-02", "2000-"+day) // a leap year: 02-29 is the last of February in others
		if err != nil {
			return false
		}
		c.YearMonth, c.MonthDay = t.Month(), t.Day()
	}
	return true
}

// writeStart is where the periods of a calendar start, as a file says it.
func writeStart(c *comporta.Calendar) string {
	clock := fmt.Sprintf("%02d:%02d", c.Hour, c.Minute)
	switch c.Period {
	case comporta.Week:
		for name, day := range weekdays {
			if day == max(c.Weekday, 1) {
				return name + " " + clock
			}
		}
	case comporta.Month:
		return fmt.Sprintf("%d %s", max(c.MonthDay, 1), clock)
	case comporta.Year:
		return fmt.Sprintf("%02d-%02d %s", max(c.YearMonth, 1), max(c.MonthDay, 1), clock)
	}
	return clock
}

// formatStart is where the periods of a calendar start, in words.
func formatStart(c *comporta.Calendar) string {
	clock := fmt.Sprintf("%02d:%02d", c.Hour, c.Minute)
	switch c.Period {
	case comporta.Week:
		return [...]string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}[max(c.Weekday, 1)-1] + " " + clock
	case comporta.Month:
		return "day " + strconv.Itoa(max(c.MonthDay, 1)) + ", " + clock
	case comporta.Year:
		return time.Date(2000, max(c.YearMonth, 1), max(c.MonthDay, 1), 0, 0, 0, 0, time.UTC).Format("2 January") + ", " + clock
	}
	return clock
}
