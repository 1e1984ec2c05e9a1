package callers

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// An exchange is one attempt as it passed between client and gateway.
type exchange struct {
	at   time.Time // when the request was there
	left time.Time // when the answer left for the client; zero: there was none
	// ok and refused are what the answer was; told is a refusal's time to wait, and
	// never a refusal without one.
	ok, refused, never bool
	told               time.Duration
	wrong              string // what is wrong with a refusal
}

// A tap stands between a client and the gateway and changes nothing: it copies
// bytes and keeps them, with the instant of each piece. A request's instant is
// taken when it has been read, an answer's before it is passed on: so what lies
// between them is never shorter than what the client waited, and whoever is found
// to be early was.
type tap struct {
	l    net.Listener
	mu   sync.Mutex
	wire []*wire
}

// A wire is a connection's two directions.
type wire struct{ up, down stream }

// A stream is what went one way; the pieces' ends and instants go together.
type stream struct {
	text []byte
	ends []int
	when []time.Time
}

// at is when the byte at an offset passed.
func (s *stream) at(offset int) time.Time {
	i, _ := slices.BinarySearch(s.ends, offset+1)
	return s.when[min(i, len(s.when)-1)]
}

// openTap listens for one client and passes on to an address.
func openTap(t *testing.T, to string) *tap {
	t.Helper()
	p := &tap{l: listen(t)}
	t.Cleanup(func() { p.l.Close() })
	go func() {
		for {
			c, err := p.l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			w := new(wire)
			p.mu.Lock()
			p.wire = append(p.wire, w)
			p.mu.Unlock()
			go p.pass(&w.up, s, c)
			go p.pass(&w.down, c, s)
		}
	}()
	return p
}

func (p *tap) pass(kept *stream, to, from net.Conn) {
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			p.mu.Lock()
			kept.text = append(kept.text, piece[:n]...)
			kept.ends, kept.when = append(kept.ends, len(kept.text)), append(kept.when, time.Now())
			p.mu.Unlock()
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// exchanges are what has passed so far, in the order of the requests.
func (p *tap) exchanges() (all []exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wire {
		all = append(all, w.exchanges()...)
	}
	slices.SortFunc(all, func(a, b exchange) int { return a.at.Compare(b.at) })
	return all
}

// exchanges reads HTTP/1.1 from both directions, as far as it is whole.
func (w *wire) exchanges() (all []exchange) {
	ups, downs := bytes.NewReader(w.up.text), bytes.NewReader(w.down.text)
	up, down := bufio.NewReader(ups), bufio.NewReader(downs)
	for {
		start := len(w.up.text) - ups.Len() - up.Buffered()
		r, err := http.ReadRequest(up)
		if err != nil {
			return all
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return all
		}
		e := exchange{at: w.up.at(start)}
		start = len(w.down.text) - downs.Len() - down.Buffered()
		res, err := http.ReadResponse(down, r)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		if err == nil {
			e.left = w.down.at(start)
			e.read(res)
		}
		all = append(all, e)
	}
}

func (e *exchange) read(res *http.Response) {
	e.ok = res.StatusCode == http.StatusOK
	e.refused = res.StatusCode == http.StatusTooManyRequests
	if !e.refused {
		return
	}
	lines := res.Header.Values("Retry-After")
	switch len(lines) {
	case 0:
		e.never = true
		return
	case 1:
	default:
		e.wrong = "it has more than one Retry-After"
		return
	}
	seconds, err := strconv.Atoi(lines[0])
	if err != nil || seconds < 1 {
		e.wrong = "its Retry-After is " + lines[0]
	}
	e.told = time.Duration(seconds) * time.Second
}

// Whom the tap accuses is guilty, and what it copies is what was sent.
func TestTheTapSeesWhatPasses(t *testing.T) {
	l := listen(t)
	var n int
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 2 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = io.Copy(w, r.Body)
	})}
	go server.Serve(l)
	defer server.Close()
	p := openTap(t, l.Addr().String())
	before := time.Now()
	for _, text := range []string{"a", "bb", "ccc"} {
		res, err := http.Post("http://"+p.l.Addr().String()+"/", "text/plain", bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(got) != text {
			t.Errorf("%q came back as %q, %v", text, got, err)
		}
	}
	all := p.exchanges()
	if len(all) != 3 || !all[0].ok || !all[1].refused || all[1].told != 7*time.Second || all[1].wrong != "" || !all[2].ok {
		t.Fatalf("%+v", all)
	}
	last := before
	for i, e := range all {
		if e.at.Before(last) || e.left.Before(e.at) || e.left.After(time.Now()) {
			t.Errorf("exchange %d: %v to %v, after %v", i, e.at, e.left, last)
		}
		last = e.left
	}
	if early := earliness(all); early < 6*time.Second {
		t.Errorf("who came back at once is early by %v", early)
	}
}
