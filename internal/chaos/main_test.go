package chaos

import (
	"os"
	"testing"

	"github.com/comporta/comporta/internal/gatewaytest"
)

func TestMain(m *testing.M) { os.Exit(gatewaytest.Run(m)) }
