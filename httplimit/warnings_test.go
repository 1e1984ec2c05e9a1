package httplimit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/httplimit"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

// A limit that warns says so while the client's use is past it, in refusals too.
func TestWarnings(t *testing.T) {
	warns := func(name, text string, at int) *policy.Limit {
		l := perAddress(t, name, text, comporta.FixedWindow)
		l.WarnAt, l.WarnHeader = at, "X-Quota-Warning"
		return l
	}
	limit, _ := enforce(t, &policy.Policy{
		Limits: []*policy.Limit{warns("hour", "4/h", 50), warns("day", "1000/24h", 1), {Name: "none", Per: identity.Everyone{}, Limit: limitOf(t, "9/s", comporta.FixedWindow)}},
		CORS:   &policy.CORS{Origins: []string{"*"}},
	}, httplimit.Options{})
	cache := false
	h := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if cache {
			w.Header().Set("Cache-Control", "public")
		}
	}))
	var got []string
	for i := range 5 {
		cache = i == 2
		got = append(got, ask(h, get("/")).Header.Get("X-Quota-Warning"))
	}
	if diff := cmp.Diff([]string{
		"", `"hour";at=50;q=4;r=2;t=3600`, "", `"hour";at=50;q=4;r=0;t=3600`, `"hour";at=50;q=4;r=0;t=3600`,
	}, got); diff != "" {
		t.Error(diff)
	}
	if names := ask(h, get("/")).Header.Get("Access-Control-Expose-Headers"); !strings.Contains(names, "X-Quota-Warning") {
		t.Errorf("scripts may read %s", names)
	}
}
