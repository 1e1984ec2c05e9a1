package admin

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"unicode"
)

// audit records what was done: who, from where, what, and why, whether it worked
// or not. A line that cannot be written to its file is told to the log.
type audit struct {
	file string // "" is the log
	log  *slog.Logger
}

// newAudit sees to it that the file can be written to.
func newAudit(file string, log *slog.Logger) (*audit, error) {
	a := &audit{file, log}
	if file == "" {
		return a, nil
	}
	f, err := a.open()
	if err != nil {
		return nil, err
	}
	return a, f.Close()
}

// open opens the file anew for each line: it may have been rotated.
func (a *audit) open() (*os.File, error) {
	f, err := os.OpenFile(a.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the audit file cannot be written to: %w", err)
	}
	return f, nil
}

// record records an act of a call, and how it ended.
func (a *audit) record(c *call, act, why string, ended error, what ...any) {
	args := append([]any{"by", c.by, "from", from(c.Request), "why", why}, what...)
	result := "done"
	if ended != nil {
		result = "failed: " + ended.Error()
	}
	args = append(args, "result", result)
	if a.file == "" {
		a.log.Info(act, args...)
		return
	}
	f, err := a.open()
	if err == nil {
		defer f.Close()
		record := slog.NewRecord(now(), slog.LevelInfo, act, 0)
		record.Add(args...)
		if err = slog.NewJSONHandler(f, nil).Handle(context.Background(), record); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		a.log.Error("the audit file cannot be written to", "error", err)
		a.log.Info(act, args...)
	}
}

// longestWhy bounds a reason, in bytes.
const longestWhy = 500

// checkWhy wants a reason: one line of text.
func checkWhy(why string) error {
	switch {
	case strings.TrimSpace(why) == "":
		return unprocessable("Say why: it goes into the audit log.")
	case len(why) > longestWhy, strings.ContainsFunc(why, unicode.IsControl):
		return unprocessable(fmt.Sprintf("The reason is one line of at most %d bytes.", longestWhy))
	}
	return nil
}
