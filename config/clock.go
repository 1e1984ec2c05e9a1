package config

import "time"

// Options are what reading a file needs beside it. The zero Options are ready.
type Options struct {
	// Now tells the day, on which overrides may have ended; the wall clock unless said.
	Now func() time.Time
}

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}
