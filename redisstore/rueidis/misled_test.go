package rueidis_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
	"github.com/comporta/comporta/redisstore"
)

// Lines of a log may be written and read at the same time.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// An address of a server that answers, but not as it says, is an outage from its
// first heartbeat on, whether clients come or not, and not a store that is up and
// decides nothing.
func TestAnAddressThatMisleadsIsAnOutage(t *testing.T) {
	server := redistest.Start(t)
	for name, url := range map[string]string{
		"no such database":    "redis://" + server.Addr + "/999999",
		"a password too many": "redis://:hunter2@" + server.Addr,
		"no cluster":          "redis-cluster://" + server.Addr,
		"no sentinel":         "redis-sentinel://" + server.Addr + "/main",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logged lines
			begun := time.Now()
			store, err := redisstore.New(open(t, url), redisstore.Options{
				Prefix: server.Prefix, Timeout: time.Second, Heartbeat: 200 * time.Millisecond, Failures: 10,
				Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			redistest.Until(t, 10*time.Second, func() error {
				if store.Status().Up || !strings.Contains(logged.String(), "the store is down") {
					return errors.New("it counts as up")
				}
				return nil
			})
			is := store.Status()
			if is.Cause != "ERR" && is.Cause != "other" {
				t.Errorf("cause %q", is.Cause)
			}
			// It opened after a second of failures.
			if since := is.Since.Sub(begun); since < 0 || since > 900*time.Millisecond {
				t.Errorf("down since %v after the start, want when the first call failed", since)
			}
			if strings.Contains(logged.String(), "hunter2") {
				t.Error(logged.String())
			}
		})
	}
}
