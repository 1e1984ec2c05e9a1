package publish

import (
	"fmt"
	"slices"

	"github.com/comporta/comporta/policy"
)

// headers says how to read what answers tell.
func (w *writer) headers() {
	sets := w.policy.Headers
	if sets == nil {
		sets = []policy.HeaderSet{policy.Triple}
	}
	if len(sets) == 0 {
		return
	}
	w.line("## Reading the answers")
	w.line("")
	if slices.Contains(sets, policy.Triple) {
		w.line("Each answer tells of the limit that binds you most:")
		w.line("")
		w.line("- `RateLimit-Limit`: what a full budget holds.")
		w.line("- `RateLimit-Remaining`: what is left of it, after this request.")
		w.line("- `RateLimit-Reset`: in how many seconds there is more. Spread what remains over them.")
		w.line("")
	}
	if slices.Contains(sets, policy.Draft11) {
		w.line("`RateLimit-Policy` lists your limits, with their quota `q` and their window `w` in seconds; `RateLimit` what remains of each (`r`) and in how many seconds there is more (`t`):")
		w.line("")
		w.line("```http")
		w.line(`RateLimit-Policy: "requests";q=100;w=60`)
		w.line(`RateLimit: "requests";r=42;t=13`)
		w.line("```")
		w.line("")
	}
	if slices.Contains(sets, policy.XRateLimit) {
		w.line("`X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` tell the same of the limit that binds you most; the reset is a time, in seconds since 1970.")
		w.line("")
	}
	for _, l := range published(w.policy) {
		if l.WarnHeader != "" {
			w.line(fmt.Sprintf("`%s` is there once %d%% of `%s` is used.", l.WarnHeader, l.WarnAt, l.Name))
			w.line("")
		}
	}
}

// refusals says what a refusal looks like and how to wait.
func (w *writer) refusals() {
	w.line("## When you are refused")
	w.line("")
	w.line("A request over a limit is answered with 429 (for gRPC, `RESOURCE_EXHAUSTED`), unless the limit says otherwise, and nothing was done for it: it may be sent again as it is, whatever its method.")
	w.line("")
	w.line("- `Retry-After` says in how many seconds the same request passes. Wait that long, exactly or longer; sooner is refused again. Where it is missing, the request costs more than a full budget holds and can never pass.")
	w.line("- Add a random part to the wait where many of your workers wait for the same limit, or they all come back at once.")
	w.line("- The body is a problem document (`application/problem+json`, RFC 9457) that names the limits in `violated-policies`.")
	w.line("- Stop retrying after a few attempts, and never retry in parallel what was refused.")
	w.line("")
}
