package client

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

type instant struct{}

func (instant) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// BenchmarkRoundTrip is what the manners of one request cost, beside a transport
// that answers at once.
func BenchmarkRoundTrip(b *testing.B) {
	t := New(Options{Transport: instant{}})
	req, err := http.NewRequest("GET", "http://api.test/", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		resp, err := t.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

// BenchmarkBare is the same without manners.
func BenchmarkBare(b *testing.B) {
	req, err := http.NewRequest("GET", "http://api.test/", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		resp, err := instant{}.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

// BenchmarkRoundTripParallel is that of all processors to one host: they share its
// lock.
func BenchmarkRoundTripParallel(b *testing.B) {
	t := New(Options{Transport: instant{}})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		req, err := http.NewRequest("GET", "http://api.test/", nil)
		if err != nil {
			b.Error(err)
			return
		}
		for pb.Next() {
			resp, err := t.RoundTrip(req)
			if err != nil {
				b.Error(err)
				return
			}
			resp.Body.Close()
		}
	})
}

// BenchmarkLoopback is a real server and net/http's own transport on this machine,
// with manners and without.
func BenchmarkLoopback(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit", `"p";r=1000000;t=1`)
		w.Header().Set("RateLimit-Policy", `"p";q=1000000;w=1`)
	}))
	defer server.Close()
	for name, rt := range map[string]http.RoundTripper{"bare": http.DefaultTransport, "manners": New(Options{})} {
		b.Run(name, func(b *testing.B) {
			c := &http.Client{Transport: rt}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := c.Get(server.URL)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}
