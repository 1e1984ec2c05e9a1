package admin

import (
	"net/http"
	"strings"
	"testing"
)

func TestRequestsAreExplained(t *testing.T) {
	h := newHouse(t).open()
	for range 2 {
		status, body, _ := h.do(h.request("POST", "/v1/explain", `{"request":"POST /login","from":"203.0.113.7"}`))
		if status != http.StatusOK || !strings.Contains(body, `"remaining":5`) && !strings.Contains(body, `"remaining": 5`) {
			t.Errorf("%d %s", status, body)
		}
	}
	for body, want := range map[string]int{
		`{"request":"/etc/passwd"}`:                http.StatusUnprocessableEntity, // it reads no files
		`{"request":"GET /a%2fb"}`:                 http.StatusUnprocessableEntity,
		`{"request":"GET /","from":"nowhere"}`:     http.StatusUnprocessableEntity,
		`{"request":"GET /","headers":["a\r\nb"]}`: http.StatusUnprocessableEntity,
		`{"request":"GET /","unknown":1}`:          http.StatusBadRequest,
	} {
		if status, text, _ := h.do(h.request("POST", "/explain", body)); status != want {
			t.Errorf("%s: %d %s, want %d", body, status, text, want)
		}
	}
}
