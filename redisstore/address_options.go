package redisstore

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// addressOptions are the options of an address, by the name under which each is
// kept.
var addressOptions = map[string]string{
	"db":     "db",
	"master": "master", "sentinelMasterId": "master", "master_name": "master",
	"sentinel_user": "sentinel_user", "sentinel_password": "sentinel_password",
	"tls_server_name": "tls_server_name", "ca_file": "ca_file", "cert_file": "cert_file", "key_file": "key_file",
}

// parseOptions reads what stands after the "?".
func parseOptions(query string) (map[string]string, error) {
	o := map[string]string{}
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, text, _ := strings.Cut(part, "=")
		kept, ok := addressOptions[name]
		if !ok {
			return nil, errors.New("an option is none of db, master, sentinel_user, sentinel_password, tls_server_name, ca_file, cert_file, key_file")
		}
		value, err := url.PathUnescape(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf(`option %s has a "%%" that begins no percent-encoding: write %%25`, name)
		case value == "":
			return nil, fmt.Errorf("option %s is empty", name)
		case o[kept] != "":
			return nil, fmt.Errorf("option %s is given twice", kept)
		}
		o[kept] = value
	}
	return o, nil
}

// place reads the path: the master where no option names it, then the database.
func (a *Address) place(path string, o map[string]string) error {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	if a.Kind == Sentinel {
		a.Master = o["master"]
		if a.Master == "" {
			name, err := url.PathUnescape(parts[0])
			if err != nil {
				return errors.New(`the master's name has a "%" that begins no percent-encoding: write %25`)
			}
			if name == "" {
				return errors.New("sentinels are asked for a primary by name: write redis-sentinel://host/mymaster")
			}
			a.Master, parts = name, parts[1:]
		}
	}
	if len(parts) > 1 {
		return errors.New("the path has a part too many: after the servers come the master's name (sentinels only) and the number of the database")
	}
	if len(parts) == 1 && parts[0] != "" {
		if o["db"] != "" {
			return errors.New("the database is given twice, in the path and as option db")
		}
		o["db"] = parts[0]
	}
	return nil
}

// options takes over what is no server and no path.
func (a *Address) options(o map[string]string) error {
	if db := o["db"]; db != "" {
		n, err := strconv.ParseUint(db, 10, 31)
		if err != nil {
			return errors.New("the database is a whole number from 0 up")
		}
		if n != 0 && a.Kind == Cluster {
			return errors.New("a cluster has only database 0")
		}
		a.DB = int(n)
	}
	a.SentinelUsername, a.SentinelPassword = o["sentinel_user"], o["sentinel_password"]
	a.ServerName, a.CAFile, a.CertFile, a.KeyFile = o["tls_server_name"], o["ca_file"], o["cert_file"], o["key_file"]
	given := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return o[name] != "" })
	}
	switch {
	case a.Kind != Sentinel && given("master", "sentinel_user", "sentinel_password"):
		return errors.New("options master, sentinel_user and sentinel_password are for redis-sentinel:// only")
	case a.SentinelUsername != "" && a.SentinelPassword == "":
		return errors.New("option sentinel_user needs sentinel_password")
	case !a.TLS && given("tls_server_name", "ca_file", "cert_file", "key_file"):
		return errors.New("options of TLS need a scheme that speaks it: rediss://, rediss-sentinel:// or rediss-cluster://")
	case given("cert_file") != given("key_file"):
		return errors.New("options cert_file and key_file come together")
	}
	return nil
}

func isIPv6(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Is6()
}
