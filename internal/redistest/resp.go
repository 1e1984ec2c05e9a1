package redistest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Error is what a server replied instead of an answer.
type Error string

func (e Error) Error() string { return string(e) }

// patience is how long a server may take to answer Do: far over what any does
// that is not paused.
const patience = 5 * time.Second

// conn speaks RESP2 over one connection, until the deadline of its ctx.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func dial(ctx context.Context, addr string) (*conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	return &conn{c, bufio.NewReader(c)}, c.SetDeadline(deadline)
}

// do sends a command and reads its reply: nil, int64, string, []any of these, or
// an [Error] in place of one. An error of its own leaves the connection unusable.
func (c *conn) do(args ...string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return nil, err
	}
	return c.read()
}

func (c *conn) read() (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, fmt.Errorf("an empty line is no reply")
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+':
		return rest, nil
	case '-':
		return Error(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$', '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		if kind == '*' {
			return c.readArray(n)
		}
		text := make([]byte, n+len("\r\n"))
		if _, err := io.ReadFull(c.in, text); err != nil {
			return nil, err
		}
		return string(text[:n]), nil
	}
	return nil, fmt.Errorf("%q is no reply", line)
}

func (c *conn) readArray(n int) (any, error) {
	all := make([]any, n)
	for i := range all {
		var err error
		if all[i], err = c.read(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
