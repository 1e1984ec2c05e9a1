package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/comporta/comporta"
)

// Vectors reads JSON lines, each a limit with takes and settles on one new key,
// and writes the same lines with each row's "want" replaced by "got", the
// decision that this program makes; a row without "want" gets a "got" at its end.
// All else of a line stays byte for byte as it was; empty lines are left out. One
// line is held in memory at a time. The error of a line that is not understood
// says its number; the lines before it have been written.
func Vectors(r io.Reader, w io.Writer) error {
	in, out := bufio.NewReaderSize(r, 1<<16), bufio.NewWriterSize(w, 1<<16)
	for number := 1; ; number++ {
		line, readErr := in.ReadBytes('\n')
		if readErr != nil && readErr != io.EOF {
			return errors.Join(out.Flush(), fmt.Errorf("line %d: reading: %w", number, readErr))
		}
		if line = bytes.TrimRight(line, "\r\n"); len(bytes.TrimSpace(line)) > 0 {
			answered, err := answerVector(line)
			if err != nil {
				return errors.Join(out.Flush(), fmt.Errorf("line %d: %w", number, err))
			}
			out.Write(answered)
			out.WriteByte('\n') // bufio keeps the error for Flush
		}
		if readErr == io.EOF || in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
		if readErr == io.EOF {
			return nil
		}
	}
}

// vector is one line.
type vector struct {
	Limit json.RawMessage `json:"limit"`
	Takes []row           `json:"takes"`
}

// row is a take or, with Settle, the settling of an earlier row's take.
type row struct {
	At     *int64 `json:"at_us"`
	Cost   *int64 `json:"cost"`
	Settle *struct {
		Take   *int   `json:"take"`
		Actual *int64 `json:"actual"`
	} `json:"settle"`
}

type vectorLimit struct {
	Algorithm string `json:"algorithm"`
	Limit     *int64 `json:"limit"`
	Window    *int64 `json:"window_us"`
	Burst     int64  `json:"burst"`
	MaxWait   int64  `json:"max_wait_us"`
	Charge    string `json:"charge"`
}

func answerVector(line []byte) ([]byte, error) {
	var v vector
	if err := json.Unmarshal(line, &v); err != nil {
		return nil, err
	}
	rule, err := parseVectorLimit(v.Limit)
	if err != nil {
		return nil, fmt.Errorf("limit: %w", err)
	}
	if v.Takes == nil {
		return nil, errors.New(`"takes" is missing`)
	}
	got := make([]answer, len(v.Takes))
	open := make([]comporta.Receipt, len(v.Takes)) // what is not settled yet
	var k key
	for i, row := range v.Takes {
		d, err := row.ask(&k, rule, open[:i])
		if err != nil {
			return nil, fmt.Errorf("takes: row %d: %w", i, err)
		}
		got[i], open[i] = answerOf(d.Decision), d.Receipt
	}
	return replaceWants(line, got)
}

func parseVectorLimit(text json.RawMessage) (*comporta.Rule, error) {
	var l vectorLimit
	words := json.NewDecoder(bytes.NewReader(text))
	words.DisallowUnknownFields() // a number that is not understood may change the answer
	if err := words.Decode(&l); err != nil {
		if len(text) == 0 {
			return nil, errors.New("is missing")
		}
		return nil, err
	}
	if l.Limit == nil || l.Window == nil {
		return nil, errors.New(`"limit" and "window_us" are wanted`)
	}
	limit := comporta.Limit{Limit: *l.Limit, Burst: l.Burst}
	var err error
	if l.Algorithm != "" {
		if limit.Algorithm, err = comporta.ParseAlgorithm(l.Algorithm); err != nil {
			return nil, err
		}
	}
	if l.Charge != "" {
		if limit.Charge, err = comporta.ParseCharge(l.Charge); err != nil {
			return nil, err
		}
	}
	if limit.Window, err = micros("window_us", *l.Window); err != nil {
		return nil, err
	}
	if limit.MaxWait, err = micros("max_wait_us", l.MaxWait); err != nil {
		return nil, err
	}
	return limit.Compile()
}

// micros is a number of microseconds that fits a duration; the limit itself
// checks the narrower range.
func micros(name string, us int64) (time.Duration, error) {
	if us < 0 || us > math.MaxInt64/int64(time.Microsecond) {
		return 0, fmt.Errorf("%s: %d is out of range", name, us)
	}
	return time.Duration(us) * time.Microsecond, nil
}

// ask puts one row to the key. Before are the receipts of the rows before; the
// one that is settled is taken out of them.
func (r *row) ask(k *key, rule *comporta.Rule, before []comporta.Receipt) (comporta.Taken, error) {
	if r.At == nil {
		return comporta.Taken{}, errors.New(`"at_us" is missing`)
	}
	now := comporta.Instant(*r.At)
	if r.Settle == nil {
		if r.Cost == nil {
			return comporta.Taken{}, errors.New(`has neither "cost" nor "settle"`)
		}
		if err := comporta.CheckCost(*r.Cost); err != nil {
			return comporta.Taken{}, err
		}
		return k.take(rule, now, *r.Cost), nil
	}
	take, actual := r.Settle.Take, r.Settle.Actual
	switch {
	case take == nil || actual == nil:
		return comporta.Taken{}, errors.New(`settle: "take" and "actual" are wanted`)
	case *take < 0 || *take >= len(before):
		return comporta.Taken{}, fmt.Errorf("settle: row %d is not one of the %d before", *take, len(before))
	case before[*take].Cost < 1:
		return comporta.Taken{}, fmt.Errorf("settle: row %d has nothing to settle: it is no allowed take of 1 or more, or was settled already", *take)
	}
	if err := comporta.CheckCost(*actual); err != nil {
		return comporta.Taken{}, fmt.Errorf("settle: %w", err)
	}
	taken := before[*take]
	before[*take] = comporta.Receipt{}
	return k.settle(rule, now, taken, *actual), nil
}
