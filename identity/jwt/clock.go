package jwt

import "time"

// wall is the clock of a Source that was given none.
func wall() time.Time { return time.Now() }
