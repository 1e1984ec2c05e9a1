package rueidis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/comporta/comporta/internal/redistest"
)

func TestTLSKnowsItsServer(t *testing.T) {
	ours, theirs := certificate(t), certificate(t)
	port := freePort(t)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", ours.cert, "--tls-key-file", ours.key,
		"--tls-ca-cert-file", ours.cert, "--tls-auth-clients", "no")
	url := "rediss://127.0.0.1:" + port
	heals(t, open(t, url+"?ca_file="+ours.cert), 2*time.Second, "a")
	for name, options := range map[string]string{
		"another authority": "?ca_file=" + theirs.cert,
		"another name":      "?tls_server_name=elsewhere.example&ca_file=" + ours.cert,
		"the system's":      "",
	} {
		if _, err := open(t, url+options).Do(t.Context(), "a", "GET", "a"); err == nil {
			t.Errorf("%s: it spoke to a server that it cannot know", name)
		}
	}
}

// files are those of a certificate, which is its own authority, and its key.
type files struct{ cert, key string }

func certificate(t *testing.T) files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for name, block := range map[string]*pem.Block{f.cert: {Type: "CERTIFICATE", Bytes: cert}, f.key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
