package redisstore

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

// What the breaker stays closed over is in the log all the same, once for each
// cause, and with what to do.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	s := &Store{logger: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 {
		s.failed(ServerError("MOVED 3999 127.0.0.1:6381"))
		s.failed(ServerError("ERR unknown command 'AUTH', with args beginning with: 'hunter2'"))
		s.failed(context.DeadlineExceeded) // is for the breaker to tell
	}
	lines := log.String()
	if strings.Count(lines, "\n") != 2 || !strings.Contains(lines, "cause=MOVED do=\"use redis-cluster://") || !strings.Contains(lines, "unknown command 'AUTH'\"") {
		t.Error(lines)
	}
	if strings.Contains(lines, "hunter2") {
		t.Error("the log has a password:", lines)
	}
	if n := s.counters.errors; n["MOVED"] != 3 || n["ERR"] != 3 || n["timeout"] != 3 {
		t.Error(n)
	}
}
