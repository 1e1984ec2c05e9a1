package httplimit

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/identity"
	"github.com/comporta/comporta/policy"
)

const (
	// markHeader is the header of marks unless the policy names another.
	markHeader = "Comporta-Mark"
	// markAge is how long a mark holds, and how far two clocks may be apart.
	markAge = 60 * time.Second
)

// A Mark says that a request is over a limit which lets it pass and marks it.
type Mark struct {
	// Limit is the limit's name.
	Limit string
	// Identity is the client's, as it is stored.
	Identity string
	// Time is when it was marked, in whole seconds.
	Time time.Time
}

// Marked are the marks of a request, for the application behind the limits: it then
// asks for a second factor, say. A mark counts only as it was signed with the key
// of m, for the request's method and path, at most a minute before or after now.
// Where one is there that does not count, the error says why, and no marks are
// given: treat it as marked.
//
// The path is the one that the limits' middleware or gateway passed on, without
// what an upstream's URL puts before it. Of the query and the body nothing is
// signed. Signatures are compared in constant time.
//
// Each mark is an item of a list of structured fields (RFC 9651):
//
//	Comporta-Mark: "login";v=1;t=1798761600;id="address:203.0.113.7";sig="…"
//
// sig is the HMAC-SHA-256, in base64url without padding, of the lines
//
//	comporta-mark
//	"login";v=1;t=1798761600;id="address:203.0.113.7"
//	POST /login
//
// with line feeds between them and none at the end. In id what is no visible ASCII,
// quotes, backslashes and percent signs are percent-encoded.
func Marked(r *http.Request, m *policy.Marks, now time.Time) ([]Mark, error) {
	if len(m.Key) < identity.MinSecret {
		return nil, fmt.Errorf("httplimit: the key of marks has %d bytes: at least %d", len(m.Key), identity.MinSecret)
	}
	var marks []Mark
	for _, line := range r.Header[cmp.Or(m.Header, markHeader)] {
		for line = strings.Trim(line, " \t"); line != ""; {
			text, rest, signed := strings.Cut(line, `;sig="`)
			sig, rest, closed := strings.Cut(rest, `"`)
			if !signed || !closed || !hmac.Equal([]byte(sig), []byte(signature(m.Key, text, r))) {
				return nil, errors.New("httplimit: a mark was not signed with this key for this request")
			}
			mark, err := readMark(text)
			if err != nil {
				return nil, err
			}
			if now.Sub(mark.Time).Abs() > markAge {
				return nil, errors.New("httplimit: a mark is not of this minute: it was kept, or two clocks differ")
			}
			marks = append(marks, mark)
			rest = strings.TrimLeft(rest, " \t")
			if line = strings.TrimLeft(strings.TrimPrefix(rest, ","), " \t"); rest != "" && rest[0] != ',' {
				return nil, errors.New("httplimit: there is something behind a mark that is none")
			}
		}
	}
	return marks, nil
}

// mark is the header line that says that the request is over a limit.
func (g *guard) mark(a *policy.Applied, now comporta.Instant, r *http.Request) string {
	text := fmt.Sprintf(`"%s";v=1;t=%d;id="%s"`, a.Limit.Name, int64(now)/1_000_000, percent(a.Identity, ` "\`))
	return text + `;sig="` + signature(g.marks.Key, text, r) + `"`
}

// signature is over what a mark says, and what it says it of.
func signature(key []byte, text string, r *http.Request) string {
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "comporta-mark\n%s\n%s %s", text, r.Method, r.URL.EscapedPath())
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// readMark reads what was signed.
func readMark(text string) (Mark, error) {
	wrong := errors.New("httplimit: a mark is not of the version that is read here")
	name, rest, _ := strings.Cut(strings.TrimPrefix(text, `"`), `"`)
	rest, known := strings.CutPrefix(rest, ";v=1;t=")
	at, rest, _ := strings.Cut(rest, `;id="`)
	id, closed := strings.CutSuffix(rest, `"`)
	second, err := strconv.ParseInt(at, 10, 64)
	if !known || !closed || err != nil {
		return Mark{}, wrong
	}
	if id, err = url.PathUnescape(id); err != nil {
		return Mark{}, wrong
	}
	return Mark{Limit: name, Identity: id, Time: time.Unix(second, 0)}, nil
}
