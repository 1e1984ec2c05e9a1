package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/comporta/comporta/bench/internal/process"
)

// A mode is what a proxy's limit does to all requests that we make.
type mode string

const (
	unlimited mode = "unlimited" // there is no limit
	allowed   mode = "allowed"   // it is far away
	refused   mode = "refused"   // it is spent
)

// A proxy is a program that limits by the client's address in front of an upstream.
type proxy struct {
	name string
	ours bool
	// needs is the program that must be installed; "" for what is built here.
	needs string
	modes []mode
	// launch starts it.
	launch func(w *workshop, m mode, port string) (*process.Process, error)
}

// A workshop is what all proxies are started with.
type workshop struct {
	dir      string // for files
	upstream string // its port
	comporta string // the built program
	self     string // this program
}

var proxies = []proxy{
	{name: "comporta", ours: true, modes: []mode{unlimited, allowed, refused}, launch: launchComporta},
	{name: "nginx", needs: "nginx", modes: []mode{allowed, refused}, launch: launchNginx},
	{name: "HAProxy", needs: "haproxy", modes: []mode{allowed, refused}, launch: launchHAProxy},
	{name: "ReverseProxy with httprate", modes: []mode{unlimited, allowed, refused}, launch: launchPeer},
}

// write fills in a configuration: "{{name}}" stands for a value.
func (w *workshop) write(file, text string, values ...string) (string, error) {
	path := filepath.Join(w.dir, file)
	values = append(values, "{{dir}}", w.dir, "{{upstream}}", process.Address(w.upstream))
	return path, os.WriteFile(path, []byte(strings.NewReplacer(values...).Replace(text)), 0o644)
}

func launchComporta(w *workshop, m mode, port string) (*process.Process, error) {
	limits := map[mode]string{
		unlimited: "limits: []\n",
		allowed:   "limits:\n  - {name: requests, per: address, limit: 1_000_000_000/s}\n",
		refused:   "limits:\n  - {name: requests, per: address, limit: 1/24h}\n",
	}[m]
	metrics, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	name := "comporta-" + string(m)
	file, err := w.write(name+".yaml", "server: {listen: {{listen}}, metrics: {{metrics}}, upstream: http://{{upstream}}}\n"+limits,
		"{{listen}}", process.Address(port), "{{metrics}}", process.Address(metrics))
	if err != nil {
		return nil, err
	}
	return process.Start(name, w.dir, port, w.comporta, "serve", "-c", file, "--no-access-log", "--drain-delay", "0s")
}

const nginxFile = `daemon off;
worker_processes auto;
pid {{name}}.pid;
error_log stderr emerg;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path {{name}}-body;
  proxy_temp_path {{name}}-proxy;
  fastcgi_temp_path {{name}}-fastcgi;
  uwsgi_temp_path {{name}}-uwsgi;
  scgi_temp_path {{name}}-scgi;
  keepalive_requests 1000000000;
  limit_req_zone $binary_remote_addr zone=address:10m rate={{rate}};
  limit_req_status 429;
  upstream api { server {{upstream}}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen {{listen}};
    location / {
      limit_req zone=address {{burst}};
      proxy_pass http://api;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr;
    }
  }
}
`

func launchNginx(w *workshop, m mode, port string) (*process.Process, error) {
	rate, burst := "1000000r/s", "burst=1000000 nodelay"
	if m == refused {
		rate, burst = "1r/m", ""
	}
	name := "nginx-" + string(m)
	file, err := w.write(name+".conf", nginxFile, "{{name}}", name, "{{rate}}", rate, "{{burst}}", burst, "{{listen}}", process.Address(port))
	if err != nil {
		return nil, err
	}
	return process.Start(name, w.dir, port, "nginx", "-p", w.dir, "-c", file, "-e", "stderr")
}

const haproxyFile = `global
  maxconn 2000
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  option forwardfor
frontend api
  bind {{listen}}
  stick-table type ip size 1m expire 60s store http_req_rate(60s)
  http-request track-sc0 src
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt {{most}} }
  default_backend upstream
backend upstream
  http-reuse always
  server upstream {{upstream}}
`

func launchHAProxy(w *workshop, m mode, port string) (*process.Process, error) {
	most := 2_000_000_000
	if m == refused {
		most = 1
	}
	name := "haproxy-" + string(m)
	file, err := w.write(name+".cfg", haproxyFile, "{{most}}", fmt.Sprint(most), "{{listen}}", process.Address(port))
	if err != nil {
		return nil, err
	}
	return process.Start(name, w.dir, port, "haproxy", "-db", "-f", file)
}

func launchPeer(w *workshop, m mode, port string) (*process.Process, error) {
	return process.Start("httprate-"+string(m), w.dir, port, w.self, "-serve", "peer", "-listen", process.Address(port), "-upstream", "http://"+process.Address(w.upstream), "-mode", string(m))
}
