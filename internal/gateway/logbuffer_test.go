package gateway

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogLinesArePassedOnEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := new(lines)
		b := NewLogBuffer(to)
		fmt.Fprintln(b, "first")
		time.Sleep(logEvery / 2)
		fmt.Fprintln(b, "second")
		synctest.Wait()
		if got := to.String(); got != "" {
			t.Errorf("too early: %q", got)
		}
		time.Sleep(logEvery / 2)
		synctest.Wait()
		if got := to.String(); got != "first\nsecond\n" {
			t.Errorf("after a second: %q", got)
		}
		fmt.Fprint(b, strings.Repeat("x", logFull))
		if got := len(to.String()); got != logFull+len("first\nsecond\n") {
			t.Errorf("a full buffer: %d bytes passed on", got)
		}
		fmt.Fprintln(b, "last")
		if err := b.Flush(); err != nil || !strings.HasSuffix(to.String(), "last\n") {
			t.Errorf("at the end: %v", err)
		}
	})
}
