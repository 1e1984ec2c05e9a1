package gateway

import (
	"io"
	"sync"
	"time"
)

// A LogBuffer gathers what a log writes and passes it on each second, and when
// 64 KB are together: one system call for many requests. It is safe for
// concurrent use.
type LogBuffer struct {
	to    io.Writer
	mu    sync.Mutex
	text  []byte
	timer *time.Timer // nil before the first write
}

const (
	logEvery = time.Second
	logFull  = 64 << 10
)

// NewLogBuffer gathers for a writer.
func NewLogBuffer(to io.Writer) *LogBuffer { return &LogBuffer{to: to} }

// Write gathers p. Its error is that of an earlier text that was passed on.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.text) == 0 {
		if b.timer == nil {
			b.timer = time.AfterFunc(logEvery, func() { _ = b.Flush() })
		} else {
			b.timer.Reset(logEvery)
		}
	}
	b.text = append(b.text, p...)
	if len(b.text) >= logFull {
		return len(p), b.flushLocked()
	}
	return len(p), nil
}

// Flush passes on what is gathered.
func (b *LogBuffer) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flushLocked()
}

func (b *LogBuffer) flushLocked() error {
	if len(b.text) == 0 {
		return nil
	}
	_, err := b.to.Write(b.text)
	b.text = b.text[:0]
	return err
}
