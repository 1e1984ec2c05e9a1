package client

import (
	"net/http"
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
