package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// idempotent are the methods whose requests may be sent twice (RFC 9110, section
// 9.2.2; QUERY by its draft).
var idempotent = []string{"", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"}

// repeatable says whether a request may be sent again though the server may have
// acted on it.
func repeatable(req *http.Request) bool {
	return slices.Contains(idempotent, req.Method) ||
		strings.TrimSpace(req.Header.Get("Idempotency-Key")) != "" || strings.TrimSpace(req.Header.Get("X-Idempotency-Key")) != ""
}

// replayable says whether a request can be sent again, and its body with it.
func replayable(req *http.Request) bool {
	return !upgrades(req) && (req.Body == nil || req.Body == http.NoBody || req.GetBody != nil)
}

// upgrades says whether a request asks for another protocol, whose bytes may be its
// body.
func upgrades(req *http.Request) bool {
	return req.Method == http.MethodConnect || req.Header.Get("Upgrade") != ""
}

// asks says whether a body is so large that the server is to be asked first.
func asks(req *http.Request, above int64) bool {
	if req.Body == nil || req.Body == http.NoBody || req.Header.Get("Expect") != "" || upgrades(req) {
		return false
	}
	return req.ContentLength >= above || req.ContentLength < 0
}

// hostOf is the server that a request goes to, as its limits know it.
func hostOf(req *http.Request) string {
	host, port := strings.TrimSuffix(strings.ToLower(req.URL.Hostname()), "."), req.URL.Port()
	if port == "" || port == "443" && req.URL.Scheme == "https" || port == "80" && req.URL.Scheme == "http" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// kindOf is what a status says became of the attempt, and whether it may pass
// later.
func kindOf(resp *http.Response, told bool) (kind Kind, retryable bool) {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return Refused, true
	case http.StatusServiceUnavailable, 529: // overloaded, as some say it
		return Overloaded, true
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return Failed, true
	case http.StatusRequestEntityTooLarge:
		if told {
			return Failed, true
		}
	case http.StatusForbidden:
		if refusedForbidden(resp) {
			return Refused, true
		}
	}
	if resp.StatusCode >= 500 {
		return Failed, false
	}
	return Accepted, false
}

// read is what the last response says.
func (x *exchange) read(at time.Time) Answer {
	a := Answer{Hints: Hints(x.resp, at), Status: x.resp.StatusCode, received: at}
	if a.Status < 400 {
		return a
	}
	wait, told := RetryAfter(x.resp, at)
	kind, retryable := kindOf(x.resp, told)
	a.Kind, a.Word = kind, wordOf(x.resp.Header)
	if a.Word == Again && a.Status != http.StatusNotImplemented {
		if retryable = true; kind == Accepted {
			a.Kind = Failed
		}
	}
	if a.Kind == Accepted {
		return a
	}
	a.Final, a.Wait, a.Told = !retryable, wait, told
	if a.Kind == Refused && !a.Told {
		a.Wait, a.Told = UntilMore(a.Hints)
	}
	if !x.overdue(&a) && strings.Contains(strings.ToLower(x.resp.Header.Get("Content-Type")), "json") {
		a.more = x.readBody
	}
	return a
}

// overdue says that the header alone tells too long a time: the response comes back
// at once, whatever its body adds.
func (x *exchange) overdue(a *Answer) bool {
	deadline, limited := x.req.Context().Deadline()
	return a.Told && (a.Wait > x.transport.config.MaxWait || limited && !a.received.Add(a.Wait).Before(deadline))
}

// readBody is what a refusal's body says.
func (x *exchange) readBody(a *Answer) {
	body := peek(x.resp)
	if body == nil {
		return
	}
	final, wait, told := readProblem(x.resp.Header.Get("Content-Type"), body.seen())
	if final {
		a.Word = Never
	}
	if told && (!a.Told || wait > a.Wait) {
		a.Wait, a.Told = wait, true
	}
}

// pointless are the beginnings of errors by which net/http says that a request
// cannot be sent at all, or that what answers is no HTTP server.
var pointless = []string{
	"unsupported protocol scheme", "net/http: invalid", "http: no Host in request URL", "http: nil Request",
	"malformed HTTP", "net/http: HTTP/1.x transport connection broken: malformed HTTP",
}

// failure is an attempt without a response.
func failure(ctx context.Context, err error) Answer {
	a := Answer{Kind: Failed, Err: err}
	var inner *RateLimitError
	if ctx.Err() != nil || errors.As(err, &inner) { // a Transport within this one sent nothing
		a.Kind = Cancelled
		return a
	}
	var (
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		name        x509.HostnameError
		invalid     x509.CertificateInvalidError
		dns         *net.DNSError
		address     *url.Error
		header      tls.RecordHeaderError
	)
	a.Final = errors.As(err, &certificate) || errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &invalid) ||
		errors.As(err, &header) || errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &address) ||
		slices.ContainsFunc(pointless, func(start string) bool { return strings.HasPrefix(err.Error(), start) })
	return a
}
