package egress

import (
	"net/http"
	"net/url"
	"strings"
)

// ServeHTTP gives a request to the API whose path it begins with. Paths are taken
// as they are sent: what is encoded stays so, and a path with . or .. in it, however
// it is written, belongs to nobody.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodConnect || req.Method == http.MethodTrace { // TRACE sends headers back, those with keys too
		refuse(w, http.StatusMethodNotAllowed, "CONNECT and TRACE are not passed on.", 0)
		return
	}
	if req.Header.Get("Sec-Fetch-Site") == "cross-site" {
		// A page may make its reader's browser call 127.0.0.1: neither quota nor keys are
		// its to spend (Fetch Metadata Request Headers, W3C).
		refuse(w, http.StatusForbidden, "Pages of other sites may not call this gateway.", 0)
		return
	}
	if !strings.HasPrefix(req.URL.Path, "/") || climbs(req.URL) {
		refuse(w, http.StatusBadRequest, "The path is none that can be passed on.", 0)
		return
	}
	path := req.URL.EscapedPath()
	for _, a := range g.apis {
		if a.Path == "/" || path == a.Path || strings.HasPrefix(path, a.Path+"/") {
			a.ServeHTTP(w, req)
			return
		}
	}
	paths := make([]string, len(g.apis))
	for i, a := range g.apis {
		paths[i] = a.Path
	}
	refuse(w, http.StatusNotFound, "No API is at this path. Those that are here: "+strings.Join(paths, ", ")+".", 0)
}

// climbs says whether a path has a segment . or .., for somebody who decodes it
// once or twice, or takes a backslash for a slash.
func climbs(u *url.URL) bool {
	path := u.EscapedPath()
	for range 3 {
		for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
			name, _, _ := strings.Cut(segment, ";")
			if name == "." || name == ".." {
				return true
			}
		}
		decoded, err := url.PathUnescape(path)
		if err != nil || decoded == path {
			return false
		}
		path = decoded
	}
	return false
}
