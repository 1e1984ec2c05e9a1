package storetest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/storetest"
)

// What a limiter's owner does when the store fails is tried with a store that
// fails on purpose: here a call that never arrives, then one whose answer is lost.
func ExampleFaults() {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	store := &storetest.Faults{
		Store:  &storetest.Model{Now: func() time.Time { return noon }},
		Script: storetest.Sequence(storetest.Lost, storetest.LostReply),
	}
	limit, err := comporta.ParseLimit("5/min")
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter, err := comporta.NewLimiter(store, limit)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		d, err := limiter.Take(context.Background(), "203.0.113.7", 1)
		fmt.Println(d.Remaining, err)
	}
	// Output:
	// 0 storetest: injected fault
	// 0 storetest: injected fault
	// 3 <nil>
}
