package identity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/comporta/comporta/identity"
)

// read is what the standard library's readers find in a body: the values under the
// very name of the field, and those under any name.
type read struct {
	field, all []string
	err        error
}

func (r *read) add(name, value string) {
	r.all = append(r.all, value)
	if name == "username" {
		r.field = append(r.field, value)
	}
}

func readBody(contentType, body string) (r read) {
	media, params, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		r.err = err
	case media == "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(body)
		for name, all := range values {
			for _, value := range all {
				r.add(name, value)
			}
		}
		if err != nil && strings.Contains(body, "%") && !strings.Contains(body, ";") {
			r.err = err // it leaves out pairs with semicolons, and says so
		}
	case media == "multipart/form-data":
		parts := multipart.NewReader(strings.NewReader(body), params["boundary"])
		for {
			part, err := parts.NextPart()
			if err != nil {
				if err != io.EOF {
					r.err = err
				}
				return r
			}
			value, err := io.ReadAll(part)
			if err != nil {
				r.err = err
				return r
			}
			if part.FileName() == "" {
				r.add(part.FormName(), string(value))
			}
		}
	default: // JSON, decoded as programs do that want the field
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.UseNumber()
		var object map[string]any
		if r.err = decoder.Decode(&object); r.err != nil {
			return r
		}
		for name, value := range object {
			switch value := value.(type) {
			case string:
				r.add(name, value)
			case json.Number:
				r.add(name, value.String())
			case bool:
				r.add(name, strconv.FormatBool(value))
			}
		}
		var login struct{ Username any }
		if json.Unmarshal([]byte(body), &login) == nil {
			if value, is := login.Username.(string); is {
				r.field = append(r.field, value)
			}
		}
		slices.Sort(r.field)
		r.field = slices.Compact(r.field)
	}
	return r
}

// FuzzFields holds our readers against those of the standard library: a value that
// we find they find too, and no other; one that they find we find, or refuse.
func FuzzFields(f *testing.F) {
	for _, seed := range []found{
		{formType, "a=b&username=%61lice+x&c", ""},
		{formType + "; charset=utf-8", "Username=a;b&username[]=c", ""},
		{jsonType, `{"a":[{"username":"b"}],"username":"al\u0069ce\ud83d\ude00","Username":null}`, ""},
		{"application/problem+json", `{"user":{"name":1e1},"username":-12}`, ""},
		{partType, parts(named("f")+`; filename="a"`+"\r\nContent-Type: image/png", "x", named("username"), "alice"), ""},
		{partType, parts(named("f")+"\r\nContent-Type:\x10image/png", "x", named("username"), "alice"), ""},
		{partType, parts(named("f")+"\r\nContent-g", "x", named("username"), "alice"), ""},
		{"multipart/form-data;;boundary=xYz", parts(named("username"), "alice"), ""},
		{`multipart/form-data; boundary="x Yz"`, parts(named("username"), "al\r\n--xYice"), ""},
		{"text/plain", "username=alice", ""},
	} {
		f.Add(seed.contentType, seed.body)
	}
	c := claimed(f, "username", identity.ClaimedOptions{})
	f.Fuzz(func(t *testing.T, contentType, body string) {
		ours, shown, err := c.Value(posted(contentType, body))
		if err != nil {
			if _, is := errors.AsType[*identity.RequestError](err); !is {
				t.Fatalf("%v is no refusal", err)
			}
			return
		}
		media, _, _ := strings.Cut(strings.ToLower(strings.Trim(contentType, " \t")), ";")
		if _, kind, _ := strings.Cut(strings.Trim(media, " \t"), "/"); kind != "x-www-form-urlencoded" && kind != "form-data" && kind != "json" && kind != "x-json" && !strings.HasSuffix(kind, "+json") {
			if shown {
				t.Fatalf("%q was found in a body of type %q", ours, contentType)
			}
			return
		}
		if body == "" {
			return
		}
		theirs := readBody(contentType, body)
		switch {
		case theirs.err != nil && shown:
			t.Fatalf("%q, %q: %q was found where others find %v", contentType, body, ours, theirs.err)
		case shown && !slices.Contains(theirs.all, ours):
			t.Fatalf("%q, %q: %q was found where others find %q", contentType, body, ours, theirs.all)
		case len(theirs.field) > 0 && !slices.Equal(theirs.field, []string{ours}):
			t.Fatalf("%q, %q: %q was found where others find %q", contentType, body, ours, theirs.field)
		}
	})
}

// Each way of writing a value down is read as the same value.
func TestFieldsAreAlikeInAllKindsOfBodies(t *testing.T) {
	c := claimed(t, "user.name", identity.ClaimedOptions{Exact: true})
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[^\x00]{1,20}`).Draw(t, "value")
		other := rapid.StringMatching(`[^\x00]{0,20}`).Draw(t, "other")
		quoted := func(v any) string {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		form.WriteField("other", other)
		form.WriteField("user[name]", value)
		form.Close()
		for _, r := range []*identity.Request{
			posted(formType, url.Values{"user[name]": {value}, "other": {other}}.Encode()),
			posted(jsonType, quoted(map[string]any{"other": []any{other}, "user": map[string]string{"name": value, "x": other}})),
			posted(form.FormDataContentType(), body.String()),
		} {
			if got, _, err := c.Value(r); got != value || err != nil {
				t.Fatalf("%v: %q, %v, want %q", r.Header, got, err, value)
			}
		}
	})
}

// spell is the one spelling of a value that is short enough to have one.
func spell(value string) string {
	once, err := identity.Canonical(value)
	if err != nil {
		panic(err)
	}
	return once
}

func TestACanonicalSpellingIsItsOwn(t *testing.T) {
	hard := rapid.SampledFrom([]rune{'ß', 'İ', 'ı', 'ſ', 'K', 'ﬁ', '\u0345', '\u0130', '\u1e9e', '\u00ad', '\u200b', '\u034f', '\u115f', '\u3164', '\u00a8', '\ufdfa', '\u0301', '\u0327', '\u1fb3', '\u03c2', '\u13a0', '\uab70', '\u3000', '\u180e', '\U000e0001', '\u2126', '\uac00', '\u1100', '\u1161', ' ', '\x01', '\x85'})
	letter := rapid.OneOf(hard, hard, rapid.Rune(), rapid.RuneFrom(nil, unicode.Mn, unicode.Lm, unicode.Lu, unicode.Lt))
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(letter, 0, 12, -1).Draw(t, "value")
		once := spell(value)
		if twice := spell(once); twice != once {
			t.Fatalf("%q is %q and then %q", value, once, twice)
		}
		if around := spell("\u00a0" + once + "\u200b "); around != once {
			t.Fatalf("%q with blanks is %q, not %q", value, around, once)
		}
	})
	for r := range rune(0x20000) {
		if unicode.Is(unicode.Han, r) || unicode.Is(unicode.Co, r) || unicode.Is(unicode.Hangul, r) {
			continue
		}
		once := spell(string(r))
		if twice := spell(once); twice != once {
			t.Errorf("%q is %q and then %q", r, once, twice)
		}
	}
}
