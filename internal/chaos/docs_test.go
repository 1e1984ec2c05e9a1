package chaos

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/comporta/comporta/redisstore"
)

var causeRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\| (.*) \\|$")

// TestCausesReadAsTheLogSaysThem: the page repeats what the log says.
func TestCausesReadAsTheLogSaysThem(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]error{
		"timeout":    context.DeadlineExceeded,
		"refused":    syscall.ECONNREFUSED,
		"dns":        &net.DNSError{Name: "redis.example", IsNotFound: true},
		"tls":        tls.AlertError(42),
		"connection": io.EOF,
		"ended":      context.Canceled,
		"other":      redisstore.ServerError("UNHEARD of"),
	}
	rows := causeRow.FindAllStringSubmatch(strings.SplitAfter(string(text), "## What the log says")[1], -1)
	if len(rows) < 20 {
		t.Errorf("found %d causes", len(rows))
	}
	for _, row := range rows {
		err, ok := examples[row[1]]
		if !ok {
			err = redisstore.ServerError(row[1] + " as the server words it")
		}
		meaning, todo := redisstore.Explain(errors.Join(err))
		if row[2] != meaning || row[3] != todo {
			t.Errorf("%s reads\n%q, %q; the log says\n%q, %q", row[1], row[2], row[3], meaning, todo)
		}
	}
}
