package memstore

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta"
)

// world is a clock and one rule of each algorithm, with hours to fill.
type world struct {
	at    time.Time
	rules []*comporta.Rule
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{at: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	for _, a := range comporta.Algorithms() {
		w.compile(t, comporta.Limit{Algorithm: a, Limit: 7, Window: 3 * time.Hour})
	}
	w.compile(t, comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 9, Calendar: &comporta.Calendar{Period: comporta.Month}})
	w.compile(t, comporta.Limit{Algorithm: comporta.LeakyBucket, Limit: comporta.MaxUnits - 1, Window: 399 * 24 * time.Hour}) // wide
	return w
}

func (w *world) compile(t *testing.T, l comporta.Limit) {
	t.Helper()
	r, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	w.rules = append(w.rules, r)
}

func (w *world) now() time.Time { return w.at }

// open is a store that saves only when a test says so.
func (w *world) open(t *testing.T, path string) (*Store, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := New(Options{Now: w.now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, &log
}

// read is open without the writing: only what a start reads, and no disk to wait for.
func (w *world) read(t *testing.T, path string) (*Store, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := New(Options{Now: w.now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.saver = &saver{path: path}
	if err := s.read(path); err != nil {
		t.Fatal(err)
	}
	return s, &log
}

// spend takes from some keys of every rule, as the round has it.
func (w *world) spend(t *testing.T, s *Store, round int) {
	t.Helper()
	for i, r := range w.rules {
		for k := range 3 {
			w.at = w.at.Add(1234 * time.Microsecond)
			take := comporta.Take{Key: comporta.Key{Limit: fmt.Sprint("limit-", i), Identity: fmt.Sprint(k)}, Rule: r, Cost: (int64(round+k)%3 + 1) * (r.Full() / 7)}
			if _, err := s.TakeOne(t.Context(), take.Key, take.Rule, take.Cost); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// left is what a peek at every key answers.
func (w *world) left(t *testing.T, s *Store) string {
	t.Helper()
	var b strings.Builder
	for i, r := range w.rules {
		for k := range 3 {
			d, err := s.TakeOne(t.Context(), comporta.Key{Limit: fmt.Sprint("limit-", i), Identity: fmt.Sprint(k)}, r, 0)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%d/%d: %d left, reset %v, full %v\n", i, k, d.Remaining, d.ResetAfter, d.FullAfter)
		}
	}
	return b.String()
}

func copyFile(t *testing.T, from string, bytes ...byte) string {
	t.Helper()
	if from != "" {
		var err error
		if bytes, err = os.ReadFile(from); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "copy.state")
	if err := os.WriteFile(to, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestStatesSurviveACleanRestart(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	w.compile(t, comporta.Limit{Algorithm: comporta.TokenBucket, Limit: 10, Window: time.Second}) // short ones too
	s, _ := w.open(t, path)
	w.spend(t, s, 0)
	w.spend(t, s, 1)
	want := w.left(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, log := w.open(t, path)
	if got := w.left(t, again); got != want {
		t.Errorf("before:\n%s\nafter:\n%s", want, got)
	}
	if log.Len() > 0 {
		t.Errorf("a clean restart says: %s", log)
	}
	if again.Stats() != s.Stats() {
		t.Errorf("before %+v, after %+v", s.Stats(), again.Stats())
	}
}

// A kill -9 leaves the file as the last save wrote it.
func TestAKillLosesOnlyWhatWasNotSaved(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	s, _ := w.open(t, path)
	w.spend(t, s, 0)
	s.save()
	w.spend(t, s, 1)
	s.save()
	want := w.left(t, s)
	killed := copyFile(t, path)
	at := w.at
	w.spend(t, s, 2) // not saved any more
	w.at = at
	again, log := w.open(t, killed)
	if got := w.left(t, again); got != want {
		t.Errorf("saved:\n%s\nread:\n%s", want, got)
	}
	if log.Len() > 0 {
		t.Errorf("it says: %s", log)
	}
}

func TestWhatIsGivenBackIsSavedToo(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	s, _ := w.open(t, path)
	take := comporta.Take{Key: comporta.Key{Limit: "limit-0", Identity: "0"}, Rule: w.rules[0], Cost: 3}
	var out [1]comporta.Taken
	s.Take(t.Context(), []comporta.Take{take}, out[:])
	s.save()
	if err := s.Settle(t.Context(), []comporta.Settlement{{Key: take.Key, Rule: take.Rule, Taken: out[0].Receipt}}, out[:]); err != nil {
		t.Fatal(err)
	}
	s.save()
	again, _ := w.open(t, copyFile(t, path))
	if n := again.Stats().Keys; n != 0 {
		t.Errorf("%d keys are back that were full again", n)
	}
}

// However much of the last record a crash cut off, the rest is read.
func TestATornRecordIsCutOff(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	s, _ := w.open(t, path)
	w.spend(t, s, 0)
	s.save()
	want := w.left(t, s)
	whole, _ := os.ReadFile(path)
	take := comporta.Take{Key: comporta.Key{Limit: "limit-1", Identity: "new"}, Rule: w.rules[1], Cost: 3}
	s.TakeOne(t.Context(), take.Key, take.Rule, take.Cost)
	s.save()
	longer, _ := os.ReadFile(path)
	if len(longer) <= len(whole) {
		t.Fatal("nothing was appended")
	}
	for n := len(whole); n < len(longer); n++ {
		for _, tail := range [][]byte{nil, make([]byte, len(longer)-n), make([]byte, 5000)} {
			cut := append(longer[:n:n], tail...)
			if bytes.HasPrefix(cut, longer) {
				continue // the record ends in zeros: it is all there
			}
			again, log := w.read(t, copyFile(t, "", cut...))
			if got := w.left(t, again); got != want {
				t.Fatalf("cut at byte %d of %d, and %d zeros: %s", n, len(longer), len(tail), got)
			}
			if torn := strings.Contains(log.String(), "torn"); torn != (n > len(whole) || len(tail) > 0) || strings.Contains(log.String(), "damaged") {
				t.Fatalf("cut at byte %d: it says %q", n, log)
			}
		}
	}
}

// A byte that is not what was written sets the file aside, or is in the last
// record and cuts that off. Nothing is half loaded and nothing crashes.
func TestADamagedFileIsSetAside(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	s, _ := w.open(t, path)
	w.spend(t, s, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(path)
	want := w.left(t, s)
	fresh, _ := w.open(t, filepath.Join(t.TempDir(), "new.state"))
	empty := w.left(t, fresh)
	for i := 0; i < len(whole); i += 1 + i%4 {
		broken := bytes.Clone(whole)
		broken[i] ^= 1 << (i % 8)
		file := copyFile(t, "", broken...)
		again, log := w.read(t, file)
		switch got := w.left(t, again); {
		case got == empty && strings.Contains(log.String(), "set aside"):
			if aside, _ := filepath.Glob(file + ".damaged-*"); len(aside) != 1 {
				t.Fatalf("byte %d: the damaged file is not there any more", i)
			}
		case got == want:
			t.Fatalf("byte %d: the damage was not seen", i)
		default:
			t.Fatalf("byte %d: half loaded, and it says %q:\n%s", i, log, got)
		}
	}
	for n := 1; n < len(whole); n += 71 { // a snapshot is whole or damaged
		again, log := w.read(t, copyFile(t, "", whole[:n]...))
		if !strings.Contains(log.String(), "set aside") || w.left(t, again) != empty {
			t.Fatalf("cut at byte %d of a snapshot: it says %q", n, log)
		}
	}
}

func TestTwoStoresDoNotShareAFile(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	w.open(t, path)
	if _, err := New(Options{Save: path, Now: w.now}); err == nil || !strings.Contains(err.Error(), "another process has this save file open") {
		t.Errorf("the second says %v", err)
	}
}

func TestAFileThatCannotBeWrittenIsAnError(t *testing.T) {
	_, err := New(Options{Save: filepath.Join(t.TempDir(), "no", "such", "folder", "x.state")})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("it says %v", err)
	}
}

// What is appended does not add up for ever: the file is written anew.
func TestTheFileIsCompacted(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	s, _ := w.open(t, path)
	w.spend(t, s, 0)
	s.save()
	s.saver.size += 2 * compactAfter
	s.save()
	if s.saver.size != s.saver.base {
		t.Errorf("of %d bytes %d are a snapshot", s.saver.size, s.saver.base)
	}
	want := w.left(t, s)
	again, _ := w.open(t, copyFile(t, path))
	if got := w.left(t, again); got != want {
		t.Errorf("before:\n%s\nafter:\n%s", want, got)
	}
}

// A debt is at most one full budget: more of it would not even be a duration.
func TestADebtPastAllBoundsIsDamage(t *testing.T) {
	w := newWorld(t)
	for years, damaged := range map[int64]bool{199: false, 299: true} {
		state := comporta.State{At: 1, Full: years * comporta.MaxFill.Microseconds() / 100, Under: w.rules[0]}
		b := appendRecord(head(hashKey{1, 2}), recordRule, encodeRule(w.rules[0]))
		b = appendRecord(b, recordStates, appendState(nil, hash{1, 2}, 1, &state, nil))
		_, log := w.read(t, copyFile(t, "", appendRecord(b, recordEnd, nil)...))
		if got := strings.Contains(log.String(), "out of range"); got != damaged {
			t.Errorf("%d years: damaged %v\n%s", years, got, log)
		}
	}
}

// A quota may be in a zone that no database knows by its name.
func TestAZoneOfOnesOwnIsSaved(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	w.compile(t, comporta.Limit{Algorithm: comporta.FixedWindow, Limit: 9, Calendar: &comporta.Calendar{
		Period: comporta.Day, Hour: 3, Zone: time.FixedZone("the shop's", -9*3600-1800),
	}})
	s, _ := w.open(t, path)
	w.spend(t, s, 0)
	want := w.left(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, log := w.open(t, path)
	if got := w.left(t, again); got != want || log.Len() > 0 {
		t.Errorf("before:\n%s\nafter:\n%s\nit says %q", want, got, log)
	}
}

// What a crash tears is all that was appended at once, wherever in it.
func TestATearAnywhereInTheLastSaveIsCutOff(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	s, _ := w.open(t, path)
	w.spend(t, s, 0)
	s.save()
	want := w.left(t, s)
	whole, _ := os.ReadFile(path)
	at := w.at
	w.spend(t, s, 1)
	s.save()
	w.at = at
	longer, _ := os.ReadFile(path)
	for n := len(whole) + recordHead; n < len(longer); n += 1 + n%7 {
		torn := bytes.Clone(longer)
		torn[n] ^= 1 // as if its block had not come, though those after it had
		again, log := w.read(t, copyFile(t, "", torn...))
		if got := w.left(t, again); got != want {
			t.Fatalf("torn at byte %d of %d to %d: it says %q", n, len(whole), len(longer), log)
		}
	}
}

// While nothing can be written, what changed does not add up.
func TestFailingSavesKeepNothing(t *testing.T) {
	w, dir := newWorld(t), filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, log := w.open(t, filepath.Join(dir, "comporta.state"))
	w.spend(t, s, 0)
	s.saver.file.Close() // the disk is gone
	if err := os.Rename(dir, dir+" away"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.spend(t, s, 1)
		s.save()
		for i := range s.shards {
			if n := len(s.shards[i].dirty); n > 0 {
				t.Fatalf("%d keys wait for a save that will be of all", n)
			}
		}
	}
	if err := os.Rename(dir+" away", dir); err != nil {
		t.Fatal(err)
	}
	s.save()
	want := w.left(t, s)
	again, _ := w.open(t, copyFile(t, filepath.Join(dir, "comporta.state")))
	if got := w.left(t, again); got != want || strings.Count(log.String(), "saving fails") != 1 || !strings.Contains(log.String(), "works again") {
		t.Errorf("before:\n%s\nafter:\n%s\nit says %q", want, got, log)
	}
}

// A smaller bound than before is kept to from the start, not by the first take.
func TestASmallerBoundIsKeptToAfterARestart(t *testing.T) {
	w, path := newWorld(t), filepath.Join(t.TempDir(), "comporta.state")
	w.compile(t, comporta.Limit{Limit: 7, Window: time.Minute})
	quick := w.rules[len(w.rules)-1]
	s, _ := w.open(t, path)
	for i := range 1000 {
		if _, err := s.TakeOne(t.Context(), comporta.Key{Limit: "quick", Identity: fmt.Sprint(i)}, quick, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := New(Options{Now: w.now, MaxKeys: 100, Save: path})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if st := again.Stats(); st.Keys != 100 || st.Evicted != 900 {
		t.Errorf("%+v", st)
	}
}

// Bytes that were never written by us, checksums and all, do no harm.
func FuzzLoad(f *testing.F) {
	rule, err := comporta.ParseLimit("7/3h")
	if err != nil {
		f.Fatal(err)
	}
	compiled, err := rule.Compile()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encodeRule(compiled), appendState(nil, hash{1, 2}, 1, &comporta.State{At: 5, Full: 7}, nil))
	f.Fuzz(func(t *testing.T, rule, states []byte) {
		b := append([]byte(nil), head(hashKey{1, 2})...)
		b = appendRecord(b, recordRule, rule)
		b = appendRecord(b, recordStates, states)
		b = appendRecord(b, recordEnd, nil)
		path := filepath.Join(t.TempDir(), "fuzz.state")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := New(Options{Save: path, Now: func() time.Time { return time.UnixMicro(100) }, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
