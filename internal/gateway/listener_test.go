package gateway

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// pair is a connection of the gateway's and its other end.
func pair(t *testing.T) (*conn, net.Conn) {
	t.Helper()
	inner, err := listen("127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{TCPListener: inner}
	defer l.Close()
	other, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*conn), other
}

func TestAnOldDeadlineEndsNoStream(t *testing.T) {
	for name, write := range map[string]func(*conn) error{
		"Write":    func(c *conn) error { _, err := c.Write([]byte("late")); return err },
		"ReadFrom": func(c *conn) error { _, err := io.Copy(c, io.LimitReader(strings.NewReader("late"), 4)); return err },
	} {
		c, other := pair(t)
		if err := c.SetDeadline(time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := write(c); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := make([]byte, 4)
		if _, err := io.ReadFull(other, got); err != nil || string(got) != "late" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestAClientThatTakesNothingIsCut(t *testing.T) {
	c, _ := pair(t)
	if _, err := c.Write([]byte("x")); err != nil { // the deadline is set
		t.Fatal(err)
	}
	if err := c.SetWriteDeadline(time.Time{}); err != nil { // as net/http does after each answer
		t.Fatal(err)
	}
	// As if the minute were over: the deadline that stands is the one that Write set.
	if err := c.TCPConn.SetWriteDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err := c.Write(make([]byte, 64<<20)) // more than the system buffers
	if took := time.Since(begun); !errors.Is(err, os.ErrDeadlineExceeded) || took > writeTimeout/2 {
		t.Errorf("%v after %v", err, took)
	}
}
