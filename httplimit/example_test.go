package httplimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/memstore"
	"github.com/comporta/comporta/policy"
)

func ExamplePerAddress() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	limit, err := httplimit.PerAddress(store, "100/min burst 2")
	if err != nil {
		log.Fatal(err)
	}
	handler := limit(http.NotFoundHandler()) // http.ListenAndServe(":8080", handler)

	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %s %q\n", w.Code, w.Header().Get("RateLimit-Remaining"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 404 1 ""
	// 404 0 ""
	// 429 0 "1"
}

func ExampleNew() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	pattern, err := policy.ParsePattern("POST /login")
	if err != nil {
		log.Fatal(err)
	}
	engine, err := policy.NewEngine(&policy.Policy{
		Headers: []policy.HeaderSet{policy.Draft11},
		Limits: []*policy.Limit{
			{Name: "all", Per: &identity.Address{}, Limit: comporta.Limit{Limit: 100, Window: time.Minute}},
			{Name: "login", Per: &identity.Address{}, Match: []*policy.Pattern{pattern}, Limit: comporta.Limit{
				Algorithm: comporta.SlidingLog, Limit: 5, Window: 15 * time.Minute, Charge: comporta.Attempts,
			}},
		},
	}, store, policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	limit := httplimit.New(engine, httplimit.Options{})

	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(http.ResponseWriter, *http.Request) {})
	w := httptest.NewRecorder()
	limit(mux).ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
	fmt.Println(w.Header().Get("RateLimit-Policy"))
	fmt.Println(w.Header().Get("RateLimit"))
	// Output:
	// "all";q=100;w=60, "login";q=5;w=900
	// "all";r=99;t=60, "login";r=4;t=900
}
