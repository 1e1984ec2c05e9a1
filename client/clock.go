package client

import "time"

// now is the clock that waits are measured by; it is monotonic.
func now() time.Time { return time.Now() }
