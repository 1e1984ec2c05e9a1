package comporta

// A State is all that a limit knows of one key, as named integers, at the
// instant of its last change. The zero State is a key never seen, and a key that
// is full again is the zero State. A State is copied freely.
//
// Which fields count is the algorithm's: Cur (and Prev) the windows', Full and
// Part the buckets'. A sliding log's entries are kept by the store, see [Log].
type State struct {
	// At is the instant of the last change. An earlier one counts as this.
	At Instant
	// Cur is the count of the window that At lies in; Prev that of the window before.
	Cur, Prev int64
	// Full + Part/p is the time from At until the budget is full, in microseconds,
	// where p is the limit's count in lowest terms with its window: exact, however
	// odd the rate. (In GCRA's words: the theoretical arrival time less At.)
	Full, Part int64
	// Place is the place of the last that joined a leaky bucket's queue: its
	// instant, moved on where one had that place already. It tells whether a take
	// is still the last.
	Place Instant
	// Under is the rule that the state was made under.
	Under *Rule
	// Phase is the key's own 64 bits that stagger takes its offset from (see
	// [Key.Phase]): not kept, but filled in by the store when [Rule.NeedsPhase] says so.
	Phase uint64
}

// Zero says whether s is the state of a key never seen.
func (s *State) Zero() bool { return s.Under == nil }

// A Log reads the entries of one key's sliding log, oldest first, which the
// store keeps. Takes of one instant may share an entry.
type Log interface {
	// After is the total cost of the entries later than t, and the latest instant.
	After(t Instant) (sum int64, newest Instant)
	// Reach is the instant of the entry later than t at which the costs, added up
	// from the oldest later than t, reach n. It is asked only for an n that After(t) reaches.
	Reach(t Instant, n int64) Instant
	// At is the total cost of the entries at t.
	At(t Instant) int64
}

// An Edit is what a step changes in a sliding log. A store applies it in the
// order of the fields; a zero field changes nothing. After an edit the entries
// are still in the order of their instants.
type Edit struct {
	// Drop: with Dropping, entries up to and at this instant leave.
	Dropping bool
	Drop     Instant
	// Cut is the number of units that leave, from the oldest on.
	Cut int64
	// Clamp: with Clamping, entries later than this instant move to it.
	Clamping bool
	Clamp    Instant
	// Back units are taken off the entries at BackAt.
	Back   int64
	BackAt Instant
	// Add units are recorded at AddAt, which no entry is later than.
	Add   int64
	AddAt Instant
}

// A Cell is a state on a store's bench: what a step reads and changes in place.
// The zero Cell is a key never seen.
type Cell struct {
	State State
	// Log reads the entries of a sliding log; nil when there are none.
	Log Log
	// Edit is what the step did to the log; the store applies it.
	Edit Edit
	// Changed says that State or the log is not what it was. A denial and a peek
	// leave it false, but for the cases that SPEC names: a clock fault, forgetting,
	// changed numbers and charged attempts.
	Changed bool
	// Fault says that the clock had stepped back by more than [MaxStep].
	Fault bool
}
