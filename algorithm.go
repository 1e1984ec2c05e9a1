package comporta

import "fmt"

// An Algorithm names one of the five ways to decide. The zero value is the
// token bucket, which is what a limit without an algorithm uses.
type Algorithm uint8

const (
	TokenBucket Algorithm = iota
	LeakyBucket
	FixedWindow
	SlidingCounter
	SlidingLog
)

// algorithms is the one table of them: the name that files and people use, and
// what kind it is. Their steps are one file each; [Rule.Advance] chooses with a
// switch, because a call through a table would send every state to the heap.
var algorithms = [...]struct {
	name   string
	bucket bool // has a burst, counts in ticks, empties all the time
}{
	TokenBucket:    {name: "token_bucket", bucket: true},
	LeakyBucket:    {name: "leaky_bucket", bucket: true},
	FixedWindow:    {name: "fixed_window"},
	SlidingCounter: {name: "sliding_counter"},
	SlidingLog:     {name: "sliding_log"},
}

// Algorithms lists the five, in the order of their table.
func Algorithms() []Algorithm {
	all := make([]Algorithm, len(algorithms))
	for i := range all {
		all[i] = Algorithm(i)
	}
	return all
}

// ParseAlgorithm reads a name such as "sliding_log".
func ParseAlgorithm(name string) (Algorithm, error) {
	for i := range algorithms {
		if algorithms[i].name == name {
			return Algorithm(i), nil
		}
	}
	return 0, fmt.Errorf("unknown algorithm %q: use token_bucket, leaky_bucket, fixed_window, sliding_counter or sliding_log", name)
}

// String is the name that ParseAlgorithm reads.
func (a Algorithm) String() string {
	if int(a) < len(algorithms) {
		return algorithms[a].name
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

// Bucket says whether a is one of the two buckets: they alone have a burst.
func (a Algorithm) Bucket() bool { return int(a) < len(algorithms) && algorithms[a].bucket }

// A Charge says which requests are charged.
type Charge uint8

const (
	// Admitted spends what is allowed.
	Admitted Charge = iota
	// Attempts spends for every request that asks, whatever is answered, so that
	// hammering keeps the limit closed.
	Attempts
	// Failures takes at the request; whoever asks settles it to 0 when the response
	// was no failure. The step is that of Admitted.
	Failures
)

var charges = [...]string{Admitted: "admitted", Attempts: "attempts", Failures: "failures"}

// ParseCharge reads "admitted", "attempts" or "failures".
func ParseCharge(name string) (Charge, error) {
	for i, n := range charges {
		if n == name {
			return Charge(i), nil
		}
	}
	return 0, fmt.Errorf("unknown charge %q: use admitted, attempts or failures", name)
}

// String is the name that ParseCharge reads.
func (c Charge) String() string {
	if int(c) < len(charges) {
		return charges[c]
	}
	return fmt.Sprintf("Charge(%d)", uint8(c))
}
