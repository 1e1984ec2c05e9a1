package memstore

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/comporta/comporta"
)

// savedRule is a rule's numbers in the file.
type savedRule struct {
	Algorithm string         `json:"algorithm"`
	Limit     int64          `json:"limit"`
	Window    int64          `json:"window_us,omitempty"`
	Burst     int64          `json:"burst,omitempty"`
	Stagger   bool           `json:"stagger,omitempty"`
	Calendar  *savedCalendar `json:"calendar,omitempty"`
}

type savedCalendar struct {
	Period    string `json:"period"`
	Zone      string `json:"zone"`
	Offset    int    `json:"offset_s"` // of the zone, for where its name is not known
	Hour      int    `json:"hour,omitempty"`
	Minute    int    `json:"minute,omitempty"`
	Weekday   int    `json:"weekday,omitempty"`
	MonthDay  int    `json:"month_day,omitempty"`
	YearMonth int    `json:"year_month,omitempty"`
}

func encodeRule(rule *comporta.Rule) []byte {
	l := rule.Limit()
	saved := savedRule{
		Algorithm: l.Algorithm.String(), Limit: l.Limit, Window: l.Window.Microseconds(), Burst: l.Burst, Stagger: l.Stagger,
	}
	if c := l.Calendar; c != nil {
		zone := time.UTC
		if c.Zone != nil {
			zone = c.Zone
		}
		_, offset := time.Unix(0, 0).In(zone).Zone()
		saved.Calendar = &savedCalendar{c.Period.String(), zone.String(), offset, c.Hour, c.Minute, c.Weekday, c.MonthDay, int(c.YearMonth)}
	}
	b, err := json.Marshal(saved)
	if err != nil {
		panic(err) // a struct of numbers and strings
	}
	return b
}

func decodeRule(b []byte) (*comporta.Rule, error) {
	var saved savedRule
	if err := json.Unmarshal(b, &saved); err != nil {
		return nil, fmt.Errorf("a rule: %w", err)
	}
	algorithm, err := comporta.ParseAlgorithm(saved.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("a rule: %w", err)
	}
	l := comporta.Limit{
		Algorithm: algorithm, Limit: saved.Limit, Window: time.Duration(saved.Window) * time.Microsecond,
		Burst: saved.Burst, Stagger: saved.Stagger,
	}
	if c := saved.Calendar; c != nil {
		quota, err := comporta.ParseQuota("1/" + c.Period)
		if err != nil {
			return nil, fmt.Errorf("a rule: %w", err)
		}
		zone, err := time.LoadLocation(c.Zone)
		if err != nil { // made by time.FixedZone; or this machine has no database of zones
			zone = time.FixedZone(c.Zone, c.Offset)
		}
		l.Calendar = &comporta.Calendar{
			Period: quota.Calendar.Period, Zone: zone, Hour: c.Hour, Minute: c.Minute,
			Weekday: c.Weekday, MonthDay: c.MonthDay, YearMonth: time.Month(c.YearMonth),
		}
	}
	rule, err := l.Compile()
	if err != nil {
		return nil, fmt.Errorf("a rule: %w", err)
	}
	if rule.Full() == 0 {
		return nil, errors.New("a rule that counts nothing")
	}
	return rule, nil
}

// saved is one key in the file. A nil Under is a key that is gone.
type saved struct {
	hash    hash
	state   comporta.State
	entries comporta.Entries
}

// appendState appends a key; rule is the number of its rule in the file, from 1.
func appendState(b []byte, h hash, rule int, s *comporta.State, log *ring) []byte {
	b = binary.LittleEndian.AppendUint64(b, h.hi)
	b = binary.LittleEndian.AppendUint64(b, h.lo)
	b = binary.AppendUvarint(b, uint64(rule))
	if rule == 0 {
		return b
	}
	for _, n := range [...]int64{int64(s.At), s.Cur, s.Prev, s.Full, s.Part, int64(s.Place)} {
		b = binary.AppendVarint(b, n)
	}
	if log == nil {
		return b
	}
	b = binary.AppendUvarint(b, uint64(log.n))
	last, before := s.At, log.gone
	for i := range log.n {
		t, sum := log.at(i)
		b = binary.AppendVarint(b, int64(t-last))
		b = binary.AppendUvarint(b, uint64(sum-before))
		last, before = t, sum
	}
	return b
}

var errShort = errors.New("a record of states ends early")

// decodeState reads a key from a record of states and is the rest of it.
func decodeState(b []byte, rules []*comporta.Rule) (key saved, rest []byte, err error) {
	if len(b) < 16 {
		return key, nil, errShort
	}
	key.hash = hash{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
	b = b[16:]
	if key.hash.lo&^hashMask != 0 {
		return key, nil, errors.New("a key's hash is none")
	}
	number, n := binary.Uvarint(b)
	if n <= 0 || number > uint64(len(rules)) {
		return key, nil, errors.New("a state names a rule that is not there")
	}
	b = b[n:]
	if number == 0 {
		return key, b, nil
	}
	s := &key.state
	s.Under = rules[number-1]
	var at, place int64
	for _, field := range [...]*int64{&at, &s.Cur, &s.Prev, &s.Full, &s.Part, &place} {
		v, n := binary.Varint(b)
		if n <= 0 {
			return key, nil, errShort
		}
		*field, b = v, b[n:]
	}
	s.At, s.Place = comporta.Instant(at), comporta.Instant(place)
	if !plausible(s) {
		return key, nil, errors.New("a state has a count out of range")
	}
	if s.Under.Algorithm() == comporta.SlidingLog {
		return decodeLog(key, b)
	}
	return key, b, nil
}

// plausible says whether a step can reckon with a state: no number of it leads
// out of the ranges that limits have.
func plausible(s *comporta.State) bool {
	within := func(n, most int64) bool { return n >= 0 && n <= most }
	return within(s.Cur, 2*comporta.MaxUnits) && within(s.Prev, 2*comporta.MaxUnits) &&
		within(s.Full, 2*comporta.MaxFill.Microseconds()+1) && within(s.Part, comporta.MaxUnits) &&
		max(s.At, -s.At) < 1<<60 && max(s.Place, -s.Place) < 1<<60
}

func decodeLog(key saved, b []byte) (saved, []byte, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count == 0 || count > uint64(len(b)) {
		return key, nil, errShort
	}
	b = b[n:]
	key.entries = make(comporta.Entries, count)
	last, sum := key.state.At, int64(0)
	for i := range key.entries {
		step, n := binary.Varint(b)
		if n <= 0 {
			return key, nil, errShort
		}
		b = b[n:]
		cost, n := binary.Uvarint(b)
		if n <= 0 {
			return key, nil, errShort
		}
		b = b[n:]
		last += comporta.Instant(step)
		sum += int64(min(cost, comporta.MaxCost))
		span := max(last-key.entries[0].At, 0) // of the first, its At is not yet set
		if i == 0 {
			span = 0
		}
		if cost == 0 || sum > 2*comporta.MaxUnits || i > 0 && step <= 0 ||
			max(step, -step) > 1<<60 || span.Sub(0) > key.state.Under.Limit().Window {
			return key, nil, errors.New("a log's entries are out of order or range")
		}
		key.entries[i] = comporta.Entry{At: last, Cost: int64(cost)}
	}
	return key, b, nil
}
