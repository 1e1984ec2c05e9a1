package main

import (
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/go-chi/httprate"
)

// This program starts itself once more as the upstream, and as a peer that is
// written in Go.

// serveUpstream answers everything with a short text.
func serveUpstream(listen string) error {
	text := []byte("hello from the upstream\n")
	return http.ListenAndServe(listen, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(text)
	}))
}

// servePeer is what one writes in half an hour: the library's reverse proxy behind
// httprate, by address. Its transport keeps enough connections, unlike the default.
func servePeer(listen, upstream string, m mode) error {
	target, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	var handler http.Handler = &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		ErrorLog: log.Default(),
	}
	byAddress := func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		return httprate.CanonicalizeIP(host), err
	}
	switch m {
	case allowed:
		handler = httprate.LimitBy(1_000_000_000, time.Second, byAddress)(handler)
	case refused:
		handler = httprate.LimitBy(1, 24*time.Hour, byAddress)(handler)
	}
	return http.ListenAndServe(listen, handler)
}
