package rueidis_test

import (
	"log"

	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/rueidis"
)

func ExampleOpen() {
	address, err := redisstore.ParseAddress("redis-sentinel://10.0.0.1,10.0.0.2,10.0.0.3/mymaster")
	if err != nil {
		log.Fatal(err)
	}
	client, err := rueidis.Open(address, rueidis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	// The store is a comporta.Store: give it to a limiter or a policy.
}
