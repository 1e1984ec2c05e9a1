package grpcclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/comporta/comporta/client"
)

// answer is what an attempt came to: err is nil or io.EOF where it went well. ctx
// is the caller's own.
func answer(ctx context.Context, err error, header, trailer metadata.MD, received time.Time) client.Answer {
	a := client.Answer{}
	if err != nil && !errors.Is(err, io.EOF) {
		a.Err = err
	}
	s := status.Convert(a.Err)
	a.Kind, a.Final = kind(ctx, s, header, trailer)
	resp := &http.Response{StatusCode: http.StatusOK, Header: fields(header, trailer)}
	if a.Kind == client.Cancelled || a.Kind == client.Failed {
		return a
	}
	a.Hints = client.Hints(resp, received)
	if a.Kind == client.Accepted {
		return a
	}
	a.Wait, a.Told = client.RetryAfter(resp, received)
	if wait, told := retryInfo(s); told {
		a.Wait, a.Told = max(a.Wait, wait), true
	}
	if values := trailer.Get("grpc-retry-pushback-ms"); len(values) > 0 {
		wait, again := pushback(values)
		if again {
			a.Wait, a.Told, a.Word = max(a.Wait, wait), true, client.Again
		} else {
			a.Word = client.Never
		}
	}
	if a.Kind == client.Refused && !a.Told {
		a.Wait, a.Told = client.UntilMore(a.Hints) // all that Envoy tells of a time
	}
	return a
}

// invited says whether a call that is not idempotent is sent again after this
// answer. A server that refuses and tells when to come again invites; one that
// has too much to do may have acted already, and has to say so by a pushback.
func (i *Interceptor) invited(a *client.Answer) bool {
	return a.Word == client.Again || a.Kind == client.Refused && (a.Told || i.retryRefused)
}

// kind is what a status means. All that is not named here was accepted: the
// server dealt with it, or another attempt is for the program to decide, such as
// ABORTED, where more than the one call is to be done again. INTERNAL and UNKNOWN
// may be a server's bug as well as a broken connection, and gRPC's own rule is to
// repeat UNAVAILABLE alone.
func kind(ctx context.Context, s *status.Status, header, trailer metadata.MD) (k client.Kind, final bool) {
	said := len(header)+len(trailer) > 0 // by the server, and not by this side
	switch s.Code() {
	case codes.ResourceExhausted:
		switch {
		case tooLarge(s.Message()):
			if !said {
				return client.Cancelled, false // it was never sent
			}
			return client.Accepted, false
		case !said && strings.Contains(s.Message(), "RST_STREAM"):
			// ENHANCE_YOUR_CALM, at whatever point the server was.
			return client.Overloaded, false
		}
		return client.Refused, false
	case codes.Unavailable:
		switch {
		case len(header.Get("x-envoy-ratelimited"))+len(trailer.Get("x-envoy-ratelimited")) > 0,
			strings.HasPrefix(s.Message(), "unexpected HTTP status code received from server: 429 "):
			// A proxy refused it: Envoy says UNAVAILABLE unless told otherwise, and those that
			// do not know gRPC answer in HTTP. The text is all that grpc-go keeps of that.
			return client.Refused, false
		case !said && !strings.HasPrefix(s.Message(), "unexpected HTTP status code received from server: 503 "):
			return client.Failed, false // no connection, or lost on the way
		}
		return client.Overloaded, false
	case codes.Canceled, codes.DeadlineExceeded:
		switch {
		case ctx.Err() != nil, s.Code() == codes.Canceled && !said: // the connection was closed here
			return client.Cancelled, false
		case s.Code() == codes.DeadlineExceeded:
			// A server that is too slow accepts nothing; asked again, it has more to do.
			return client.Failed, true
		}
	}
	return client.Accepted, false
}

// tooLarge says that a status is about the size of a message, in the words of
// gRPC's libraries for Go, C++ and what builds on it, Java, and .NET. There is no
// other mark of it.
func tooLarge(message string) bool {
	for _, words := range []string{"message larger than max", "decompression larger than max", "message exceeds maximum size", "message exceeds the maximum"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// pushback reads grpc-retry-pushback-ms: one signed integer of 32 bits. Anything
// that is not one, or negative, is that the server does not want to be asked again
// (gRFC A6).
func pushback(values []string) (wait time.Duration, again bool) {
	ms, err := strconv.ParseInt(values[0], 10, 32)
	if len(values) > 1 || err != nil || ms < 0 {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// retryInfo is the wait in a status's details: the longest, if there are several.
func retryInfo(s *status.Status) (wait time.Duration, told bool) {
	for _, d := range s.Details() {
		info, ok := d.(*errdetails.RetryInfo)
		if !ok || info.GetRetryDelay().CheckValid() != nil {
			continue
		}
		if d := info.GetRetryDelay().AsDuration(); d >= 0 {
			wait, told = max(wait, d), true
		}
	}
	return wait, told
}

// fields are metadata as HTTP fields; where a name is in both, the trailer's,
// which is the later word.
func fields(header, trailer metadata.MD) http.Header {
	h := http.Header{}
	for _, md := range []metadata.MD{header, trailer} {
		for name, values := range md {
			if !strings.HasSuffix(name, "-bin") {
				h[http.CanonicalHeaderKey(name)] = values
			}
		}
	}
	return h
}
