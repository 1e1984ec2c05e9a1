package redisstore_test

import (
	"fmt"

	"github.com/comporta/comporta/redisstore"
)

func ExampleParseAddress() {
	address, err := redisstore.ParseAddress("redis-sentinel://gateway:s3cret@10.0.0.1,10.0.0.2/mymaster/3")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(address) // without the password
	fmt.Println(address.Kind, address.Servers, address.Master, address.DB)
	// Output:
	// redis-sentinel://gateway:***@10.0.0.1:26379,10.0.0.2:26379/mymaster/3
	// sentinel [10.0.0.1:26379 10.0.0.2:26379] mymaster 3
}

func ExampleExplain() {
	// What a store's calls return, or its client's.
	err := redisstore.ServerError("OOM command not allowed when used memory > 'maxmemory'.")
	meaning, todo := redisstore.Explain(err)
	fmt.Println(meaning)
	fmt.Println(todo)
	// Output:
	// the server is full (maxmemory) and may drop nothing
	// raise maxmemory, or give the limits a server of their own; a sliding log takes the most
}
