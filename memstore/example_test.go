package memstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/memstore"
)

// With a save file, counts survive a restart.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "comporta")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	limit, err := comporta.ParseQuota("3/year")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // two lives of one process
		store, err := memstore.New(memstore.Options{MaxKeys: 100_000, Save: filepath.Join(dir, "counts")})
		if err != nil {
			fmt.Println(err)
			return
		}
		limiter, err := comporta.NewLimiter(store, limit)
		if err != nil {
			fmt.Println(err)
			return
		}
		for range 2 {
			d, err := limiter.Take(context.Background(), "203.0.113.7", 1)
			fmt.Println(d.Allowed, d.Remaining, err)
		}
		fmt.Println("stopped:", store.Close())
	}
	// Output:
	// true 2 <nil>
	// true 1 <nil>
	// stopped: <nil>
	// true 0 <nil>
	// false 0 <nil>
	// stopped: <nil>
}
