package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// A Kind says how the servers of an address belong together.
type Kind uint8

const (
	// Single is one server.
	Single Kind = iota
	// Sentinel is one primary with replicas, found by asking sentinels.
	Sentinel
	// Cluster is several primaries that share the keys among them.
	Cluster
)

func (k Kind) String() string { return [...]string{"single", "sentinel", "cluster"}[k] }

// An Address says where Redis is and how to be let in. It prints without its
// passwords.
type Address struct {
	Kind Kind
	// Servers are host:port, IPv6 in brackets: the server, sentinels, or nodes of
	// the cluster. A server that begins with "/" is the path of a Unix socket.
	Servers []string
	// Master is the name under which sentinels know the primary.
	Master string
	// Username and Password are empty where there are none; a password alone is the
	// default user's.
	Username string
	Password string `json:"-"`
	// SentinelUsername and SentinelPassword are those of the sentinels, which do
	// not share the servers' own.
	SentinelUsername string
	SentinelPassword string `json:"-"`
	// DB is the number of the database; 0 in a cluster, which has but one.
	DB int
	// TLS is for all servers and sentinels. See [Address.TLSConfig].
	TLS        bool
	ServerName string // that certificates are for, where not the host's
	CAFile     string // PEM; "" trusts what the system trusts
	CertFile   string // PEM, with KeyFile: who we are, where servers ask
	KeyFile    string
}

// String is the address as a URL, with *** for passwords.
func (a Address) String() string {
	var b strings.Builder
	scheme := map[Kind]string{Single: "redis", Sentinel: "redis-sentinel", Cluster: "redis-cluster"}[a.Kind]
	if a.TLS {
		scheme = strings.Replace(scheme, "redis", "rediss", 1)
	}
	if a.socket() {
		scheme = "unix"
	}
	b.WriteString(scheme + "://")
	if a.Username != "" || a.Password != "" {
		b.WriteString(escape(a.Username) + ":***@")
	}
	if a.socket() {
		b.WriteString(escapePath(a.Servers[0]))
	} else {
		b.WriteString(strings.Join(a.Servers, ","))
	}
	if a.Master != "" {
		b.WriteString("/" + escape(a.Master))
	}
	if a.DB != 0 && !a.socket() {
		b.WriteString("/" + strconv.Itoa(a.DB))
	}
	sep := "?"
	option := func(name, value string) {
		if value != "" {
			b.WriteString(sep + name + "=" + value)
			sep = "&"
		}
	}
	if a.DB != 0 && a.socket() {
		option("db", strconv.Itoa(a.DB))
	}
	option("sentinel_user", escape(a.SentinelUsername))
	if a.SentinelPassword != "" {
		option("sentinel_password", "***")
	}
	option("tls_server_name", escape(a.ServerName))
	option("ca_file", escapePath(a.CAFile))
	option("cert_file", escapePath(a.CertFile))
	option("key_file", escapePath(a.KeyFile))
	return b.String()
}

// GoString is String: no verb prints a password.
func (a Address) GoString() string { return a.String() }

func (a *Address) socket() bool { return len(a.Servers) == 1 && strings.HasPrefix(a.Servers[0], "/") }

// escape percent-encodes all but letters, digits and "-", "_", ".", "~".
func escape(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// escapePath also leaves "/" as it is.
func escapePath(text string) string {
	return strings.ReplaceAll(escape(text), "%2F", "/")
}

// TLSConfig is how to speak TLS with the servers, nil where TLS is off. It reads
// the files. Where ServerName is "", it is for the dialer to fill in the host's.
func (a *Address) TLSConfig() (*tls.Config, error) {
	if !a.TLS {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.ServerName}
	if a.CAFile != "" {
		pem, err := os.ReadFile(a.CAFile)
		if err != nil {
			return nil, fmt.Errorf("redisstore: ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redisstore: ca_file %s: there is no certificate in it (PEM is wanted)", a.CAFile)
		}
	}
	if a.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("redisstore: cert_file and key_file: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// ParseAddress reads an address as Redis clients write it:
//
//	redis://user:password@host:6379/3
//	redis-sentinel://user:password@host1:26379,host2,host3/mymaster/3
//	redis-cluster://user:password@host1:6379,host2,host3
//	unix://user:password@/run/redis/redis.sock?db=3
//
// rediss://, rediss-sentinel:// and rediss-cluster:// speak TLS; "+" may stand
// for "-". A port left out is 6379, a sentinel's 26379. A password alone is
// written redis://:password@host. What stands for itself nowhere else in a URL
// is percent-encoded: @ is %40, / is %2F, : is %3A, ? is %3F, # is %23, % is %25.
//
// Options come after "?" and "&": db; of sentinels master (also
// sentinelMasterId, master_name), sentinel_user and sentinel_password; of TLS
// tls_server_name, ca_file, cert_file with key_file. With master the path is
// the database. A "+" in an option is a plus.
//
// Errors never repeat what they are about: any part of a mistyped URL may be a
// piece of its password.
func ParseAddress(text string) (*Address, error) {
	a, err := parseAddress(text)
	if err != nil {
		return nil, fmt.Errorf("redisstore: address: %w", err)
	}
	return a, nil
}

func parseAddress(text string) (*Address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return nil, errors.New(`"://" is missing: write redis://host:6379`)
	}
	a := &Address{}
	switch scheme = strings.ReplaceAll(strings.ToLower(scheme), "+", "-"); scheme {
	case "redis", "rediss", "unix":
	case "redis-sentinel", "rediss-sentinel":
		a.Kind = Sentinel
	case "redis-cluster", "rediss-cluster":
		a.Kind = Cluster
	default:
		return nil, errors.New("the scheme is none of redis, rediss, redis-sentinel, rediss-sentinel, redis-cluster, rediss-cluster, unix")
	}
	a.TLS = strings.HasPrefix(scheme, "rediss")
	if strings.Contains(rest, "#") {
		return nil, errors.New(`it has a "#": write %23 where it is part of a password`)
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		hosts, path = rest[:i], rest[i:]
	}
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		if err := a.login(hosts[:at]); err != nil {
			return nil, err
		}
		hosts = hosts[at+1:]
	} else if name, _, _ := strings.Cut(query, "="); scheme != "unix" && strings.Contains(path+name, "@") {
		return nil, errors.New(`the "@" comes after a "/" or "?": within a password write %2F for "/" and %3F for "?"`)
	}
	o, err := parseOptions(query)
	if err != nil {
		return nil, err
	}
	if scheme == "unix" {
		err = a.path(hosts, path)
	} else if err = a.hosts(hosts); err == nil {
		err = a.place(path, o)
	}
	if err != nil {
		return nil, err
	}
	if err := a.options(o); err != nil {
		return nil, err
	}
	return a, nil
}

// login reads what stands before the "@".
func (a *Address) login(text string) error {
	user, password, both := strings.Cut(text, ":")
	if !both && user != "" {
		return errors.New(`is the word before the "@" a user or a password? Write user:password@, or :password@ for a password alone`)
	}
	var err error
	if a.Username, err = url.PathUnescape(user); err != nil {
		return errors.New(`the user has a "%" that begins no percent-encoding: write %25`)
	}
	if a.Password, err = url.PathUnescape(password); err != nil {
		return errors.New(`the password has a "%" that begins no percent-encoding: write %25`)
	}
	return nil
}

// path reads the path of a Unix socket.
func (a *Address) path(hosts, path string) error {
	path, err := url.PathUnescape(path)
	if err != nil {
		return errors.New(`the path has a "%" that begins no percent-encoding: write %25`)
	}
	if hosts != "" || len(path) < 2 {
		return errors.New("a socket is an absolute path: write unix:///run/redis.sock")
	}
	a.Servers = []string{path}
	return nil
}

func (a *Address) hosts(list string) error {
	port := "6379"
	if a.Kind == Sentinel {
		port = "26379"
	}
	for i, text := range strings.Split(list, ",") {
		server, err := parseServer(text, port)
		if err != nil {
			return fmt.Errorf("server %d: %w", i+1, err)
		}
		a.Servers = append(a.Servers, server)
	}
	if a.Kind == Single && len(a.Servers) > 1 {
		return errors.New("there are several servers: write redis-cluster:// for a cluster, redis-sentinel:// for sentinels")
	}
	return nil
}

func parseServer(text, port string) (string, error) {
	host := text
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port = text[:i], text[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] < '1' {
			return "", errors.New("the port is no number from 1 to 65535")
		}
	}
	switch bare, open := strings.CutPrefix(host, "["); {
	case host == "":
		return "", errors.New("there is no host: write localhost if that is meant")
	case open:
		bare, closed := strings.CutSuffix(bare, "]")
		if bare = strings.Replace(bare, "%25", "%", 1); !closed || !isIPv6(bare) {
			return "", errors.New("what stands in brackets is no IPv6 address")
		}
		return net.JoinHostPort(bare, port), nil
	case strings.Contains(host, ":"):
		return "", errors.New("an IPv6 address is written in brackets: [::1]:6379")
	case strings.Trim(host, "-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return "", errors.New("the host has a letter that no host name has")
	}
	return host + ":" + port, nil
}
