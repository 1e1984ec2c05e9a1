package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/comporta/comporta/config"
)

// certificates gives the certificate of two files, and follows them: they are
// looked at when a client connects, once a second at most. A pair that cannot be
// read is told of once, and the one before stays.
type certificates struct {
	files config.TLS
	log   *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	stamp   [2]fileStamp // of the pair that was tried last
	current *tls.Certificate
}

// fileStamp changes when a file does.
type fileStamp struct {
	changed time.Time
	size    int64
}

func newCertificates(files *config.TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: *files, log: log}
	if err := c.load(c.stamps()); err != nil {
		return nil, fmt.Errorf("cannot use the certificate: %w", err)
	}
	return c, nil
}

// config is what a server needs to show the certificates.
func (c *certificates) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// get is tls.Config's GetCertificate.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since(c.looked) < time.Second {
		return c.current, nil
	}
	c.looked = now()
	stamps := c.stamps()
	if stamps == c.stamp {
		return c.current, nil
	}
	if err := c.load(stamps); err != nil {
		c.log.Error("the new certificate cannot be used; the one before stays", "error", err)
	} else {
		c.log.Info("the certificate was reloaded")
	}
	return c.current, nil
}

// load reads the pair, whose stamps are those from before: a change during the
// reading is seen at the next look.
func (c *certificates) load(stamps [2]fileStamp) error {
	c.stamp = stamps
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return err
	}
	c.current = &pair
	return nil
}

func (c *certificates) stamps() (stamps [2]fileStamp) {
	for i, name := range []string{c.files.Cert, c.files.Key} {
		if info, err := os.Stat(name); err == nil {
			stamps[i] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}
