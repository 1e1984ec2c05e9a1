package chaos

import (
	"os/exec"
	"testing"
)

// TestValkey holds the bounds of one server for Valkey too.
func TestValkey(t *testing.T) {
	path, err := exec.LookPath("valkey-server")
	if err != nil {
		t.Skip("valkey-server is not on the PATH; this Debian may have none")
	}
	t.Setenv("COMPORTA_REDIS_SERVER", path)
	r := new(report)
	t.Run("healthy", func(t *testing.T) { healthy(t, r) })
	t.Run("single", func(t *testing.T) { singleFails(t, r) })
}
