package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/comporta/comporta/policy"
)

func TestTheOneLimitThatIsNamed(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits []*policy.Limit
		asked  int
		want   []string
	}{
		{"the least share left", []*policy.Limit{limit(t, "many", "10/min"), limit(t, "few", "5/min")}, 1,
			[]string{"many allows", "few allows, named"}},
		{"a tie goes to the longer reset", []*policy.Limit{limit(t, "minute", "5/min as fixed_window"), limit(t, "hour", "5/h as fixed_window")}, 1,
			[]string{"minute allows", "hour allows, named"}},
		{"then to policy order", []*policy.Limit{limit(t, "one", "5/min"), limit(t, "two", "5/min")}, 1,
			[]string{"one allows, named", "two allows"}},
		{"on a denial the longest retry", []*policy.Limit{limit(t, "second", "1/s"), limit(t, "hour", "1/h"), limit(t, "minute", "1/min")}, 2,
			[]string{"second denies", "hour denies, named", "minute denies"}},
		{"never is the longest", []*policy.Limit{limit(t, "hour", "1/h"), limit(t, "none", "0/s")}, 2,
			[]string{"hour allows", "none denies, named"}},
		{"a denial before the least share", []*policy.Limit{limit(t, "empty", "1/h", cost(pattern(t, "/"), 0)), limit(t, "second", "1/s")}, 2,
			[]string{"empty allows", "second denies, named"}},
		{"everyone is not shown", []*policy.Limit{limit(t, "all", "1/h", everyone), limit(t, "one", "9/min")}, 2,
			[]string{"all denies", "one allows, named"}},
		{"unless it says so", []*policy.Limit{limit(t, "all", "1/h", everyone, show), limit(t, "one", "9/min")}, 2,
			[]string{"all denies, named", "one allows"}},
		{"nor is a shadow", []*policy.Limit{limit(t, "shadow", "1/h", shadow)}, 1, []string{"shadow allows"}},
		{"a shadow that is shown denies nothing", []*policy.Limit{limit(t, "shadow", "1/h", shadow, show), limit(t, "one", "1/s")}, 2,
			[]string{"shadow denies", "one denies, named"}},
		{"unlimited never competes", []*policy.Limit{limit(t, "free", "unlimited", show)}, 1, []string{"free allows"}},
		{"nor beside others", []*policy.Limit{limit(t, "free", "unlimited", show), limit(t, "one", "9/min")}, 1,
			[]string{"free allows", "one allows, named"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, limits(c.limits...))
			var v *policy.Verdict
			for range c.asked {
				v = h.check(request("GET", "/", peer))
			}
			if diff := cmp.Diff(c.want, told(v)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
