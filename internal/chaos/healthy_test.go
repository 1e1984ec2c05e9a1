package chaos

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/comporta/comporta/internal/redistest"
)

func TestTry(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	f := startFleet(t, server.URL(), server.Prefix)
	for _, path := range []string{"/local/", "/log/", "/counter/", "/bucket/"} {
		got := f.burst(50, 5*200, func(i int) ask { return ask{path: path, client: fmt.Sprint("192.0.2.", i%5)} })
		got.only(t, path, 200, 429)
		for c := range 5 {
			n := got.of("", fmt.Sprint("192.0.2.", c)).count(http.StatusOK)
			t.Log(path, n)
		}
	}
}
