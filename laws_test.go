package comporta_test

import (
	"testing"

	"github.com/comporta/comporta/storetest"
	"pgregory.net/rapid"
)

func TestLaws(t *testing.T) { storetest.Laws(t, storetest.Limits()) }

func FuzzLaws(f *testing.F) { f.Fuzz(rapid.MakeFuzz(storetest.AnyLaw)) }

func FuzzOracle(f *testing.F) { f.Fuzz(rapid.MakeFuzz(againstOracle)) }
