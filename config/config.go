// Package config makes a strict policy file a checked policy, every error with
// its line and column.
package config

import (
	"net/netip"
	"net/url"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/identity/jwt"
	"github.com/comporta/comporta/policy"
)

// A Config is a policy file as understood, defaults written out. It is valid
// because it exists; it is not to be changed after Load, but for LoadSecret,
// ShareSecret, LoadPasswords, LoadKeys and LoadMarks.
type Config struct {
	// File is the file's name, as it was given; "" from Quick.
	File   string
	Server Server
	Store  Store
	// SecretFile holds the key of the hashes that stand for what clients sent; ""
	// when it is kept in memory only. See LoadSecret.
	SecretFile string
	// MarksFile holds the key that marks are signed with; "" where there are none.
	// See LoadMarks.
	MarksFile string
	Policy    *policy.Policy
	// APIKey is nil where no client is told by an API key. It knows no key before
	// LoadKeys, where Keyring names a file; for others it is given what looks them up.
	APIKey  *identity.APIKey
	Keyring *Keyring
	// User is nil where no client is told by a token. Its Load reads UserFile; "" where
	// the keys are at a URL.
	User     *jwt.Source
	UserFile string
	// SelfService is nil where clients may not ask for their own limits.
	SelfService *SelfService
	// Warnings tell of what is allowed and probably not meant, in the order of
	// their lines; each has a Code.
	Warnings []Problem

	options   Options
	addresses addresses
	secret    *identity.Secret // of all the policy's sources
	hashes    bool             // a source hashes what clients send
	sources   sources
	said      identitiesSaid
	namings   []naming   // of clients that lists and overrides name
	overrides []override // with those that have ended
}

// A Server says where the gateway listens, what stands behind it, and how long
// and how large things may be.
type Server struct {
	// Listen is where clients come in, host:port; Metrics where health and metrics
	// are told, "" for nowhere.
	Listen, Metrics string
	// Upstream is the API behind the gateway: http or https, without query.
	Upstream *url.URL
	// TLS is nil for plain HTTP.
	TLS      *TLS
	Timeouts Timeouts
	// MaxHeaderBytes bounds a request's header, MaxBodyBytes its body.
	MaxHeaderBytes int
	MaxBodyBytes   int64
	// ProxyProtocol are the peers whose connections begin with the PROXY protocol.
	ProxyProtocol []netip.Prefix
	// Admin is nil where there is no administration.
	Admin *Admin
}

// An Admin says where operators look and change things while the gateway runs.
type Admin struct {
	// Listen is host:port, or unix: and a path.
	Listen string
	// TokenFile holds what they must show, Overrides the run-time overrides, and
	// Audit what was done; "" for the gateway's own log.
	TokenFile, Overrides, Audit string
}

// A SelfService says where clients may ask for their own limits, and how often.
type SelfService struct {
	Path  string
	Limit comporta.Limit
}

// TLS names the certificate and its key: PEM files, relative to the policy file.
type TLS struct{ Cert, Key string }

// Timeouts bound every wait of the gateway.
type Timeouts struct {
	// ReadHeader is for a client to send its header; Idle how long a kept
	// connection may stay silent.
	ReadHeader, Idle time.Duration
	// Dial is for a connection to the upstream; ResponseHeader for its answer to begin.
	Dial, ResponseHeader time.Duration
	// Drain is how long requests in flight may take to end when the gateway stops.
	Drain time.Duration
}

// A Store says what keeps the counts.
type Store struct {
	// MaxKeys bounds the keys.
	MaxKeys int
	// MaxLogBytes bounds the memory of all sliding logs together.
	MaxLogBytes int64
	// Save is the file in which counts survive a restart; "" for none.
	Save string
	// Redis is nil where the counts are in this process. Beside it the bounds above
	// are those of what is counted here while it fails, which is not saved.
	Redis *Redis
}
