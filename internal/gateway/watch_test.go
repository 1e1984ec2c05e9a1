package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/comporta/comporta/config"
)

func TestTheNumberOfSeriesDoesNotDependOnClients(t *testing.T) {
	h := serve(t, api(t, hello), `limits:
  - {name: a, per: address, limit: 100/min}
  - {name: b, per: {header: X-Key}, limit: 1/min, mode: shadow}
  - {name: c, match: "/t/{tenant}", per: {path: tenant}, limit: 1000/min}`, newClock())
	c := client(t)
	_, before := get(t, c, h.metrics+"/metrics")
	const strangers = 300
	for i := range strangers {
		unique := fmt.Sprint("tell-tale-", i)
		do(t, c, fmt.Sprint("FOO", i), h.url+"/t/"+unique+"?q="+unique, nil, "X-Key", unique, "User-Agent", unique,
			"Origin", "https://"+unique+".example", "Access-Control-Request-Method", "GET")
	}
	do(t, c, http.MethodOptions, h.url+"/", nil, "Origin", "https://x.example", "Access-Control-Request-Method", "GET")
	ask(t, c, h.url, "/t/tell-tale%2f") // which no limit sees
	_, after := get(t, c, h.metrics+"/metrics")
	if a, b := series(before), series(after); a != b {
		t.Errorf("%d series before, %d after", a, b)
	}
	if len(after) > 1<<20 || strings.Contains(after, "tell-tale") || strings.Contains(after, "FOO") {
		t.Errorf("%d bytes:\n%s", len(after), after)
	}
	for _, line := range []string{
		`comporta_requests_total{verdict="allowed"} 101`, // with the preflight
		`comporta_requests_total{verdict="denied"} 200`,
		`comporta_requests_total{verdict="malformed"} 1`,
		`comporta_decisions_total{decision="denied",limit="a"} 200`,
		`comporta_decisions_total{decision="shadow_denied",limit="b"} 0`,
		`comporta_decisions_total{decision="allowed",limit="preflight"} 1`,
		`comporta_responses_total{class="4xx"} 201`,
		`comporta_requests_in_flight 0`,
	} {
		if !strings.Contains(after, line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, after)
		}
	}
	log := h.access.String()
	if strings.Contains(log, "tell-tale") {
		t.Errorf("the access log has what identifies clients:\n%.2000s", log)
	}
	if !strings.Contains(log, `path=/t/{tenant}`) {
		t.Errorf("the access log has no pattern in the path's place:\n%.2000s", log)
	}
}

// series counts the lines that are a series.
func series(metrics string) (n int) {
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

func TestTheAccessLogTellsWhatHappened(t *testing.T) {
	h := serve(t, api(t, hello), `limits:
  - {name: a, match: GET /a, per: address, limit: 1/min}
  - {name: b, match: GET /a, per: address, limit: 1/min, algorithm: fixed_window}
  - {name: c, per: everyone, limit: 2/min, mode: shadow}`, newClock())
	c := client(t)
	get(t, c, h.url+"/a?token=secret")
	get(t, c, h.url+"/a?token=secret")
	get(t, c, h.url+"/b")
	get(t, c, h.url+"/b")
	get(t, c, h.url+"/"+strings.Repeat("x", 1000))
	get(t, c, h.url+"/x/../%c2%9b31m/%E2%80%AE") // what terminals obey, and what turns text around
	h.stop()
	<-h.ended
	h.ended <- nil
	var got []string
	for line := range strings.Lines(h.access.String()) {
		fields := strings.Fields(line)
		kept := fields[:0]
		for _, f := range fields {
			switch name, _, _ := strings.Cut(f, "="); name {
			case "time", "level", "msg", "bytes", "us", "upstream_us":
			default:
				kept = append(kept, f)
			}
		}
		got = append(got, strings.Join(kept, " "))
	}
	want := []string{
		"client=127.0.0.1 method=GET path=/a status=200 verdict=allowed",
		"client=127.0.0.1 method=GET path=/a status=429 verdict=denied limits=a,b",
		"client=127.0.0.1 method=GET path=/b status=200 verdict=allowed",
		"client=127.0.0.1 method=GET path=/b status=200 verdict=allowed shadow=c",
		"client=127.0.0.1 method=GET path=/" + strings.Repeat("x", 255) + "... status=200 verdict=allowed shadow=c",
		"client=127.0.0.1 method=GET path=/%C2%9B31m/%E2%80%AE status=200 verdict=allowed shadow=c",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A preflight for a path with an identity in it is under the preflight limit
// alone, and still shows whose path it asks for.
func TestTheAccessLogShowsNoIdentityOfAPreflight(t *testing.T) {
	h := serve(t, api(t, hello), "limits:\n  - {name: a, match: \"GET /u/{id}\", per: {path: id}, limit: 9/min}", nil)
	c := client(t)
	do(t, c, http.MethodOptions, h.url+"/u/alice", nil, "Origin", "https://app.example.com", "Access-Control-Request-Method", "GET")
	get(t, c, h.url+"/u/alice")
	h.stop()
	<-h.ended
	h.ended <- nil
	if log := h.access.String(); strings.Contains(log, "alice") || !strings.Contains(log, `path=(preflight)`) || !strings.Contains(log, `path="GET /u/{id}"`) {
		t.Error(log)
	}
}

// Nor does it where the part of the path is counted with others, or in their place.
func TestTheAccessLogShowsNoPartOfAPath(t *testing.T) {
	h := serve(t, api(t, hello), "limits:\n"+
		"  - {name: joined, match: \"GET /u/{id}\", per: {all: [{path: id}, address]}, limit: 9/min}\n"+
		"  - {name: either, match: \"GET /v/{id}\", per: [{header: X-Tenant}, {path: id}], limit: 9/min}\n", nil)
	c := client(t)
	get(t, c, h.url+"/u/alice")
	get(t, c, h.url+"/v/alice")
	h.stop()
	<-h.ended
	h.ended <- nil
	if log := h.access.String(); strings.Contains(log, "alice") || !strings.Contains(log, `path="GET /u/{id}"`) || !strings.Contains(log, `path="GET /v/{id}"`) {
		t.Error(log)
	}
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().String()
	working := serve(t, "http://127.0.0.1:9", generous, nil)
	for _, test := range []struct {
		change func(*config.Server)
		want   string
	}{
		{func(s *config.Server) { s.Listen = busy }, "cannot listen on " + busy + ": another program has the port; choose another one, with --listen or"},
		{func(s *config.Server) { s.Metrics = busy }, "choose another one, with --metrics or"},
		{func(s *config.Server) { s.Listen = "nonsense" }, "cannot listen on nonsense: address nonsense: missing port in address"},
		{func(s *config.Server) { s.Upstream = nil }, "no upstream"},
		{func(s *config.Server) { s.Upstream = &url.URL{Scheme: "ftp", Host: "x"} }, "neither http nor https"},
		{func(s *config.Server) { s.Upstream = &url.URL{Scheme: "http"} }, "has no host"},
		{func(s *config.Server) { s.TLS = &config.TLS{Cert: "nowhere.pem", Key: "nowhere.pem"} }, "nowhere.pem"},
	} {
		o := working.o
		test.change(&o.Server)
		g, err := New(o)
		if err == nil {
			g.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

func TestTheGatewayIsNotItsOwnUpstream(t *testing.T) {
	for _, test := range []struct {
		listens, upstream string
		want              bool
	}{
		{"127.0.0.1:8080", "http://127.0.0.1:8080", true}, {"127.0.0.1:8080", "http://localhost:8080/x", true},
		{"[::]:8080", "http://127.0.0.1:8080", true}, {"[::]:8080", "http://[::1]:8080", true},
		{"127.0.0.1:8080", "http://127.0.0.1:9000", false}, {"127.0.0.1:8080", "http://127.0.0.2:8080", false},
		{"[::]:8080", "http://10.0.0.1:8080", false}, {"127.0.0.1:8080", "http://api.example:8080", false},
	} {
		at, err := net.ResolveTCPAddr("tcp", test.listens)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(test.upstream)
		if err != nil {
			t.Fatal(err)
		}
		if got := isItself(u, at); got != test.want {
			t.Errorf("%s behind %s: %v", test.upstream, test.listens, got)
		}
	}
}

func TestAFaultOfOurOwnEndsOneRequestOnly(t *testing.T) {
	h := serve(t, api(t, hello), generous, nil)
	broken := h.desk(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault") }))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: broken}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	if _, err := client(t).Get("http://" + l.Addr().String()); err == nil {
		t.Error("it was answered")
	}
	if log := h.log.String(); !strings.Contains(log, `fault="a fault"`) || !strings.Contains(log, "watch_test.go:") {
		t.Errorf("the log does not tell of it:\n%s", log)
	}
	if s := status(t, client(t), h.url+"/"); s != http.StatusOK {
		t.Errorf("afterwards: %d", s)
	}
}

// A request over a limit that demotes goes on, and the log says over which.
func TestTheLogSaysOverWhichLimitsARequestIs(t *testing.T) {
	var told atomic.Value
	h := serve(t, api(t, func(_ http.ResponseWriter, r *http.Request) { told.Store(r.Header.Get("Comporta-Demoted")) }),
		"limits: [{name: soft, per: address, limit: 1/h, on_limit: demote}]", newClock())
	c := client(t)
	for range 2 {
		if got := status(t, c, h.url+"/", "Comporta-Demoted", "forged", "Comporta_Demoted", "forged"); got != http.StatusOK {
			t.Errorf("status %d", got)
		}
	}
	h.stop()
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
	h.ended <- nil
	if told.Load() != "soft" || strings.Count(h.access.String(), "over=soft") != 1 || strings.Contains(h.access.String(), "shadow=") {
		t.Errorf("the upstream was told %q, the log:\n%s", told.Load(), h.access)
	}
}
