package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A counted body knows how often it was made and closed.
type counted struct {
	io.Reader
	made, closed *atomic.Int64
}

func count(r io.Reader, made, closed *atomic.Int64) io.ReadCloser {
	made.Add(1)
	return &counted{r, made, closed}
}

func (c *counted) Close() error {
	if c.made != nil {
		c.closed.Add(1)
		c.made = nil
	}
	return nil
}

// upload is a POST of a megabyte, as a stream.
func upload(t *testing.T, made, closed *atomic.Int64, replay bool) (*http.Request, []byte) {
	t.Helper()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	req, err := http.NewRequest("POST", "http://api.test/", count(bytes.NewReader(data), made, closed))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(data))
	if replay {
		req.GetBody = func() (io.ReadCloser, error) { return count(bytes.NewReader(data), made, closed), nil }
	}
	return req, data
}

// A POST without a key: sent again after a 429 where that is switched on, with
// all of its body; after a 503, or lost, never. Every body is closed.
func TestUploads(t *testing.T) {
	for _, c := range []struct {
		name     string
		status   int
		replay   bool
		refused  bool // RetryRefused
		expect   int64
		attempts int
	}{
		{"refused", 429, true, true, -1, 2},
		{"refused before the upload", 429, true, true, 0, 2},
		{"refused, not switched on", 429, true, false, 0, 1},
		{"refused, no way to send it again", 429, false, true, 0, 1},
		{"overloaded", 503, true, true, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var made, closed atomic.Int64
			var sums [][32]byte
			inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 1 && c.expect == 0 { // before the body is read: the client holds it back
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(c.status)
					return
				}
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				sums = append(sums, sha256.Sum256(b))
				if n == 1 {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(c.status)
				}
			}, func(s *rig) {
				o := steady()
				o.RetryRefused, o.ExpectAbove = c.refused, c.expect
				h, _ := s.client(o)
				req, data := upload(t, &made, &closed, c.replay)
				resp, err := h.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				synctest.Wait()
				if c.attempts == 1 {
					s.want(0)
				} else {
					s.want(0, time.Second)
				}
				for _, sum := range sums {
					if sum != sha256.Sum256(data) {
						t.Error("the bodies are not the same")
					}
				}
				if c.attempts == 2 && resp.StatusCode != 200 || c.attempts == 1 && GaveUp(resp).Reason != ReasonUnsafe {
					t.Error(resp.StatusCode, GaveUp(resp))
				}
			})
			if made.Load() != int64(c.attempts) || closed.Load() != made.Load() {
				t.Errorf("%d bodies, %d of them closed; want %d", made.Load(), closed.Load(), c.attempts)
			}
		})
	}
}

// A client's timeout after the body was sent: the server may have acted.
func TestLostUploadIsNotSentAgain(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, func(s *rig) {
		o := steady()
		o.RetryRefused = true
		s.wire.ResponseHeaderTimeout = 5 * time.Second
		h, _ := s.client(o)
		var made, closed atomic.Int64
		req, _ := upload(t, &made, &closed, true)
		_, err := h.Do(req)
		var why *RateLimitError
		if err == nil || errors.As(err, &why) {
			t.Error(err)
		}
		synctest.Wait()
		s.want(0)
		if made.Load() != 1 || closed.Load() != 1 {
			t.Error(made.Load(), closed.Load())
		}
	})
}

// A server that answers while the body is still being sent, with no Expect: what
// was refused is sent again whole, and the first body is closed.
func TestRefusedWhileUploading(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			io.CopyN(io.Discard, r.Body, 1000)
			w.Header().Set("Retry-After", "2")
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		b, err := io.ReadAll(r.Body)
		if len(b) != 1<<20 || err != nil {
			t.Error(len(b), err)
		}
	}, func(s *rig) {
		o := steady()
		o.RetryRefused, o.ExpectAbove = true, -1
		h, _ := s.client(o)
		var made, closed atomic.Int64
		req, _ := upload(t, &made, &closed, true)
		resp, err := h.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		synctest.Wait()
		if came := s.arrivals(); len(came) != 2 || came[1] < 2*time.Second || made.Load() != 2 || closed.Load() != 2 {
			t.Error(came, made.Load(), closed.Load())
		}
	})
}

// Where the body cannot be got again, what there is comes back.
func TestGetBodyFails(t *testing.T) {
	inBubble(t, tell(1, retryIn("1")), func(s *rig) {
		o := steady()
		o.RetryRefused = true
		h, _ := s.client(o)
		var made, closed atomic.Int64
		req, _ := upload(t, &made, &closed, true)
		gone := errors.New("the file is gone")
		req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		resp, err := h.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if why := GaveUp(resp); string(b) != "slow down" || err != nil || why.Reason != ReasonUnsafe || !errors.Is(why, gone) || why.RetryAfter != time.Second {
			t.Errorf("%q, %v; %v", b, err, why)
		}
		s.want(0)
		synctest.Wait()
		if closed.Load() != 1 {
			t.Error("the body was not closed")
		}
	})
}

// A body is closed even where nothing is sent.
func TestBodyOfWhatIsNotSent(t *testing.T) {
	inBubble(t, tell(1, retryIn("600")), func(s *rig) {
		h, _ := s.client(steady())
		s.get(h, "http://api.test/")
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		for _, ctx := range []context.Context{context.Background(), ended} {
			var made, closed atomic.Int64
			req, _ := upload(t, &made, &closed, true)
			if _, err := h.Do(req.WithContext(ctx)); err == nil || closed.Load() != 1 {
				t.Error(err, closed.Load())
			}
		}
		s.want(0)
	})
}

// Refusals with bodies without end, or without an end in time, hold nobody up;
// short ones free their connection for the next attempt.
func TestHostileBodies(t *testing.T) {
	for _, c := range []struct {
		name  string
		body  func(w io.Writer, flush func(), r *http.Request)
		json  bool
		most  time.Duration // until the second attempt, over the second that was told
		conns int
	}{
		{"short", func(w io.Writer, _ func(), _ *http.Request) { io.WriteString(w, "slow down") }, false, 0, 1},
		{"endless and fast", func(w io.Writer, flush func(), _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 1<<10))
			}
		}, false, 0, 2},
		{"endless and slow", func(w io.Writer, flush func(), r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, ".")
				flush()
				time.Sleep(100 * time.Millisecond)
			}
		}, true, time.Second, 2},
		{"never", func(w io.Writer, flush func(), r *http.Request) {
			flush()
			<-r.Context().Done()
		}, true, time.Second, 2},
		{"cut short", func(w io.Writer, flush func(), _ *http.Request) {
			io.WriteString(w, "slow")
			flush()
			panic(http.ErrAbortHandler)
		}, false, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			conns, ended := 0, time.Time{}
			inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 1 {
					w.Header().Set("Retry-After", "1")
					if c.json {
						w.Header().Set("Content-Type", "application/json")
					}
					w.WriteHeader(http.StatusTooManyRequests)
					defer func() { ended = time.Now() }()
					c.body(w, w.(http.Flusher).Flush, r)
				}
			}, func(s *rig) {
				dial := s.wire.DialContext
				s.wire.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conns++
					return dial(ctx, network, addr)
				}
				h, _ := s.client(steady())
				resp, _ := s.get(h, "http://api.test/")
				came := s.arrivals()
				if ended.Sub(s.began) > c.most+100*time.Millisecond {
					t.Errorf("the first was let go after %v; want %v", ended.Sub(s.began), c.most)
				}
				if resp.StatusCode != 200 || len(came) != 2 || came[1] < time.Second || came[1] > time.Second+c.most || conns != c.conns {
					t.Errorf("%d, %v, %d connections", resp.StatusCode, came, conns)
				}
			})
		})
	}
}

// While the body of a refusal is still coming, the gate is shut already.
func TestGateHearsTheHeader(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			w.Header().Set("Retry-After", "5")
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusTooManyRequests)
			w.(http.Flusher).Flush()
			time.Sleep(900 * time.Millisecond)
			io.WriteString(w, `{"retry_after": 7}`)
		}
	}, func(s *rig) {
		var gates atomic.Int64
		o := steady()
		o.Observe = func(e Event) {
			if e.What == GateShut {
				gates.Add(1)
			}
		}
		h, tr := s.client(o)
		go s.get(h, "http://api.test/")
		time.Sleep(100 * time.Millisecond)
		s.get(h, "http://api.test/")
		// The body told 7 s, from when the header came.
		if came := s.arrivals(); came[1] < 7*time.Second || came[1] > 7100*time.Millisecond || gates.Load() != 2 || tr.Stats().Gates != 2 {
			t.Error(came, gates.Load(), tr.Stats())
		}
		time.Sleep(time.Minute)
	})
}

// The last word comes back with all of its body, also where the beginning was read,
// and its reason through an http.Client with a Timeout.
func TestLastWordIsReadable(t *testing.T) {
	large := strings.Repeat("x", 200<<10)
	for _, kind := range []string{"text/plain", "application/json"} {
		inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, large)
		}, func(s *rig) {
			h, _ := s.client(steady())
			h.Timeout = time.Hour
			resp, body := s.get(h, "http://api.test/x")
			why := GaveUp(resp)
			if body != large || why == nil || why.Reason != ReasonAttempts || why.Attempts != 3 || resp.Request.URL.Path != "/x" {
				t.Error(kind, len(body), why)
			}
		})
	}
}

// A body that is cut short while the caller reads it is the caller's affair.
func TestCutShortWhileReading(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}, func(s *rig) {
		h, _ := s.client(steady())
		resp, err := h.Get("http://api.test/")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(string(b), err)
		}
		s.want(0)
	})
}

// A request is not changed, and each attempt has a context that ends when its body
// is closed or read to the end.
func TestAttemptsAreCopies(t *testing.T) {
	var contexts []context.Context
	o := steady()
	o.AttemptHeader = "X-Retry-Attempt"
	var seen []string
	o.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
		contexts = append(contexts, req.Context())
		seen = append(seen, req.Header.Get("X-Retry-Attempt"))
		req.Header.Set("X-Mine", "1")
		req.URL.Path = "/changed"
		status := 503
		if len(contexts) == 2 {
			status = 200
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("body"))}, nil
	})
	synctest.Test(t, func(t *testing.T) {
		req, _ := http.NewRequest("GET", "http://api.test/path", nil)
		resp, err := New(o).RoundTrip(req)
		if err != nil || len(contexts) != 2 || len(req.Header) != 0 || req.URL.Path != "/path" || resp.Request != req || seen[0] != "" || seen[1] != "2" {
			t.Fatal(err, req, seen)
		}
		if contexts[0].Err() == nil || contexts[1].Err() != nil {
			t.Error("of the refused attempt the context goes on, or that of the last has ended")
		}
		io.ReadAll(resp.Body)
		if contexts[1].Err() == nil {
			t.Error("the context goes on though the body was read")
		}
	})
}

// Transports that return nothing useful.
func TestStrangeTransports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := steady()
		o.Attempts = 1
		o.Transport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, nil })
		req, _ := http.NewRequest("GET", "http://api.test/", nil)
		if _, err := New(o).RoundTrip(req); err == nil {
			t.Error("nothing is no error")
		}
		o.Transport = roundTrip(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 429}, nil })
		resp, err := New(o).RoundTrip(req)
		if err != nil || resp.Body == nil || GaveUp(resp) == nil {
			t.Error(resp, err)
		}
		if _, err := New(o).RoundTrip(&http.Request{}); err == nil {
			t.Error("no URL is no error")
		}
		tr := New(Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) { panic("lost") })})
		func() {
			defer func() { recover() }()
			tr.RoundTrip(req)
		}()
		if l := tr.hosts["api.test"].lines[""]; l.users != 0 || !l.lane.Idle(now()) {
			t.Error("a panic leaves its attempt under way")
		}
	})
}

// A connection that was upgraded is the caller's, both ways.
func TestUpgrade(t *testing.T) {
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		rw.WriteString("heard " + line)
		rw.Flush()
	}, func(s *rig) {
		o := steady()
		o.RetryRefused = true
		h, _ := s.client(o)
		for _, status := range []int{429, 101} {
			req, _ := http.NewRequest("GET", "http://api.test/", nil)
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			resp, err := h.Do(req)
			time.Sleep(10 * time.Second)
			if err != nil || resp.StatusCode != status {
				t.Fatal(resp, err)
			}
			if status == 101 {
				rw := resp.Body.(io.ReadWriteCloser)
				io.WriteString(rw, "hello\n")
				b, _ := io.ReadAll(rw)
				if string(b) != "heard hello\n" {
					t.Errorf("%q", b)
				}
				if _, ok := rw.(interface{ CloseWrite() error }); !ok {
					t.Error("it cannot be half closed")
				}
			}
			resp.Body.Close()
		}
		s.want(0, 10*time.Second) // a 429 to an upgrade is not tried again
	})
}

// A server that does not know Expect gets the request without it, at once.
func TestExpectationFailed(t *testing.T) {
	var expects []string
	inBubble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		expects = append(expects, r.Header.Get("Expect"))
		if r.Header.Get("Expect") != "" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		if b, err := io.ReadAll(r.Body); len(b) != 1<<20 || err != nil {
			t.Error(len(b), err)
		}
	}, func(s *rig) {
		h, tr := s.client(steady())
		var made, closed atomic.Int64
		req, _ := upload(t, &made, &closed, true)
		resp, err := h.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		synctest.Wait()
		s.want(0, 0)
		if stats := tr.Stats(); expects[0] != "100-continue" || stats.Attempts != 1 || stats.Resent != 1 || closed.Load() != 2 {
			t.Error(expects, stats, closed.Load())
		}
	})
}
