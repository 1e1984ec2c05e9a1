package identity

import "time"

// wall is the clock of what was given none.
func wall() time.Time { return time.Now() }
