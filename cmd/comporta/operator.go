package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/comporta/comporta/internal/admin"
)

// operatorFlags say where the administration of a running gateway is.
type operatorFlags struct {
	Config    string `short:"c" placeholder:"FILE" help:"The policy file, which names the administration and its token file."`
	Admin     string `placeholder:"URL" help:"Where it is, like http://127.0.0.1:9902 or unix:/run/comporta/admin.sock (default: the file's)."`
	TokenFile string `placeholder:"FILE" help:"The file of the token (default: the policy file's)."`
	JSON      bool   `name:"json" help:"Print the answer as JSON."`
}

// An operator talks to the administration of a running gateway.
type operator struct {
	client http.Client
	url    string
	token  string
	json   bool
	out    io.Writer
}

// patience is how long an answer may take.
const patience = 10 * time.Second

// open finds the administration.
func (f *operatorFlags) open(std *streams) (*operator, error) {
	at, file := f.Admin, f.TokenFile
	if f.Config != "" {
		cfg, err := load(f.Config, std)
		if err != nil {
			return nil, err
		}
		said := cfg.Server.Admin
		if said == nil && (at == "" || file == "") {
			return nil, fmt.Errorf("%s has no administration: add server: {admin: {listen: 127.0.0.1:9902, token_file: admin.token}}", f.Config)
		}
		if at == "" {
			at = said.Listen
		}
		if file == "" {
			file = said.TokenFile
		}
	}
	if at == "" || file == "" {
		return nil, errors.New("where is the administration? give -c FILE, or --admin URL and --token-file FILE")
	}
	token, err := admin.ReadToken(file)
	if err != nil {
		return nil, err
	}
	o := &operator{client: http.Client{Timeout: patience}, token: token, json: f.JSON, out: std.Out}
	transport := &http.Transport{} // no proxy of the environment gets the token
	o.client.Transport = transport
	o.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if path, unix := strings.CutPrefix(at, "unix:"); unix {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		o.url = "http://localhost"
		return o, nil
	}
	o.url, err = adminURL(at)
	return o, err
}

// adminURL is where an administration is that listens at host:port, or has a URL.
func adminURL(at string) (string, error) {
	if !strings.Contains(at, "://") {
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			return "", fmt.Errorf("--admin %s: write it like http://127.0.0.1:9902 or unix:/run/comporta/admin.sock", at)
		}
		if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
			host = "localhost" // it listens everywhere: here too
		}
		at = "http://" + net.JoinHostPort(host, port)
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("--admin is no http or https URL: write it like http://127.0.0.1:9902")
	}
	return u.Scheme + "://" + u.Host, nil
}

// ask sends a request and reads the answer. It reports whether the answer was
// printed already, as JSON.
func (o *operator) ask(ctx context.Context, method, path string, body, into any) (printed bool, err error) {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return false, err
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, o.url+path, sent)
	if err != nil {
		return false, err
	}
	r.Header.Set("Authorization", "Bearer "+o.token)
	w, err := o.client.Do(r)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return false, fmt.Errorf("the administration cannot be reached: is the gateway running, with server.admin? %w", err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(io.LimitReader(w.Body, 16<<20))
	if err != nil {
		return false, fmt.Errorf("the administration's answer was cut off: %w", err)
	}
	if w.StatusCode != http.StatusOK {
		var problem struct{ Detail string }
		if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
			return false, fmt.Errorf("%s answers with status %d: is that the administration?", o.url, w.StatusCode)
		}
		return false, errors.New(printable(strings.TrimSuffix(problem.Detail, ".")))
	}
	if o.json {
		_, err = o.out.Write(text)
		return true, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("%s answers with something else: is that the administration?", o.url)
	}
	return false, nil
}

// printable is a text without what a terminal obeys: names come from clients.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// inWords is a time in seconds as people say it, rounded up: 42s, 4m10s, 3d 4h.
func inWords(seconds float64) string {
	const day = 24 * time.Hour
	d := (time.Duration(seconds*float64(time.Second)) + time.Second - 1).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
}

// grouped is a number with its thousands apart: 1,234,567.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
