package identity_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/comporta/comporta/identity"
)

func claimed(t testing.TB, field string, o identity.ClaimedOptions) *identity.Claimed {
	t.Helper()
	c, err := identity.NewClaimed(field, secret(t, 1), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
	partType = "multipart/form-data; boundary=xYz"
)

// posted is a request with a body, of which no more is read than is asked for.
func posted(contentType, body string) *identity.Request {
	r := &identity.Request{Method: "POST", Header: map[string][]string{}}
	if contentType != "" {
		r.Header["Content-Type"] = []string{contentType}
	}
	r.Body = func(_ context.Context, most int) ([]byte, bool, error) {
		return []byte(body[:min(most, len(body))]), len(body) <= most, nil
	}
	return r
}

// parts is a multipart body: each part is its head and its value.
func parts(all ...string) string {
	var b strings.Builder
	for i := 0; i < len(all); i += 2 {
		fmt.Fprintf(&b, "--xYz\r\n%s\r\n\r\n%s\r\n", all[i], all[i+1])
	}
	return b.String() + "--xYz--\r\n"
}

func named(name string) string { return `Content-Disposition: form-data; name="` + name + `"` }

// A body and what is found in it: a value, "" where there is none, or a status.
type found struct{ contentType, body, want string }

func finds(t *testing.T, c *identity.Claimed, all []found) {
	t.Helper()
	for _, f := range all {
		got, shown, err := c.Value(posted(f.contentType, f.body))
		if wrong, is := errors.AsType[*identity.RequestError](err); is {
			got = fmt.Sprint(wrong.Status)
			if strings.Contains(wrong.Detail, "alice") {
				t.Errorf("%s, %q: the error tells what was sent: %s", f.contentType, f.body, wrong.Detail)
			}
		} else if err != nil {
			t.Errorf("%s, %q: %v", f.contentType, f.body, err)
		} else if shown != (f.want != "") {
			t.Errorf("%s, %q: shown is %v", f.contentType, f.body, shown)
		}
		if got != f.want {
			t.Errorf("%s, %q: %q, want %q", f.contentType, f.body, got, f.want)
		}
	}
}

func TestCompressedBodiesAreRefused(t *testing.T) {
	c := claimed(t, "username", identity.ClaimedOptions{})
	for coding, refused := range map[string]bool{"": false, "identity": false, "Identity, ": false, "gzip": true, "identity, br": true} {
		r := posted(jsonType, `{"username":"alice"}`)
		r.Header["Content-Encoding"] = []string{"identity", coding}
		if _, shown, err := c.Value(r); shown == refused || (err != nil) != refused {
			t.Errorf("%q: %v, %v", coding, shown, err)
		}
	}
}

func TestAFieldInTheQueryString(t *testing.T) {
	c := claimed(t, "username", identity.ClaimedOptions{})
	for _, q := range []struct{ query, contentType, body, want string }{
		{"username=alice", formType, "password=x", "alice"},
		{"username=alice", jsonType, `{}`, "alice"},
		{"username=alice", "", "", "alice"},
		{"username=alice", "text/plain", "", "alice"},
		{"a=b&next=/a;c=d", formType, "username=alice", "alice"},
		{"username=alice", formType, "username=alice", "400"},
		{"Username=alice", jsonType, `{"username":"bob"}`, "400"},
		{"username=alice", partType, parts(named("username"), "bob"), "400"},
		{"username=alice", "text/plain", "password=x", "400"},
		{"username[]=alice", formType, "username=bob", "400"},
		{"username=alice&username=bob", formType, "", "400"},
		{"a;username=alice", formType, "username=bob", "400"},
		{"a=%&b=caf%E9", formType, "username=alice", "alice"}, // what is not the field's is not looked at
		{"%u0075sername=bob", formType, "username=alice", "400"},
		{"username=%", formType, "", "400"},
		{"username=%E9", formType, "", "400"},
	} {
		r := posted(q.contentType, q.body)
		r.Query = q.query
		got, _, err := c.Value(r)
		if wrong, is := errors.AsType[*identity.RequestError](err); is {
			got = fmt.Sprint(wrong.Status)
		}
		if got != q.want {
			t.Errorf("?%s, %s, %q: %q, want %q", q.query, q.contentType, q.body, got, q.want)
		}
	}
	r := &identity.Request{Query: "username=alice"}
	if got, _, err := c.Value(r); got != "alice" || err != nil || c.Stage(r) != identity.Look {
		t.Errorf("without a body: %q, %v, stage %v", got, err, c.Stage(r))
	}
}

func TestBodiesOverTheBoundAreRefused(t *testing.T) {
	body := `{"username":"alice"}`
	for most, want := range map[int]int{0: 0, len(body): 0, len(body) - 1: 413, 1: 413} {
		c := claimed(t, "username", identity.ClaimedOptions{MaxBody: most})
		_, shown, err := c.Prove(t.Context(), posted(jsonType, body))
		status := 0
		if wrong, is := errors.AsType[*identity.RequestError](err); is {
			status = wrong.Status
		}
		if status != want || shown != (want == 0) {
			t.Errorf("at most %d bytes: %v, %v, want %d", most, shown, err, want)
		}
	}
	long := posted(formType, "username=alice&a="+strings.Repeat("b", identity.MaxBody))
	if _, _, err := claimed(t, "username", identity.ClaimedOptions{}).Prove(t.Context(), long); err == nil {
		t.Error("a body over 64 KiB was taken")
	}
	other := posted("image/png", "")
	other.Body = func(context.Context, int) ([]byte, bool, error) { t.Error("it was read"); return nil, true, nil }
	if _, shown, err := claimed(t, "username", identity.ClaimedOptions{}).Prove(t.Context(), other); shown || err != nil {
		t.Errorf("a picture: %v, %v", shown, err)
	}
}

// A body that fails to come must not pass for one without the field.
func TestABodyThatCannotBeReadIsRefused(t *testing.T) {
	c := claimed(t, "username", identity.ClaimedOptions{})
	for err, want := range map[error]int{
		io.ErrUnexpectedEOF: 400, context.DeadlineExceeded: 400, &identity.RequestError{Status: 408}: 408,
	} {
		r := posted(jsonType, "")
		r.Body = func(context.Context, int) ([]byte, bool, error) { return []byte("{}"), false, err }
		_, shown, got := c.Prove(t.Context(), r)
		if wrong, is := errors.AsType[*identity.RequestError](got); !is || wrong.Status != want || shown {
			t.Errorf("%v: %v, %v, want %d", err, shown, got, want)
		}
	}
}

func TestClaimsAreOneClientHoweverTheyAreSpelled(t *testing.T) {
	c := claimed(t, "username", identity.ClaimedOptions{})
	exact := claimed(t, "username", identity.ClaimedOptions{Exact: true})
	want, err := c.For("alice")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(want.ID, "claimed:username:") || strings.Contains(want.ID, "alice") || want.Name != "" {
		t.Errorf("%+v", want)
	}
	for _, spelled := range []string{"alice", "ALICE", " Alice\t", "ａｌｉｃｅ", "al\u00adice", "al\u200bi\ufeffce", "\u00a0alice\u2003", "al\x01ice"} {
		r := posted(jsonType, fmt.Sprintf(`{"username":%q}`, spelled))
		if strings.Contains(spelled, "\x01") {
			r = posted(formType, "username=al%01ice")
		}
		who, shown, err := c.Prove(t.Context(), r)
		if who != want || !shown || err != nil {
			t.Errorf("%q: %v, %v, %v, want %v", spelled, who, shown, err, want)
		}
		if who, _ := exact.For(spelled); (who == want) != (spelled == "alice") {
			t.Errorf("%q to the byte: %v", spelled, who)
		}
	}
	for _, alike := range [][2]string{{"ꭰ", "Ꭰ"}, {"ᏸ", "Ᏸ"}, {"Straße", "STRASSE"}, {"ΣΊΣΥΦΟΣ", "σίσυφος"}, {"ﬁ", "FI"}, {"a\u0308", "Ä"}, {"e\u200b\u0301", "É"}} {
		one, _ := c.For(alike[0])
		if two, err := c.For(alike[1]); one != two || err != nil {
			t.Errorf("%q is not %q: %v", alike[0], alike[1], err)
		}
	}
	// A long name costs nothing where it is of ASCII.
	for value, shown := range map[string]bool{strings.Repeat("a", 60_000): true, strings.Repeat("\ufdfa", 341): true, strings.Repeat("\ufdfa", 342): false} {
		if _, got, err := c.Prove(t.Context(), posted(formType, "username="+value)); got != shown || (err == nil) != shown {
			t.Errorf("%d bytes: %v, %v", len(value), got, err)
		}
	}
	for _, blank := range []string{"", " ", "\u2003\t", "\u200b"} {
		if who, err := c.For(blank); err == nil {
			t.Errorf("%q is %v", blank, who)
		}
	}
	if who, err := exact.For(" "); err == nil {
		t.Errorf("a blank is %v", who)
	}
	if who, err := c.For("al\xffice"); err == nil {
		t.Errorf("no text is %v", who)
	}
}

func TestClaimedRefuses(t *testing.T) {
	s := secret(t, 1)
	for name, want := range map[string]string{
		"": "not a field's name", "user.": "not a field's name", ".a": "not a field's name", "user..name": "not a field's name",
		"user[name]": "user.name", "user name": "letters, digits", "a:b": "letters, digits", "a&b": "letters, digits", "a\xff": "letters, digits",
	} {
		if _, err := identity.NewClaimed(name, s, identity.ClaimedOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", name, err, want)
		}
	}
	if _, err := identity.NewClaimed("username", nil, identity.ClaimedOptions{}); err == nil {
		t.Error("a field without a secret was taken")
	}
	if _, err := identity.NewClaimed("username", s, identity.ClaimedOptions{MaxBody: -1}); err == nil {
		t.Error("a negative bound was taken")
	}
	if got := claimed(t, "user.name", identity.ClaimedOptions{Exact: true}).String(); got != "{claimed: user.name, exact: true}" {
		t.Error(got)
	}
}
