package config

import (
	"testing"

	"github.com/comporta/comporta"
)

// What is read is written alike, and read again.
func TestStartsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, c := range []struct {
		period comporta.Period
		said   string
		want   comporta.Calendar
		words  string
	}{
		{comporta.Day, "06:30", comporta.Calendar{Hour: 6, Minute: 30}, "06:30"},
		{comporta.Week, "mon", comporta.Calendar{Weekday: 1}, "Monday 00:00"},
		{comporta.Week, "sun 02:30", comporta.Calendar{Weekday: 7, Hour: 2, Minute: 30}, "Sunday 02:30"},
		{comporta.Month, "15", comporta.Calendar{MonthDay: 15}, "day 15, 00:00"},
		{comporta.Month, "31 23:59", comporta.Calendar{MonthDay: 31, Hour: 23, Minute: 59}, "day 31, 23:59"},
		{comporta.Year, "04-06", comporta.Calendar{YearMonth: 4, MonthDay: 6}, "6 April, 00:00"},
		{comporta.Year, "02-29 12:00", comporta.Calendar{YearMonth: 2, MonthDay: 29, Hour: 12}, "29 February, 12:00"},
	} {
		got, again := comporta.Calendar{Period: c.period}, comporta.Calendar{Period: c.period}
		c.want.Period = c.period
		if !parseStart(c.said, &got) || got != c.want || formatStart(&got) != c.words {
			t.Errorf("%v from %q is %+v, %s", c.period, c.said, got, formatStart(&got))
		}
		if !parseStart(writeStart(&got), &again) || again != got {
			t.Errorf("%v from %q is written %q", c.period, c.said, writeStart(&got))
		}
	}
}
