package httplimit

import "net/http"

// refuseItself answers a request that is refused for what it is, and not for a limit.
func (g *guard) refuseItself(w http.ResponseWriter, r *http.Request, d *desk) {
	v, h := &d.verdict, w.Header()
	told := fields{values: make([]string, g.sets.count)}
	d.text = told.work(v, &g.sets, d.text[:0])
	told.put(h, &g.sets)
	putWarnings(h, g.warningsOf(v))
	status, detail := v.Refused.Status, v.Refused.Detail
	if isGRPC(r) {
		g.answerGRPC(w, r, grpcOf(status), detail, "")
		return
	}
	switch status {
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusServiceUnavailable:
		h["Retry-After"] = []string{"1"}
	case http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		h["Connection"] = []string{"close"} // what is left of the body nobody waits for
	}
	g.answerProblem(w, r, status, detail)
}
