package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/memstore"
)

// The server refuses the first request and says to come again in 20 ms; the program
// sees one request.
func Example() {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Retry-After-Ms", "20")
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		io.WriteString(w, "hello")
	}))
	defer server.Close()

	// One for the whole program.
	transport := client.New(client.Options{})
	api := &http.Client{Transport: transport}

	resp, err := api.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	stats := transport.Stats()
	fmt.Println(resp.StatusCode, string(body))
	fmt.Println(stats.Attempts, "attempts,", stats.Refused, "refused")
	// Output:
	// 200 hello
	// 2 attempts, 1 refused
}

// A server that says to come again in an hour is not waited for: its response comes
// back at once, and tells the time. Who comes next is not even sent.
func ExampleGaveUp() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3600")
		http.Error(w, "that was all for now", http.StatusTooManyRequests)
	}))
	defer server.Close()
	api := &http.Client{Transport: client.New(client.Options{})}

	resp, err := api.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Printf("%d %s", resp.StatusCode, body)
	if why := client.GaveUp(resp); why != nil {
		fmt.Println(why.Reason, why.RetryAfter)
	}

	_, err = api.Get(server.URL)
	var why *client.RateLimitError
	if errors.As(err, &why) {
		fmt.Println(why.Reason, why.RetryAfter.Round(time.Minute))
	}
	// Output:
	// 429 that was all for now
	// too-long 1h0m0s
	// gate 1h0m0s
}

// An outbound limit of the program's own: with a store in Redis, one for all its
// processes.
func ExampleOptions_limit() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()

	store, _ := memstore.New(memstore.Options{})
	defer store.Close()
	limit, _ := comporta.ParseLimit("2/h")
	limiter, _ := comporta.NewLimiter(store, limit)
	api := &http.Client{Transport: client.New(client.Options{Limit: limiter, MaxWait: time.Second})}

	for range 3 {
		req, _ := http.NewRequestWithContext(context.Background(), "GET", server.URL, nil)
		resp, err := api.Do(req)
		var why *client.RateLimitError
		if errors.As(err, &why) {
			fmt.Println(why.Reason, why.RetryAfter.Round(time.Minute))
			continue
		}
		fmt.Println(resp.StatusCode)
		resp.Body.Close()
	}
	// Output:
	// 200
	// 200
	// limit 30m0s
}
