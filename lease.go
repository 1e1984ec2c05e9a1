package comporta

import "time"

// A Lease lets an instance take units of a limit ahead and serve them by itself,
// so that most requests need no round trip to a store that is far away. A leased
// unit is spent in the store when it is leased, is used at most TTL later, and a
// lease ends with its window.
//
// Stores within the process do not lease. A limit with a lease is no quota, no
// leaky_bucket, has no max_wait, and does not charge attempts.
type Lease struct {
	// Size is how many units are taken at once; 0 fits it to the rate.
	Size int64
	// TTL is how long a leased unit may be used, from 10 ms to a minute; 0 is a second.
	TTL time.Duration
	// Share is the most of a full budget that may lie in leases at a time, of all
	// instances together, in percent: 1 to 50; 0 is 10.
	Share int
}

// The ranges and defaults of a lease.
const (
	defaultTTL, minTTL, maxTTL = time.Second, 10 * time.Millisecond, time.Minute
	defaultShare, maxShare     = 10, 50
)

// Filled is the lease with its defaults written out.
func (l Lease) Filled() Lease {
	if l.TTL == 0 {
		l.TTL = defaultTTL
	}
	if l.Share == 0 {
		l.Share = defaultShare
	}
	return l
}

// Most is how many units of a full budget may lie in leases at a time.
func (l Lease) Most(full int64) int64 { return fall(full, int64(l.Filled().Share), 100) }

func (l Limit) checkLease() error {
	if l.Lease == nil {
		return nil
	}
	switch lease := l.Lease.Filled(); {
	case l.Unlimited:
		return wrong("lease", "an unlimited limit has nothing to lease")
	case l.Calendar != nil:
		return wrong("lease", "is not for quotas: what a lost instance holds would be lost for the whole period")
	case l.Algorithm == LeakyBucket:
		return wrong("lease", "is not for a leaky_bucket: places in a queue cannot be held ready; use a token_bucket")
	case l.MaxWait != 0:
		return wrong("lease", "does not go with max_wait: a wait is a place in one queue")
	case l.Charge == Attempts:
		return wrong("lease", "does not go with charge: attempts, which must reach the store each time")
	case lease.Size < 0 || lease.Size > MaxUnits:
		return wrong("lease", "a size of %d is out of range: from 1 to 1_000_000_000_000 (10^12), or 0 for one that fits", lease.Size)
	case lease.TTL < minTTL || lease.TTL > maxTTL:
		return wrong("lease", "a ttl of %v is out of range: from %v to %v", lease.TTL, minTTL, maxTTL)
	case lease.Share < 0 || lease.Share > maxShare:
		return wrong("lease", "a share of %d %% is out of range: from 1 to %d", lease.Share, maxShare)
	}
	return nil
}
