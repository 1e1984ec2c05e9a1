package comporta_test

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// window is the window of a quota that at lies in: from where it began, through
// WindowAt, to where a denied request is told to come back.
func window(t interface {
	Helper()
	Fatalf(string, ...any)
}, c comporta.Calendar, at time.Time) (start, end time.Time) {
	t.Helper()
	rule := compile(t, comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 1, Calendar: &c})
	now := comporta.InstantOf(at)
	state, _ := rule.Step(comporta.State{}, now, 1)
	_, denied := rule.Step(state, now, 1)
	if denied.Allowed || denied.RetryAfter != denied.ResetAfter || denied.RetryAfter != denied.FullAfter {
		t.Fatalf("the second of one: %+v", denied)
	}
	end = now.Add(denied.RetryAfter).Time()
	return end.Add(-rule.WindowAt(now)), end
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Skip(err)
	}
	return z
}

func TestQuotasFollowTheCalendar(t *testing.T) {
	paris, newYork, apia := zone(t, "Europe/Paris"), zone(t, "America/New_York"), zone(t, "Pacific/Apia")
	day := comporta.Calendar{Period: comporta.Day}
	in := func(z *time.Location, hour, minute int) comporta.Calendar {
		return comporta.Calendar{Period: comporta.Day, Zone: z, Hour: hour, Minute: minute}
	}
	for _, tt := range []struct {
		name           string
		calendar       comporta.Calendar
		at, start, end string
	}{
		{"a day", day, "2026-06-01T10:15:00Z", "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z"},
		{"its first microsecond", day, "2026-06-01T00:00:00Z", "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z"},
		{"its last microsecond", day, "2026-06-01T23:59:59.999999Z", "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z"},
		{"before 1970", day, "1969-12-31T23:59:59.999999Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"the turn of the year", day, "2026-12-31T12:00:00Z", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"an hour of its own", in(nil, 17, 30), "2026-06-01T17:29:59Z", "2026-05-31T17:30:00Z", "2026-06-01T17:30:00Z"},

		{"Paris goes back", in(paris, 0, 0), "2026-10-25T00:30:00+02:00", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"Paris goes forward", in(paris, 0, 0), "2026-03-29T00:30:00+01:00", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"Paris skips 02:30", in(paris, 2, 30), "2026-03-29T00:30:00+01:00", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"},
		{"after what Paris skipped", in(paris, 2, 30), "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"Paris has 02:30 twice, before", in(paris, 2, 30), "2026-10-25T00:29:59Z", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"},
		{"Paris has 02:30 twice, the second", in(paris, 2, 30), "2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"New York goes forward", in(newYork, 0, 0), "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"New York goes back", in(newYork, 0, 0), "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"before the day that Samoa skipped", in(apia, 0, 0), "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"after the day that Samoa skipped", in(apia, 0, 0), "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"a noon that Samoa skipped", in(apia, 12, 0), "2011-12-30T09:00:00Z", "2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z"},

		{"a week begins on Monday", comporta.Calendar{Period: comporta.Week}, "2026-06-07T23:59:59Z", "2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z"},
		{"or on Sunday", comporta.Calendar{Period: comporta.Week, Weekday: 7}, "2026-06-07T00:00:00Z", "2026-06-07T00:00:00Z", "2026-06-14T00:00:00Z"},
		{"or on Wednesday at six", comporta.Calendar{Period: comporta.Week, Weekday: 3, Hour: 6}, "2026-06-03T05:00:00Z", "2026-05-27T06:00:00Z", "2026-06-03T06:00:00Z"},
		{"a week with an hour less", comporta.Calendar{Period: comporta.Week, Zone: paris}, "2026-03-29T12:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},

		{"a month", comporta.Calendar{Period: comporta.Month}, "2026-02-28T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"December", comporta.Calendar{Period: comporta.Month}, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"from the 15th", comporta.Calendar{Period: comporta.Month, MonthDay: 15}, "2026-01-14T12:00:00Z", "2025-12-15T00:00:00Z", "2026-01-15T00:00:00Z"},
		{"the 31st in February is the 28th", comporta.Calendar{Period: comporta.Month, MonthDay: 31}, "2026-02-27T00:00:00Z", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"},
		{"and then the 31st again", comporta.Calendar{Period: comporta.Month, MonthDay: 31}, "2026-02-28T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"the 30th in a leap year", comporta.Calendar{Period: comporta.Month, MonthDay: 30}, "2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-30T00:00:00Z"},

		{"a year", comporta.Calendar{Period: comporta.Year}, "2026-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"from April", comporta.Calendar{Period: comporta.Year, YearMonth: time.April}, "2026-03-31T00:00:00Z", "2025-04-01T00:00:00Z", "2026-04-01T00:00:00Z"},
		{"from 29 February", comporta.Calendar{Period: comporta.Year, YearMonth: time.February, MonthDay: 29}, "2028-02-28T12:00:00Z", "2027-02-28T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"a leap day to a 28th", comporta.Calendar{Period: comporta.Year, YearMonth: time.February, MonthDay: 29}, "2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z", "2029-02-28T00:00:00Z"},
		{"a year in New York", comporta.Calendar{Period: comporta.Year, Zone: newYork}, "2027-01-01T04:59:59Z", "2026-01-01T05:00:00Z", "2027-01-01T05:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339Nano, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		start, end := window(t, tt.calendar, at)
		if got, want := start.Format(time.RFC3339), tt.start; got != want {
			t.Errorf("%s: %s began %s, want %s", tt.name, tt.at, got, want)
		}
		if got, want := end.Format(time.RFC3339), tt.end; got != want {
			t.Errorf("%s: %s ends %s, want %s", tt.name, tt.at, got, want)
		}
	}
}

func TestQuotaTellsTheTimeToMidnight(t *testing.T) {
	paris := comporta.Calendar{Period: comporta.Day, Zone: zone(t, "Europe/Paris")}
	for _, tt := range []struct {
		at   string
		want time.Duration
	}{
		{"2026-10-25T00:30:00+02:00", 88_200 * time.Second}, // the day has 25 hours
		{"2026-03-29T00:30:00+01:00", 81_000 * time.Second}, // and this one 23
	} {
		at, _ := time.Parse(time.RFC3339, tt.at)
		if _, end := window(t, paris, at); end.Sub(at) != tt.want {
			t.Errorf("%s: retry after %v, want %v", tt.at, end.Sub(at), tt.want)
		}
	}

	quota, err := comporta.ParseQuota("3/day")
	if err != nil {
		t.Fatal(err)
	}
	rule := compile(t, quota)
	var b bench
	morning := comporta.InstantOf(time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC))
	for i := range 4 {
		d := b.take(rule, morning.Add(time.Duration(i)*5*time.Minute), 1)
		if d.Allowed != (i < 3) {
			t.Errorf("call %d: %+v", i, d)
		}
		if i == 3 && d.RetryAfter != 49_500*time.Second {
			t.Errorf("the fourth is told %v", d.RetryAfter)
		}
	}
}

// FuzzCalendar holds windows to what makes them a calendar: they hold their
// instant, they follow one another without a gap, and each starts when the clocks
// first show its time or have just skipped it.
func FuzzCalendar(f *testing.F) {
	zones := []*time.Location{time.UTC}
	for _, name := range []string{"Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "America/Sao_Paulo", "Africa/Casablanca"} {
		zones = append(zones, zone(f, name))
	}
	f.Add(int64(1_792_881_000_000_000), uint8(1), uint8(1), uint8(2), uint8(30), uint8(0), uint8(0))
	f.Add(int64(1_325_239_200_000_000), uint8(1), uint8(4), uint8(12), uint8(0), uint8(0), uint8(0))
	f.Add(int64(1_835_395_200_000_000), uint8(4), uint8(0), uint8(0), uint8(0), uint8(29), uint8(2))
	f.Add(int64(1_709_164_800_000_000), uint8(3), uint8(2), uint8(23), uint8(59), uint8(31), uint8(0))
	f.Fuzz(func(t *testing.T, us int64, period, where, hour, minute, day, month uint8) {
		const span = 200 * 365 * 86400e6
		at := time.UnixMicro(us % span).UTC()
		c := comporta.Calendar{Period: comporta.Day + comporta.Period(period%4), Zone: zones[int(where)%len(zones)], Hour: int(hour % 24), Minute: int(minute % 60)}
		switch c.Period {
		case comporta.Week:
			c.Weekday = int(day % 8)
		case comporta.Month, comporta.Year:
			c.MonthDay = int(day % 32)
			if c.Period == comporta.Year {
				c.YearMonth = time.Month(month % 13)
			}
		}
		start, end := window(t, c, at)
		if at.Before(start) || !at.Before(end) {
			t.Fatalf("%+v: %v is not from %v to %v", c, at, start, end)
		}
		if s, e := window(t, c, start); !s.Equal(start) || !e.Equal(end) {
			t.Fatalf("%+v: the window of its own start is %v to %v, not %v to %v", c, s, e, start, end)
		}
		if s, e := window(t, c, end.Add(-time.Microsecond)); !s.Equal(start) || !e.Equal(end) {
			t.Fatalf("%+v: the window of its last microsecond is %v to %v, not %v to %v", c, s, e, start, end)
		}
		if s, _ := window(t, c, end); !s.Equal(end) {
			t.Fatalf("%+v: after %v comes %v", c, end, s)
		}
		local := start.In(c.Zone)
		clock := time.Duration(local.Hour())*time.Hour + time.Duration(local.Minute())*time.Minute
		if want := time.Duration(c.Hour)*time.Hour + time.Duration(c.Minute)*time.Minute; clock != want || local.Second() != 0 {
			_, before := start.Add(-time.Microsecond).In(c.Zone).Zone()
			if _, offset := local.Zone(); offset <= before {
				t.Fatalf("%+v: a window starts at %v, and no clock skipped there", c, local)
			}
		}
	})
}
