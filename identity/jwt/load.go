package jwt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// maxSet is the most bytes of a key set or a secret's file.
const maxSet = 1 << 20

// Load reads the keys, the first time and whenever they may have changed. Keys that
// are as before change nothing; others replace the old ones at once, and what was
// remembered with them. An error leaves the old keys in use and says where and what.
//
// A file with one broken key is an error; of a URL's set, which is not ours to mend,
// the whole keys are taken and Stats tells of the others.
func (s *Source) Load(ctx context.Context) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	problem, err := s.load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem = err; err == nil {
		s.loaded, s.problem = s.o.Now(), problem
	}
	return err
}

func (s *Source) load(ctx context.Context) (problem, err error) {
	where, read := "the key set "+s.o.File, s.readFile
	switch {
	case s.o.SecretFile != "":
		where = "the secret of tokens " + s.o.SecretFile
	case s.o.URL != nil:
		public := url.URL{Scheme: s.o.URL.Scheme, Host: s.o.URL.Host, Path: s.o.URL.Path} // a query may be a secret
		where, read = "the key set "+public.String(), s.fetch
	}
	data, err := read(ctx)
	if err == nil {
		problem, err = s.use(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return problem, nil
}

// use makes what was read the keys.
func (s *Source) use(data []byte) (problem, err error) {
	sum := digest(sha256.Sum256(data))
	var keys []key
	if s.o.SecretFile != "" {
		keys, err = readSecret(data)
	} else {
		keys, problem, err = readSet(data, s.o.Algorithms, s.o.File != "")
		if s.o.File != "" && err == nil {
			problem, err = nil, problem
		}
	}
	if err != nil {
		return nil, err
	}
	if old := s.ring.Load(); old == nil || old.sum != sum {
		s.ring.Store(&ring{sum, keys, newCache(s.o.MaxCached)})
	}
	return problem, nil
}

func readSecret(data []byte) ([]key, error) {
	secret := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if len(secret) < MinSecret {
		return nil, tooShort(len(secret))
	}
	return []key{{algorithms: []string{"HS256"}, value: []byte(secret)}}, nil
}

func (s *Source) readFile(context.Context) ([]byte, error) {
	file, err := os.Open(s.o.File + s.o.SecretFile) // one of them is ""
	if err != nil {
		return nil, reasonOf(err)
	}
	defer file.Close()
	return bounded(file)
}

// fetch asks the URL. It follows nobody elsewhere.
func (s *Source) fetch(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.o.URL.String(), nil)
	if err != nil {
		return nil, reasonOf(err)
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, reasonOf(err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		return nil, fmt.Errorf("it answers %d, but redirects are not followed: name the URL where the keys are", response.StatusCode)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers %d instead of 200", response.StatusCode)
	}
	return bounded(response.Body)
}

func bounded(from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxSet+1))
	switch {
	case err != nil:
		return nil, reasonOf(err)
	case len(data) > maxSet:
		return nil, fmt.Errorf("it is larger than %d bytes", maxSet)
	}
	return data, nil
}

// reasonOf leaves out of an error where it happened, which is said already.
func reasonOf(err error) error {
	if e, is := errors.AsType[*url.Error](err); is {
		return e.Err
	}
	if e, is := errors.AsType[*fs.PathError](err); is {
		return e.Err
	}
	return err
}

// client asks the URL. It keeps no connection: there are minutes between two askings.
func (o *Options) client() *http.Client {
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DisableKeepAlives:      true,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    o.Timeout,
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
