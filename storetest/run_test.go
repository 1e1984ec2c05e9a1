package storetest_test

import (
	"testing"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/storetest"
)

func TestModelConforms(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, now func() time.Time) comporta.Store {
		return &storetest.Model{Now: now}
	})
}
