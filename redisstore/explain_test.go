package redisstore

import (
	"errors"
	"strings"
	"testing"
)

func TestErrorsAreExplainedAndNotRepeated(t *testing.T) {
	for err, want := range map[error]string{
		ServerError("READONLY hunter2"): "a replica",
		ServerError("hunter2"):          "not known here",
		errors.New("hunter2"):           "connection was cut",
	} {
		meaning, todo := Explain(err)
		if !strings.Contains(meaning, want) || todo == "" || strings.Contains(meaning+todo, "hunter2") {
			t.Errorf("%v: %q, %q", err, meaning, todo)
		}
	}
}
