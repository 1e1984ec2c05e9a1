package config

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// admin reads where operators come in.
func (r *reader) admin(n *node) *Admin {
	words := r.mapping(n, "server.admin", adminWords)
	if words == nil {
		return nil
	}
	a := &Admin{Overrides: r.config.overridesFile()}
	if e, ok := words["listen"]; ok {
		a.Listen = r.adminListen(e.value)
	} else {
		r.fault(n, "server.admin has no listen", "write listen: 127.0.0.1:9902, or unix:admin.sock")
	}
	if _, ok := words["token_file"]; !ok {
		r.fault(n, "server.admin has no token_file", "write token_file: admin.token, and into that file a long random token: nobody comes in without it")
	}
	for _, file := range [...]struct {
		name string
		to   *string
	}{{"token_file", &a.TokenFile}, {"overrides", &a.Overrides}, {"audit", &a.Audit}} {
		if e, ok := words[file.name]; ok {
			if said, ok := r.text(e.value, file.name, "admin."+file.name); ok {
				*file.to = r.beside(said)
			}
		}
	}
	return a
}

// overridesFile is where run-time overrides are kept unless the policy says:
// policy.overrides.json beside policy.yaml.
func (c *Config) overridesFile() string {
	return strings.TrimSuffix(c.File, filepath.Ext(c.File)) + ".overrides.json"
}

// adminListen reads host:port, or unix: and a path.
func (r *reader) adminListen(n *node) string {
	if path, unix := strings.CutPrefix(n.text, "unix:"); unix && n.kind == text {
		if _, ok := r.text(n, "listen", "unix:admin.sock"); !ok {
			return ""
		}
		if path == "" || len(r.beside(path)) > longestSocket {
			r.fault(n, fmt.Sprintf("listen: the path of a Unix socket has 1 to %d letters", longestSocket), "write it like unix:admin.sock, which is beside the policy")
		}
		return "unix:" + r.beside(path)
	}
	listen := r.hostPort(n, "listen", "")
	if listen == "" {
		return ""
	}
	s := &r.config.Server
	if _, port, _ := net.SplitHostPort(listen); port != "0" && (listen == s.Listen || listen == s.Metrics) {
		r.fault(n, "admin listens where clients or metrics come in", "give it a port of its own, one that clients cannot reach")
	}
	if everybody(listen) {
		r.warn(n, "W-ADMIN-PUBLIC", "whoever reaches "+listen+" can try tokens, and the right one travels unencrypted",
			"listen on 127.0.0.1 or on a Unix socket")
	}
	return listen
}

// longestSocket is what every system takes as the path of a Unix socket.
const longestSocket = 103

func defaultSelfService() *SelfService {
	return &SelfService{Path: "/.well-known/rate-limits", Limit: comporta.Limit{Limit: 60, Window: time.Minute}}
}

// selfService reads where clients may ask for their own limits: a path, off, or
// a mapping.
func (r *reader) selfService(n *node) {
	s := r.config.SelfService
	if n.kind == text {
		if n.text == "off" {
			r.config.SelfService = nil
			return
		}
		r.selfServicePath(n, s)
		return
	}
	if n.kind != mapping {
		r.wrongKind(n, "self_service", "a path, off, or a mapping of words: path, limit")
		return
	}
	words := r.mapping(n, "self_service", selfServiceWords)
	if e, ok := words["path"]; ok {
		r.selfServicePath(e.value, s)
	}
	if e, ok := words["limit"]; ok {
		before := len(r.problems)
		s.Limit = r.parsed(e.value, "limit", "60/min", comporta.ParseLimit)
		if len(r.problems) > before {
			return
		}
		if _, err := s.Limit.Compile(); err != nil {
			r.limitError(err, nil, e.value, "limit")
		} else if s.Limit.Limit == 0 && !s.Limit.Unlimited {
			r.fault(e.value, "self_service: a limit of 0 lets nobody ask", "write self_service: off")
		}
	}
}

func (r *reader) selfServicePath(n *node, s *SelfService) {
	said, ok := r.text(n, "self_service", s.Path)
	if !ok {
		return
	}
	if p, err := policy.ParsePattern(said); err != nil || !strings.HasPrefix(said, "/") || strings.HasSuffix(said, "/") || strings.ContainsAny(said, "?#%;") || len(p.Wildcards()) > 0 {
		r.fault(n, fmt.Sprintf("self_service: %q is no path", said), "write it like "+s.Path+", or off")
		return
	}
	s.Path = said
}
