package goredis_test

import (
	"log"

	"github.com/comporta/comporta/redisstore"
	"github.com/comporta/comporta/redisstore/goredis"
	"github.com/redis/go-redis/v9"
)

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	defer rdb.Close()
	client, err := goredis.New(rdb)
	if err != nil {
		log.Fatal(err)
	}
	store, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	// The store is a comporta.Store: give it to a limiter or a policy.
}
