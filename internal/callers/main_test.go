package callers

import (
	"flag"
	"os"
	"testing"

	"github.com/comporta/comporta/internal/gatewaytest"
)

var update = flag.Bool("update", false, "write what was seen into docs/clients.md")

func TestMain(m *testing.M) { os.Exit(gatewaytest.Run(m)) }
