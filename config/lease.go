package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/comporta/comporta"
)

// lease reads how an instance takes units ahead: auto, or a mapping. What may
// have no lease, and some ranges, are the limit's to say.
func (r *reader) lease(n *node) *comporta.Lease {
	const want = "auto, or a mapping of words: size, ttl, share"
	l := comporta.Lease{}
	switch {
	case n.kind == text && n.text == "auto":
		return &l
	case n.kind != mapping:
		r.wrongKind(n, "lease", want)
		return nil
	}
	words := r.mapping(n, "lease", leaseWords)
	if e, ok := words["size"]; ok && e.value.text != "auto" {
		if e.value.kind == text {
			r.wrongKind(e.value, "size", "auto, or how many units are taken at once")
		} else {
			l.Size, _ = r.whole(e.value, "size", 1, comporta.MaxUnits)
		}
	}
	if e, ok := words["ttl"]; ok {
		l.TTL, _ = r.duration(e.value, "ttl")
	}
	if e, ok := words["share"]; ok {
		l.Share = r.percent(e.value, "share", 1, 50)
	}
	return &l
}

// percent reads a whole number of hundredths, written 10%.
func (r *reader) percent(n *node, what string, least, most int) int {
	digits, found := strings.CutSuffix(n.text, "%")
	v, err := strconv.Atoi(digits)
	if n.kind != text || !found || err != nil || v < least || v > most {
		r.fault(n, fmt.Sprintf("%s is not in percent, from %d%% to %d%%", what, least, most), "write it like 10%")
		return 0
	}
	return v
}
