package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// writes is an answer that notes the deadline under which each thing is written.
type writes struct {
	http.ResponseWriter
	deadline time.Time
	under    []time.Duration // 0 is none
}

func (w *writes) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

func (w *writes) note() {
	left := time.Duration(0)
	if !w.deadline.IsZero() {
		left = time.Until(w.deadline).Round(time.Minute)
	}
	w.under = append(w.under, left)
}

func (w *writes) Write(p []byte) (int, error) {
	w.note()
	return len(p), nil
}

func (w *writes) FlushError() error {
	w.note()
	return nil
}

// A client of HTTP/2 that never opens its window would else hold its request, and
// the upstream's connection, for ever.
func TestAnHTTP2ClientThatTakesNothingIsCut(t *testing.T) {
	h := serve(t, "http://127.0.0.1:9", generous, nil)
	for major, want := range map[int]time.Duration{1: 0, 2: writeTimeout} {
		w := &writes{ResponseWriter: httptest.NewRecorder()}
		handler := h.desk(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(answer, "a")
			_ = http.NewResponseController(answer).Flush()
			if !w.deadline.IsZero() {
				t.Error("a silence between two writes is bounded")
			}
		}))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.ProtoMajor = major
		handler.ServeHTTP(w, r)
		w.note() // as net/http writes what is left
		for i, under := range w.under {
			if under != want {
				t.Errorf("HTTP/%d: write %d of %d is under a deadline in %v", major, i+1, len(w.under), under)
			}
		}
		if len(w.under) != 3 {
			t.Errorf("HTTP/%d: %d writes", major, len(w.under))
		}
	}
}
