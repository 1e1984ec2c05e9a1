package keysource

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/comporta/comporta/identity"
)

const (
	// parameter is what the sum is asked for by.
	parameter = "sha256"
	// longest bounds a look-up whose context has no deadline.
	longest = 10 * time.Second
	// connections is how many there are to the server, whatever is asked at a time.
	connections = 64
	maxToken    = 8 << 10
)

// HTTPOptions are what a look-up by HTTP may be told.
type HTTPOptions struct {
	// TokenFile holds the token that is sent as Authorization: Bearer; "" sends none.
	// It is read for each look-up, so that it can be changed at any time.
	TokenFile string
	// Transport asks the server; nil is one of our own, with the system's proxy and
	// certificates.
	Transport http.RoundTripper
}

// NewHTTP looks keys up with GET at a URL, which is https, or http on the loopback
// alone; sha256=… is added to its query. 200 with the JSON is a key, 404 an unknown one;
// anything else is an error, a redirect too. It opens nothing, but the token's file
// has to be there.
func NewHTTP(u *url.URL, o HTTPOptions) (identity.Lookup, error) {
	if err := problem(u); err != nil {
		return nil, err
	}
	s := &server{url: *u, tokenFile: o.TokenFile, client: client(o.Transport)}
	if _, err := s.token(); err != nil {
		return nil, err
	}
	return s.lookup, nil
}

func problem(u *url.URL) error {
	switch {
	case u.User != nil:
		return errors.New("the URL of the API keys holds a name or password: give a token in a file")
	case u.Hostname() == "":
		return errors.New("the URL of the API keys has no host: write it whole, as https://keys.example.com/find")
	case u.Fragment != "":
		return errors.New("the URL of the API keys has a fragment (#), which servers are not sent: leave it out")
	case u.Query().Has(parameter):
		return errors.New("the URL of the API keys has sha256 in its query, which is where the key is asked for: leave it out")
	case u.Scheme == "https" || u.Scheme == "http" && identity.IsLoopback(u.Hostname()):
		return nil
	}
	return errors.New("the URL of the API keys is not https: who can change the answer on its way can make every key good (http is for the loopback alone)")
}

func client(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			ForceAttemptHTTP2:      true,
			MaxConnsPerHost:        connections,
			MaxIdleConnsPerHost:    connections,
			IdleConnTimeout:        time.Minute,
			TLSHandshakeTimeout:    longest,
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return &http.Client{
		Transport:     transport,
		Timeout:       longest,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// server is one that is asked for keys.
type server struct {
	url       url.URL
	tokenFile string
	client    *http.Client
}

func (s *server) lookup(ctx context.Context, sum [32]byte) (identity.Key, bool, error) {
	key, known, err := s.ask(ctx, sum)
	if err != nil {
		// The query is left out: it holds the sum, and maybe a secret of the operator's.
		return identity.Key{}, false, fmt.Errorf("the API keys of %s://%s: %w", s.url.Scheme, s.url.Host, err)
	}
	return key, known, nil
}

func (s *server) ask(ctx context.Context, sum [32]byte) (key identity.Key, known bool, err error) {
	token, err := s.token()
	if err != nil {
		return key, false, err
	}
	u := s.url
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += parameter + "=" + hex.EncodeToString(sum[:])
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return key, false, bare(err)
	}
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return key, false, bare(err)
	}
	defer response.Body.Close()
	// Of every answer the body is read, so that the connection is used again.
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch status := response.StatusCode; {
	case status == http.StatusNotFound:
		return key, false, nil
	case status >= 300 && status < 400:
		return key, false, fmt.Errorf("it answers %d, but redirects are not followed: name the URL where the keys are", status)
	case status != http.StatusOK:
		return key, false, fmt.Errorf("it answers %d instead of 200 or 404", status)
	case err != nil:
		return key, false, bare(err)
	}
	key, err = parse(data)
	return key, err == nil, err
}

// token reads the token's file.
func (s *server) token() (string, error) {
	if s.tokenFile == "" {
		return "", nil
	}
	file, err := os.Open(s.tokenFile)
	if err != nil {
		return "", fmt.Errorf("the token: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || len(data) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the token: %s holds none: one line of letters, digits and signs, without blanks", s.tokenFile)
	}
	return token, nil
}

// bare leaves the URL out of an error.
func bare(err error) error {
	if e, is := errors.AsType[*url.Error](err); is {
		return e.Err
	}
	return err
}
