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

func TestFieldsOfForms(t *testing.T) {
	finds(t, claimed(t, "username", identity.ClaimedOptions{}), []found{
		{formType, "username=alice&password=x", "alice"},
		{formType, "password=x&username=alice", "alice"},
		{formType + "; charset=UTF-8", "username=alice", "alice"},
		{"Application/X-WWW-Form-URLencoded ;charset=\"utf-8\";", "username=alice", "alice"},
		{formType, "%75sern%61me=al%69ce", "alice"},
		{formType, "username=al+ice%2Bx", "al ice+x"},
		{formType, "username=ali%C3%A7e", "aliçe"},
		{formType, "username=a%20=b", "a =b"},
		{formType, "&&username=alice&", "alice"},
		{formType, "", ""},
		{formType, "username=", ""},
		{formType, "username", ""},
		{formType, "user=alice&usernames=bob&username_confirm=c&name=d&ausername=x", ""},
		// Keys that some readers take for the field.
		{formType, "Username=alice", "alice"},
		{formType, "USERNAME=alice", "alice"},
		{formType, "u%C5%BFername=alice", "alice"},
		{formType, "+username=alice", "alice"},
		{formType, "username+=alice", "alice"},
		{formType, "username%00x=alice", "alice"},
		{formType, "[username]=alice", "400"}, // and it begins like JSON
		{formType, "a=b&[username]=alice", "alice"},
		{formType, "!username=alice", "alice"},
		{formType, "username=alice&Username=bob", "400"},
		{formType, "username=alice&%20username=bob", "400"},
		{formType, "username=alice&username%00=bob", "400"},
		{formType, "username=alice&[username]=bob", "400"},
		{formType, "username=alice&!username=bob", "400"},
		{formType, "username=alice&username=alice", "400"},
		{formType, "username=alice&username", "400"},
		{formType, "username=&username=alice", "400"},
		{formType, "username[]=alice", "400"},
		{formType, "username%5B%5D=alice", "400"},
		{formType, "username[0]=alice", "400"},
		{formType, "username[x]=alice", "400"},
		{formType, "username[=alice", "400"},
		{formType, "[username][]=alice&a=b", "400"},
		{formType, "a=b&[username][]=alice", "400"},
		// Semicolons.
		{formType, "username=alice&password=a;b", "alice"},
		{formType, "username=alice&password=a;username=bob", "400"},
		{formType, "a=b;username=alice", "400"},
		{formType, "username=alice;b", "400"},
		{formType, "a=b&amp;username=alice", "400"},
		// Malformed.
		{formType, "username=alice&a=%zz", "400"},
		{formType, "username=al%u0069ce", "400"},
		{formType, "%u0075sername=alice", "400"},
		{formType, "username=alice&a=%", "400"},
		{formType, "username=al%ffice", "400"},
		{formType, "username=alice&a=%ff", "400"},
		{formType, "username=al\xffice", "400"},
		{formType, "username=alice%00x", "400"},
		{formType, "\ufeffusername=alice", "400"},
		{formType, `{"username":"alice","x":"&username=bob"}`, "400"},
		{formType, "\r\n " + `[{"username":"alice"},"&username=bob"]`, "400"},
	})
	finds(t, claimed(t, "userid", identity.ClaimedOptions{}), []found{
		{formType, "userid=alice&USERID=bob", "400"},
		{formType, "userid=alice&user%C4%B1d=bob", "400"},
		{formType, "userid=alice&user%C4%B0d=bob", "400"},
	})
	finds(t, claimed(t, "user_name", identity.ClaimedOptions{}), []found{
		{formType, "user_name=alice", "alice"},
		{formType, "user.name=alice", "alice"}, // to PHP
		{formType, "user+name=alice", "alice"},
		{formType, "user_name=alice&user.name=bob", "400"},
		{formType, "user_name=alice&user[name=bob", "400"},
		{formType, "username=alice", ""},
	})
	finds(t, claimed(t, "user.name", identity.ClaimedOptions{}), []found{
		{formType, "user.name=alice", "alice"},
		{formType, "user[name]=alice", "alice"},
		{formType, "user%5Bname%5D=alice", "alice"},
		{formType, "user[name]=alice&user.name=bob", "400"},
		{formType, "user[name][]=alice", "400"},
		{formType, "user[names]=alice&name=bob&user=x", ""},
	})
}

func TestFieldsOfJSON(t *testing.T) {
	finds(t, claimed(t, "username", identity.ClaimedOptions{}), []found{
		{jsonType, `{"username":"alice","password":"x"}`, "alice"},
		{jsonType, " {\t\"a\" : [ {\"username\":\"bob\"} , {} , \"}\\\"\" ],\r\n\"username\" : \"alice\" , \"z\":{} } ", "alice"},
		{"application/vnd.api+json; ext=\"https://example.com/x\"", `{"username":"alice"}`, "alice"},
		{"text/json; charset=utf-8", `{"username":"alice"}`, "alice"},
		{"application/problem+json", `{"username":"alice"}`, "alice"},
		{jsonType, `{"\u0075sername":"\u0061lice"}`, "alice"},
		{jsonType, `{"username":"\ud83d\ude00 \"\\\/"}`, `😀 "\/`},
		{jsonType, `{"Username":"alice"}`, "alice"},
		{jsonType, `{"username":null}`, ""},
		{jsonType, `{"username":""}`, ""},
		{jsonType, `{}`, ""},
		{jsonType, `[]`, ""},
		{jsonType, `[{"username":"alice"}]`, ""},
		{jsonType, `"username"`, ""},
		{jsonType, `12`, ""},
		{jsonType, ``, ""},
		{jsonType, `{"user":{"username":"alice"}}`, ""},
		// Numbers are their digits, where all readers write the same.
		{jsonType, `{"username":10}`, "10"},
		{jsonType, `{"username":-7 }`, "-7"},
		{jsonType, `{"username":0}`, "0"},
		{jsonType, `{"username":9007199254740992}`, "9007199254740992"},
		{jsonType, `{"username":9007199254740993}`, "400"},
		{jsonType, `{"username":1e1}`, "400"},
		{jsonType, `{"username":10.0}`, "400"},
		{jsonType, `{"username":-0}`, "400"},
		{jsonType, `{"username":99999999999999999999}`, "400"},
		{jsonType, `{"username":true}`, "400"},
		{jsonType, `{"username":["alice"]}`, "400"},
		{jsonType, `{"username":{"$eq":"alice"}}`, "400"},
		// Twice.
		{jsonType, `{"username":"alice","username":"alice"}`, "400"},
		{jsonType, `{"username":"alice","Username":"bob"}`, "400"},
		{jsonType, `{"username":"alice","u\u017fername":"bob"}`, "400"},
		{jsonType, `{"username":"alice","\u0075sername":"bob"}`, "400"},
		{jsonType, `{"username":null,"username":"alice"}`, "400"},
		// Not JSON, or not to all readers.
		{jsonType, "\ufeff" + `{"username":"alice"}`, "400"},
		{jsonType, `{"username":"alice"}{"username":"bob"}`, "400"},
		{jsonType, `{"username":"alice"} x`, "400"},
		{jsonType, `{"username":"alice"/*,"username":"bob"*/}`, "400"},
		{jsonType, `{'username':'alice'}`, "400"},
		{jsonType, `{"username":"alice",}`, "400"},
		{jsonType, `{"username":"al\x69ce"}`, "400"},
		{jsonType, "{\"username\":\"al\nice\"}", "400"},
		{jsonType, "{\"username\":\"al\xffice\"}", "400"},
		{jsonType, "{\"username\":\"alice\",\"a\":\"\xff\"}", "400"},
		{jsonType, `{"username":"alice\ud800"}`, "400"},
		{jsonType, `{"username":"\udc00alice"}`, "400"},
		{jsonType, `{"username":"\ud800x\udc00"}`, "400"},
		{jsonType, `{"username":"\ud800\ud800\udc00"}`, "400"},
		{jsonType, `{"username\ud800":"alice"}`, "400"},
		{jsonType, `{"username":"alice\u0000"}`, "400"},
		{jsonType, "{\x00\"\x00}", "400"},
		{jsonType, `username=alice`, "400"},
		{jsonType, ` `, "400"},
		{jsonType, strings.Repeat("[", 20_000), "400"},
	})
	finds(t, claimed(t, "user.name", identity.ClaimedOptions{}), []found{
		{jsonType, `{"user":{"id":1,"name":"alice"},"name":"bob"}`, "alice"},
		{jsonType, `{"user.name":"alice"}`, "alice"},
		{jsonType, `{"user":"alice"}`, ""},
		{jsonType, `{"user":null}`, ""},
		{jsonType, `{"user":[{"name":"alice"}]}`, ""},
		{jsonType, `{"name":"alice"}`, ""},
		{jsonType, `{"user":{"name":"alice"},"user":{"name":"bob"}}`, "400"},
		{jsonType, `{"user":{},"User":{"name":"bob"}}`, "400"},
		{jsonType, `{"user":{"name":"alice","NAME":"bob"}}`, "400"},
		{jsonType, `{"user":{"name":"alice"},"user.name":"bob"}`, "400"},
		{jsonType, `{"user":{"name":{}}}`, "400"},
	})
}

func TestFieldsOfMultipartForms(t *testing.T) {
	alice := parts(named("username"), "alice")
	finds(t, claimed(t, "username", identity.ClaimedOptions{}), []found{
		{partType, alice, "alice"},
		{`multipart/form-data; charset=utf-8; boundary="xYz"`, alice, "alice"},
		{partType, strings.TrimSuffix(alice, "\r\n"), "alice"},
		{partType, parts(named("password"), "x", named("username"), "alice\r\n"), "alice\r\n"},
		{partType, parts("content-disposition:form-data;name=username\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Length: 5", "alice"), "alice"},
		{partType, parts(named("f")+`; filename="C:\x\name.png"`+"\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: binary", "\x00\xff", named("username"), "alice"), "alice"},
		{partType, parts(named("f")+`; filename="a.txt"; filename*=UTF-8''a.txt`+"\r\nContent-Type: text/csv; charset=iso-8859-1", "\xe9", named("username"), "alice"), "alice"},
		{partType, "--xYz--\r\n", ""},
		{partType, parts(named("user"), "alice"), ""},
		{partType, parts(named("username"), ""), ""},
		// Names that some readers take for the field.
		{partType, parts(named(" Username"), "alice"), "alice"},
		{partType, parts(named("'username'"), "alice"), "alice"},
		{partType, parts(named("username"), "alice", named("username "), "bob"), "400"},
		{partType, parts(named("username"), "alice", named("username"), "alice"), "400"},
		{partType, parts(named("username[]"), "alice"), "400"},
		{partType, parts(named("user%6eame"), "alice"), "400"},
		{partType, parts(named("username")+`; name="user"`, "alice"), "400"},
		{partType, parts(named("user")+`; name*=UTF-8''username`, "alice"), "400"},
		{partType, parts(named(`user\name`), "alice"), "400"},
		{partType, parts(named("a; name=username"), "alice"), "400"},
		{partType, parts(named("a")+`; filename="b; name=username"`, "alice"), "400"},
		{partType, parts(named("a")+`; filename="b\"; name="username"`, "alice"), "400"},
		{partType, parts(`Content-Disposition: form-data; filename="b\"; name="username"; x="`, "alice"), "400"},
		{partType, parts(`Content-Disposition: form-data; filename="b\"; name="user"`, "alice"), "400"},
		{partType, parts(named("username")+"\r\nX: a\nY: b", "alice"), "400"},
		{partType, parts(named("username")+"\r\nX: a\rY: b", "alice"), "400"},
		{partType, parts(named("username")+"\r\nX: a\x00", "alice"), "400"},
		{partType, parts(named("username")+"\r\n"+named("user"), "alice"), "400"},
		{partType, parts(named("user")+"\r\nX: "+named("username"), "alice"), "400"},
		{partType, parts("Content-Disposition: attachment; name=\"username\"", "alice"), "400"},
		{partType, parts("Content-Disposition : form-data; name=\"username\"", "alice"), "400"},
		{partType, parts("Content-Disposition: form-data;\r\n name=\"username\"", "alice"), "400"},
		{partType, parts("Content-Disposition: form-data;\n name=\"username\"", "alice"), "400"},
		{partType, parts("Content-Disposition: form-data", "alice"), "400"},
		{partType, parts("Content-Type: text/plain", "alice"), "400"},
		{partType, parts("", "alice"), "400"},
		{partType, parts(named("user\xff"), "alice"), "400"},
		// Values that some readers decode, or do not take for values.
		{partType, parts(named("username")+`; filename=""`, "alice"), "400"},
		{partType, parts(named("username")+`; filename="a.txt"`, "alice"), "400"},
		{partType, parts(named("username")+"\r\nContent-Transfer-Encoding: base64", "YWxpY2U="), "400"},
		{partType, parts(named("username")+"\r\nContent-Transfer-Encoding: quoted-printable", "=61lice"), "400"},
		{partType, parts(named("username")+"\r\nContent-Type: text/plain; charset=utf-7", "alice"), "400"},
		{partType, parts(named("username")+"\r\nContent-Type: text/plain\r\nContent-Type: text/html", "alice"), "400"},
		{partType, parts(named("x")+"\r\nContent-Type: multipart/mixed; boundary=b", "--b--"), "400"},
		{partType, parts(named("username"), "al\xffice"), "400"},
		{partType, parts(named("username"), "al\x00ice"), "400"},
		// Parts that some readers do not see, or see more of.
		{partType, `{"username":"bob"}` + "\r\n" + alice, "400"},
		{partType, "\r\n" + alice, "400"},
		{partType, alice + alice, "400"},
		{partType, alice + "x", "400"},
		{partType, strings.TrimSuffix(alice, "--\r\n"), "400"},
		{partType, strings.TrimSuffix(alice, "\r\n--xYz--\r\n"), "400"},
		{partType, strings.ReplaceAll(alice, "\r\n", "\n"), "400"},
		{partType, parts(named("a"), "x\n--xYz\n"+named("username")+"\n\nalice"), "400"},
		{partType, strings.Replace(alice, "--xYz\r\n", "--xYz \r\n", 1), "400"},
		{partType, strings.Replace(alice, "--xYz\r\n", "--xYz1\r\n", 1), "400"},
		{partType, "--xYz\r\n" + named("username") + "\r\n--xYz--\r\n", "400"},
		{partType, "username=alice", "400"},
		{"multipart/form-data", alice, "400"},
		{`multipart/form-data; boundary=""`, alice, "400"},
		{"multipart/form-data; boundary=xYz; boundary=b", alice, "400"},
		{"multipart/form-data; boundary=b; boundary=xYz", alice, "400"},
		{"multipart/form-data; boundary=b; boundary*=utf-8''xYz", alice, "400"},
		{"multipart/form-data; boundary*0=xY; boundary*1=z", alice, "400"},
		{"multipart/form-data; xboundary=b; boundary=xYz", alice, "400"},
		{`multipart/form-data; boundary="xYz,b"`, strings.ReplaceAll(alice, "xYz", "xYz,b"), "400"},
		{"multipart/form-data; x=xYz", alice, "400"},
		{"multipart/form-data; boundary=" + strings.Repeat("x", 70), strings.ReplaceAll(alice, "xYz", strings.Repeat("x", 70)), "alice"},
		{"multipart/form-data; boundary=" + strings.Repeat("x", 71), strings.ReplaceAll(alice, "xYz", strings.Repeat("x", 71)), "400"},
		{"multipart/mixed; boundary=xYz", alice, "400"},
		{"multipart/related; boundary=xYz", alice, "400"},
	})
}

func TestContentTypes(t *testing.T) {
	c := claimed(t, "username", identity.ClaimedOptions{})
	finds(t, c, []found{
		{"text/plain", "username=alice", ""},
		{"application/octet-stream", "username=alice", ""},
		{"application/xml; charset=utf-16", "username=alice", ""},
		{"application/x-ndjson", `{"username":"alice"}`, ""},
		{"", "", ""},
		{"", "username=alice", "400"},
		{" ", "username=alice", "400"},
		{"form", "username=alice", "400"},
		{"/", "username=alice", "400"},
		{"application/json, text/plain", `{"username":"alice"}`, "400"},
		{"application/json; charset=utf-16", `{"username":"alice"}`, "400"},
		{"application/json; charset=utf-8; charset=utf-8", `{"username":"alice"}`, "400"},
		{"application/json; charset*=utf-8''utf-7", `{"username":"alice"}`, "400"},
		{"application/json charset=utf-8", `{"username":"alice"}`, "400"},
		{`application/json; a="b`, `{"username":"alice"}`, "400"},
		{`application/json; a="b"c`, `{"username":"alice"}`, "400"},
		{"application/json; a", `{"username":"alice"}`, "400"},
		{formType + "; charset=ibm037", "username=alice", "400"},
		{formType + "; a=multipart/form-data", "username=alice", "400"},
		{formType + `; a="form-data"`, "username=alice", "400"},
		{formType + `; a="/json"`, "username=alice", "400"},
		{`text/plain; a="application/json"`, "username=alice", "400"},
		{"application/jsonrequest", "{}", "400"},
		{"text/x-www-form-urlencoded", "username=alice", "400"},
	})
	r := posted(jsonType, `{"username":"alice"}`)
	r.Header["Content-Type"] = []string{jsonType, formType}
	if _, _, err := c.Value(r); err == nil {
		t.Error("two content types, and no error")
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
		{"a=%", formType, "username=bob", "400"},
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
