package httplimit

import (
	"strings"
	"testing"
)

// An upstream's lists may be long; joining them takes time in proportion. Were it
// to their product, this would not end.
func TestLongListsAreJoined(t *testing.T) {
	const many = 300_000
	policies := items([]string{strings.Repeat(`"a";q=1,`, many) + `"a";q=1`})
	rates := items([]string{strings.Repeat(`"b";r=1,`, many) + `"a";r=1`})
	gotPolicies, gotRates := join(policies, rates, `"a";q=9`, `"a";r=9;t=1`)
	if n := strings.Count(gotPolicies, `"a";q=1`); n != many+1 || strings.Contains(gotPolicies, "q=9") {
		t.Errorf("%d policies of theirs are left", n)
	}
	if !strings.HasSuffix(gotRates, `, "a";r=1`) {
		t.Errorf("the rates end with %q", gotRates[len(gotRates)-20:])
	}
}
