package jwt

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// claimed are the claims of a token that would be believed, with more before them.
func claimed(more string) string {
	return "{" + more + strings.TrimPrefix(valid("alice"), "{")
}

// payload is claims of that sub, exp and more, all as JSON.
func payload(sub, exp, more string) string {
	return fmt.Sprintf(`{"iss":"https://id.example.com","aud":"api","sub":%s,"exp":%s%s}`, sub, exp, more)
}

func TestClaimsThatProveNothing(t *testing.T) {
	s := newSource(t, ours().set(t), nil)
	hour := fmt.Sprint(now.Add(time.Hour).Unix())
	for _, c := range []struct {
		name, payload string
		why           reason
	}{
		{"no JSON", "alice", errClaims},
		{"empty", "", errClaims},
		{"a list", `["alice"]`, errClaims},
		{"null", `null`, errClaims},
		{"a token in a token", `"` + ours().token(t, "RS256", valid("alice")) + `"`, errClaims},
		{"something after it", valid("alice") + `{}`, errClaims},
		{"cut off", valid("alice")[:40], errClaims},
		{"no UTF-8", payload("\"al\xffice\"", hour, ""), errClaims},
		{"a doubled sub", claimed(`"sub":"bob",`), errClaims},
		{"a sub doubled by escapes", claimed(`"s\u0075b":"bob",`), errClaims},
		{"a doubled exp", claimed(`"exp":1,`), errClaims},
		{"a doubled claim that nobody reads", claimed(`"x":1,"x":1,`), errClaims},
		{"deeper than anybody reads", claimed(`"x":` + strings.Repeat("[", 3000) + ","), errClaims},

		{"another issuer", strings.Replace(valid("alice"), "id.example", "evil.example", 1), errIssuer},
		{"the issuer's beginning", strings.Replace(valid("alice"), "id.example.com", "id.example.com.evil", 1), errIssuer},
		{"the issuer in a list", strings.Replace(valid("alice"), `"https://id.example.com"`, `["https://id.example.com"]`, 1), errIssuer},
		{"no issuer", strings.Replace(valid("alice"), `"iss"`, `"Iss"`, 1), errIssuer},
		{"another audience", strings.Replace(valid("alice"), `"api"`, `"admin"`, 1), errAudience},
		{"several audiences", strings.Replace(valid("alice"), `"api"`, `["admin",null,7,["api"],{"api":1}]`, 1), errAudience},
		{"no audience", strings.Replace(valid("alice"), `"aud"`, `"AUD"`, 1), errAudience},
		{"an empty audience", strings.Replace(valid("alice"), `"api"`, `[]`, 1), errAudience},

		{"no expiry", strings.Replace(valid("alice"), `"exp"`, `"EXP"`, 1), errExpiry},
		{"expiry as text", payload(`"alice"`, `"`+hour+`"`, ""), errExpiry},
		{"expiry null", payload(`"alice"`, "null", ""), errExpiry},
		{"expiry true", payload(`"alice"`, "true", ""), errExpiry},
		{"expiry below zero", payload(`"alice"`, "-1", ""), errExpiry},
		{"expiry in milliseconds", payload(`"alice"`, hour+"000", ""), errExpiry},
		{"expiry beyond an integer", payload(`"alice"`, "99999999999999999999", ""), errExpiry},
		{"expiry of many digits", payload(`"alice"`, strings.Repeat("9", 3000), ""), errExpiry},
		{"expiry beyond a float", payload(`"alice"`, "1e999999999", ""), errExpiry},
		{"expiry that is nearly nothing", payload(`"alice"`, "1e-999999999", ""), errExpired},
		{"expiry in an object", payload(`"alice"`, `{"exp":`+hour+`}`, ""), errExpiry},
		{"not before as text", payload(`"alice"`, hour, `,"nbf":"0"`), errClaims},
		{"not before null", payload(`"alice"`, hour, `,"nbf":null`), errClaims},
		{"not before an hour", payload(`"alice"`, hour, `,"nbf":`+hour), errEarly},

		{"no sub", strings.Replace(valid("alice"), `"sub"`, `"Sub"`, 1), errSubject},
		{"an empty sub", payload(`""`, hour, ""), errSubject},
		{"sub null", payload(`null`, hour, ""), errSubject},
		{"sub true", payload(`true`, hour, ""), errSubject},
		{"a list of subs", payload(`["alice"]`, hour, ""), errSubject},
		{"a sub object", payload(`{"sub":"alice"}`, hour, ""), errSubject},
		{"a sub that is no whole number", payload(`7.0`, hour, ""), errSubject},
		{"a sub with an exponent", payload(`7e0`, hour, ""), errSubject},
		{"a sub below nothing", payload(`-0`, hour, ""), errSubject},
		{"a long sub", payload(`"`+strings.Repeat("a", MaxSubject+1)+`"`, hour, ""), errSubject},
		{"a long number", payload(strings.Repeat("1", MaxSubject+1), hour, ""), errSubject},
		{"a sub of half a pair", payload(`"\ud800"`, hour, ""), errSubject},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, s, bearer(ours().token(t, "ES256", c.payload)), c.why)
		})
	}
}

func TestClaimsThatProveAUser(t *testing.T) {
	s := newSource(t, ours().set(t), func(o *Options) {
		o.Plans = func(name string) bool { return name == "pro" || name == "free" }
	})
	hour := fmt.Sprint(now.Add(time.Hour).Unix())
	for _, c := range []struct{ name, payload, user, plan string }{
		{"as a text", valid("alice"), "alice", "pro"},
		{"as a number", payload(`7`, hour, ""), "7", "free"},
		{"as a number below zero", payload(`-7`, hour, ""), "-7", "free"},
		{"as a number beyond any integer", payload(strings.Repeat("9", 40), hour, ""), strings.Repeat("9", 40), "free"},
		{"with blanks that count", payload(`" alice "`, hour, ""), " alice ", "free"},
		{"of the longest name", payload(`"`+strings.Repeat("a", MaxSubject)+`"`, hour, ""), strings.Repeat("a", MaxSubject), "free"},
		{"by an escape", payload(`"\u0061lice"`, hour, ""), "alice", "free"},
		{"beside a claim in capitals", claimed(`"SUB":"bob","Exp":1,"ISS":"x","nBf":9999999999,`), "alice", "pro"},
		{"for several", strings.Replace(valid("alice"), `"api"`, `["x",7,"web"]`, 1), "alice", "pro"},
		{"until the year 9999", payload(`"alice"`, "253402300799", ""), "alice", "free"},
		{"until a fraction", payload(`"alice"`, hour+".5", ""), "alice", "free"},
		{"until an exponent", payload(`"alice"`, "1.9e9", ""), "alice", "free"},
		{"from 1970", payload(`"alice"`, hour, `,"nbf":0`), "alice", "free"},
		{"with a plan that there is not", payload(`"alice"`, hour, `,"plan":"root"`), "alice", "free"},
		{"with a plan that is no text", payload(`"alice"`, hour, `,"plan":["pro"]`), "alice", "free"},
		{"with a plan that is empty", payload(`"alice"`, hour, `,"plan":""`), "alice", "free"},
		{"with a plan in capitals", payload(`"alice"`, hour, `,"plan":"PRO","Plan":"pro"`), "alice", "free"},
	} {
		t.Run(c.name, func(t *testing.T) {
			proves(t, s, bearer(ours().token(t, "ES256", c.payload)), c.user, c.plan)
		})
	}
}

func TestAPlanOfAnyNameIsBounded(t *testing.T) {
	s := newSource(t, ours().set(t), nil)
	for size, plan := range map[int]string{maxPlan: strings.Repeat("p", maxPlan), maxPlan + 1: "free"} {
		p := payload(`"alice"`, "1900000000", fmt.Sprintf(`,"plan":%q`, strings.Repeat("p", size)))
		proves(t, s, bearer(ours().token(t, "ES256", p)), "alice", plan)
	}
}

func TestAnotherClaimNamesTheUser(t *testing.T) {
	s := newSource(t, ours().set(t), func(o *Options) {
		o.Claim, o.PlanClaim, o.UnknownPlan, o.Issuer, o.Audience = "https://example.com/account", "", "", "", nil
	})
	exp := fmt.Sprintf(`"exp":%d`, now.Add(time.Hour).Unix())
	proves(t, s, bearer(ours().token(t, "ES256", `{"https://example.com/account":12,"sub":"x","plan":"pro",`+exp+`}`)), "12", "")
	refused(t, s, bearer(ours().token(t, "ES256", `{"sub":"x",`+exp+`}`)), errSubject)
}

// A token is valid from nbf less the leeway to exp with it, to the microsecond, whether
// it was seen before or not.
func TestLeewayEndsAtTheMicrosecond(t *testing.T) {
	at := now
	const leeway = 30 * time.Second
	p := payload(`"alice"`, fmt.Sprintf("%d.25", now.Add(time.Hour).Unix()), fmt.Sprintf(`,"nbf":%d.5`, now.Unix()))
	first, last := now.Add(500*time.Millisecond-leeway), now.Add(time.Hour+250*time.Millisecond+leeway)
	seen := newSource(t, ours().set(t), func(o *Options) { o.Now, o.Leeway = func() time.Time { return at }, leeway })
	r := bearer(ours().token(t, "ES256", p))
	at = now
	proves(t, seen, r, "alice", "free")
	for _, c := range []struct {
		name string
		at   time.Time
		why  reason
	}{
		{"long before", time.Unix(0, 0), errEarly},
		{"a microsecond before", first.Add(-time.Microsecond), errEarly},
		{"at the first", first, ""},
		{"a microsecond before the end", last.Add(-time.Microsecond), ""},
		{"at the end", last, errExpired},
		{"long after", last.Add(1000 * time.Hour), errExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			at = c.at
			fresh := newSource(t, ours().set(t), func(o *Options) { o.Now, o.Leeway = func() time.Time { return at }, leeway })
			for _, s := range []*Source{seen, fresh} {
				if c.why != "" {
					refused(t, s, r, c.why)
				} else {
					proves(t, s, r, "alice", "free")
				}
			}
		})
	}
}

func TestLeewayBelowZeroIsNone(t *testing.T) {
	s := newSource(t, ours().set(t), func(o *Options) { o.Leeway = -1 })
	refused(t, s, bearer(ours().token(t, "ES256", payload(`"a"`, fmt.Sprint(now.Unix()), ""))), errExpired)
	proves(t, s, bearer(ours().token(t, "ES256", payload(`"a"`, fmt.Sprintf("%d.000001", now.Unix()), ""))), "a", "free")
}
