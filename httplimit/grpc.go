package httplimit

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/policy"
)

// Statuses of gRPC.
const (
	grpcUnknown           = "2"
	grpcInvalidArgument   = "3"
	grpcDeadlineExceeded  = "4"
	grpcPermissionDenied  = "7"
	grpcResourceExhausted = "8"
	grpcUnavailable       = "14"
	grpcUnauthenticated   = "16"
)

// grpcOf is the status of gRPC for a request that is refused for itself.
func grpcOf(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return grpcInvalidArgument
	case http.StatusUnauthorized:
		return grpcUnauthenticated
	case http.StatusForbidden:
		return grpcPermissionDenied
	case http.StatusRequestTimeout:
		return grpcDeadlineExceeded
	case http.StatusServiceUnavailable:
		return grpcUnavailable
	}
	return grpcUnknown
}

func isGRPC(r *http.Request) bool {
	types := r.Header["Content-Type"]
	return len(types) > 0 && strings.HasPrefix(types[0], "application/grpc")
}

// percent percent-encodes all but printable ASCII, percent signs, and what else is named.
func percent(text, also string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '%' || strings.IndexByte(also, c) >= 0 {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// answerGRPC answers in trailers-only form: HTTP 200, the status in the header,
// no body. An HTTP 429 would read as UNAVAILABLE, which clients retry at once.
func (g *guard) answerGRPC(w http.ResponseWriter, r *http.Request, status, message, pushback string) {
	h := w.Header()
	h["Cache-Control"] = []string{"no-store"}
	h["Content-Type"] = []string{"application/grpc"}
	h["Grpc-Status"] = []string{status}
	h["Grpc-Message"] = []string{percent(message, "")}
	if pushback != "" {
		h["Grpc-Retry-Pushback-Ms"] = []string{pushback}
	}
	g.cors.allow(h, r)
	w.WriteHeader(http.StatusOK)
}

// pushback is when a gRPC client may retry, in milliseconds (gRFC A6); −1, which
// is not at all, where that is never or does not fit the 32 bits that clients
// read it into.
func pushback(v *policy.Verdict) string {
	ms := int64((v.RetryAfter + time.Millisecond - 1) / time.Millisecond)
	if v.RetryAfter == comporta.Never || ms > math.MaxInt32 {
		return "-1"
	}
	return strconv.FormatInt(ms, 10)
}
