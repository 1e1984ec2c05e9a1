package httplimit

import (
	"net/http"
	"strconv"

	"github.com/comporta/comporta/policy"
)

// A warning is a header field that says how far a client's use has come.
type warning struct{ name, value string }

// warningsOf are the fields for limits whose use is past where they warn: lists of
// items as RateLimit is, "monthly";at=80;q=10000;r=1877;t=86400.
func (g *guard) warningsOf(v *policy.Verdict) []warning {
	if !g.warns {
		return nil
	}
	var told []warning
	for i := range v.Applied {
		a := &v.Applied[i]
		if a.Limit.WarnHeader == "" || !a.Warns() {
			continue
		}
		buf := append(append([]byte{'"'}, a.Limit.Name...), '"')
		for _, of := range [...]struct {
			key string
			n   int64
		}{
			{";at=", int64(a.Limit.WarnAt)}, {";q=", a.Decision.Limit}, {";r=", a.Decision.Remaining}, {";t=", seconds(resetOf(v, a))},
		} {
			buf = strconv.AppendInt(append(buf, of.key...), min(of.n, most), 10)
		}
		told = add(told, a.Limit.WarnHeader, string(buf))
	}
	return told
}

// add puts limits that warn in one field into one list.
func add(told []warning, name, value string) []warning {
	for i := range told {
		if told[i].name == name {
			told[i].value += ", " + value
			return told
		}
	}
	return append(told, warning{name, value})
}

func putWarnings(h http.Header, told []warning) {
	for _, w := range told {
		h[w.name] = []string{w.value}
	}
}
