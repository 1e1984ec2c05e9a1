package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/comporta/comporta/config"
)

// certificate writes a new self-signed pair of files.
func certificate(t *testing.T, dir, name string) *config.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files := &config.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	write(t, files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	write(t, files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	return files
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCertificatesAreFollowed(t *testing.T) {
	dir := t.TempDir()
	log := new(lines)
	files := certificate(t, dir, "first")
	c, err := newCertificates(files, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", c.config())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	// date says when the files were changed, and lets the next handshake look.
	start := time.Now().Add(-24 * time.Hour)
	date := func(hour time.Duration) {
		for _, file := range []string{files.Cert, files.Key} {
			if err := os.Chtimes(file, time.Time{}, start.Add(hour*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		c.mu.Lock()
		c.looked = time.Time{}
		c.mu.Unlock()
	}
	shown := func() string {
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := shown(); got != "first" {
		t.Errorf("at the start: %s", got)
	}
	certificate(t, dir, "second")
	date(1)
	if got := shown(); got != "second" {
		t.Errorf("after a change: %s", got)
	}
	write(t, files.Cert, []byte("not a certificate"))
	date(2)
	for range 3 {
		if got := shown(); got != "second" {
			t.Errorf("after a bad change: %s", got)
		}
		date(2) // and look again
	}
	if n := strings.Count(log.String(), "cannot be used"); n != 1 {
		t.Errorf("a bad change was told of %d times:\n%s", n, log)
	}
	certificate(t, dir, "third")
	date(3)
	if got := shown(); got != "third" {
		t.Errorf("after a good change again: %s", got)
	}
}

func TestABadCertificateIsAnErrorAtTheStart(t *testing.T) {
	if _, err := newCertificates(&config.TLS{Cert: "/nowhere/cert.pem", Key: "/nowhere/key.pem"}, nil); err == nil || !strings.Contains(err.Error(), "/nowhere/cert.pem") {
		t.Errorf("%v", err)
	}
}
