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

// An application behind a limit on failed logins of an account, from wherever they
// come: over the limit nobody is locked out, but a second factor is asked for.
func ExampleMarked() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	account, err := identity.NewHeader("X-Account", new(identity.Secret))
	if err != nil {
		log.Fatal(err)
	}
	marks := &policy.Marks{Key: []byte("32 random bytes from a file, say")}
	engine, err := policy.NewEngine(&policy.Policy{
		Marks: marks,
		Limits: []*policy.Limit{{
			Name: "failed", Per: account, OnLimit: policy.Mark, Failure: policy.Failure{Status: []int{401}},
			Limit: comporta.Limit{Limit: 2, Window: time.Hour, Charge: comporta.Failures},
		}},
	}, store, policy.Options{})
	if err != nil {
		log.Fatal(err)
	}

	login := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if over, err := httplimit.Marked(r, marks, time.Now()); err != nil || len(over) > 0 {
			http.Error(w, "Give the code from your device, too.", http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	handler := httplimit.New(engine, httplimit.Options{})(login)
	for range 3 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/login", nil)
		r.Header.Set("X-Account", "alice")
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 401
	// 401
	// 403
}
