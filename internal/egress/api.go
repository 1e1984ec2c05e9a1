package egress

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/comporta/comporta/client"
	"github.com/comporta/comporta/config"
)

// An api is one API of others, with what all programs share of it.
type api struct {
	*config.EgressAPI
	transport *client.Transport
	proxy     *httputil.ReverseProxy
	set       map[string]string
	log       *slog.Logger
}

// maxSecret bounds what a file of a header's value may hold.
const maxSecret = 16 << 10

func newAPI(c *config.EgressAPI, limit client.Outbound, carrier http.RoundTripper, log *slog.Logger) (*api, error) {
	set, err := Headers(c)
	if err != nil {
		return nil, err
	}
	a := &api{EgressAPI: c, set: set, log: log.With("api", c.Name)}
	o := c.Client
	o.Transport, o.Limit = carrier, limit
	o.Partition = a.partition
	o.Account = func(req *http.Request) (string, int64) { return a.partition(req), 1 }
	a.transport = client.New(o)
	a.proxy = &httputil.ReverseProxy{
		Rewrite:        a.rewrite,
		Transport:      a.transport,
		FlushInterval:  -1, // streams pass as they come
		ErrorLog:       slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		ModifyResponse: a.tell,
		ErrorHandler:   a.fail,
	}
	return a, nil
}

// Headers are the fields that are set on every request to an API, those from files
// read. No error repeats a value.
func Headers(c *config.EgressAPI) (map[string]string, error) {
	set := map[string]string{}
	var errs []error
	for _, h := range c.Set {
		value := h.Value
		if h.File != "" {
			var err error
			if value, err = readSecret(h.File); err != nil {
				errs = append(errs, fmt.Errorf("api %s, header %s: %w", c.Name, h.Name, err))
			}
		}
		set[h.Name] = value
	}
	return set, errors.Join(errs...)
}

// readSecret reads a value from a file of its own. No error repeats it.
func readSecret(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(b))
	if value == "" || len(b) > maxSecret || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", fmt.Errorf("%s: it holds no value of a header field: one line, not empty, of at most 16 KiB", name)
	}
	return value, nil
}

// partition is whose requests the API counts together: a hash of the field that
// says so, as it is sent.
func (a *api) partition(req *http.Request) string {
	if a.Header == "" {
		return "everyone"
	}
	values := req.Header.Values(a.Header)
	if len(values) == 0 {
		return "nobody"
	}
	sum := sha256.Sum256([]byte(strings.Join(values, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// rewrite makes a program's request the API's. What would tell the API who asked
// inside is gone: ReverseProxy takes Forwarded and X-Forwarded-* out.
func (a *api) rewrite(r *httputil.ProxyRequest) {
	rest := strings.TrimPrefix(r.In.URL.EscapedPath(), strings.TrimSuffix(a.Path, "/"))
	raw := strings.TrimSuffix(a.Upstream.EscapedPath(), "/") + rest
	r.Out.URL = &url.URL{Scheme: a.Upstream.Scheme, Host: a.Upstream.Host, RawQuery: r.In.URL.RawQuery, ForceQuery: r.In.URL.ForceQuery, RawPath: raw}
	r.Out.URL.Path, _ = url.PathUnescape(raw) // it was an escaped path
	r.Out.Host = ""
	r.Out.Header.Del("X-Real-Ip")
	r.Out.Header.Del("Expect")
	if _, said := r.Out.Header["User-Agent"]; !said {
		r.Out.Header["User-Agent"] = nil // and not Go's
	}
	r.Out.Trailer = r.In.Trailer // what it holds is known at the body's end
	for name, value := range a.set {
		r.Out.Header.Set(name, value)
	}
}

func (a *api) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), a.Timeout)
	defer cancel()
	req, err := bound(w, req.WithContext(ctx))
	if err != nil {
		a.log.Warn("bodies cannot be bounded in time", "error", err)
	}
	if err := keepBody(req, a.MaxBody); err != nil {
		a.fail(w, req, err)
		return
	}
	a.proxy.ServeHTTP(w, req)
}

// tell adds to a refusal why it was not tried again. The field is the gateway's: an
// API does not write it.
func (a *api) tell(resp *http.Response) error {
	resp.Header.Del(reasonField)
	if why := client.GaveUp(resp); why != nil {
		resp.Header.Set(reasonField, string(why.Reason))
	}
	return nil
}

// fail answers a request that has no response.
func (a *api) fail(w http.ResponseWriter, req *http.Request, err error) {
	var why *client.RateLimitError
	switch {
	case errors.As(err, &why) && why.Err != nil:
		w.Header().Set(reasonField, string(why.Reason))
		refuse(w, http.StatusServiceUnavailable, "The limit of this API cannot be asked at the moment.", 0)
	case errors.As(err, &why):
		status := http.StatusTooManyRequests
		if why.Reason == client.ReasonThrottle {
			status = http.StatusServiceUnavailable
		}
		w.Header().Set(reasonField, string(why.Reason))
		refuse(w, status, tellReason(why), why.RetryAfter)
	case errors.Is(err, errSlowBody):
		refuse(w, http.StatusRequestTimeout, "The request's body did not come in time.", 0)
	case errors.Is(err, errBrokenBody):
		refuse(w, http.StatusBadRequest, "The request's body is malformed, or ended before its end.", 0)
	case errors.Is(req.Context().Err(), context.DeadlineExceeded) && awaited(req):
		a.fail(w, req, errSlowBody)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(req.Context().Err(), context.DeadlineExceeded):
		refuse(w, http.StatusGatewayTimeout, "The API did not answer in time.", 0)
	case errors.Is(context.Cause(req.Context()), errStopping):
		refuse(w, http.StatusServiceUnavailable, "The gateway stopped before the API answered.", 0)
	case req.Context().Err() != nil:
		w.WriteHeader(499) // the program is gone: nobody reads this
	default:
		a.log.Warn("the API cannot be reached", "error", own(err))
		refuse(w, http.StatusBadGateway, "The API cannot be reached.", 0)
	}
}

// own is what an error says without the words of what answered, which net/http
// repeats where they are no HTTP: they may be what was sent, keys included.
func own(err error) string {
	before, _, theirs := strings.Cut(err.Error(), "malformed")
	if theirs {
		return before + "malformed answer"
	}
	return before
}

// sortByPath puts the longest paths first.
func sortByPath(apis []*api) {
	slices.SortStableFunc(apis, func(a, b *api) int { return len(b.Path) - len(a.Path) })
}
