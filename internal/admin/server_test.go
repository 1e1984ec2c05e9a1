package admin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOnlyTheTokenLetsIn(t *testing.T) {
	h := newHouse(t).open()
	for _, shown := range [][]string{
		nil, {""}, {"Bearer"}, {"Bearer "}, {secretToken}, {"Basic " + secretToken}, {"Bearer " + secretToken + "x"},
		{"Bearer " + secretToken[1:]}, {"Bearer ann " + secretToken}, {"Bearer " + secretToken, "Bearer " + secretToken},
	} {
		for _, path := range []string{"/v1/top", "/v1/openapi.json", "/nothing", "/"} {
			r := h.request("GET", path, "")
			r.Header["Authorization"] = shown
			if len(shown) > 1 {
				path += " twice"
			}
			status, body, header := h.do(r)
			if status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
				t.Errorf("%s with %q: %d %s", path, shown, status, body)
			}
			if header.Get("WWW-Authenticate") == "" && status == http.StatusUnauthorized {
				t.Errorf("%s with %q: no challenge", path, shown)
			}
		}
	}
	if log := h.log.String(); !strings.Contains(log, "a wrong administration token was tried") || strings.Contains(log, "correct-horse") {
		t.Errorf("the log:\n%s", log)
	}
}

// Wrong tokens are limited, and while they are the right one does not help: it
// may be the next guess.
func TestWrongTokensAreLimited(t *testing.T) {
	h := newHouse(t).open()
	wrong := h.request("GET", "/v1/top", "")
	wrong.Header.Set("Authorization", "Bearer "+otherToken)
	var last int
	for range 11 {
		last, _, _ = h.do(wrong)
	}
	status, _, header := h.do(h.request("GET", "/v1/top", ""))
	if last != http.StatusTooManyRequests || status != http.StatusTooManyRequests || header.Get("Retry-After") != "6" {
		t.Errorf("the eleventh wrong one: %d; the right one then: %d, Retry-After %s", last, status, header.Get("Retry-After"))
	}
	if n := strings.Count(h.log.String(), "a wrong administration token"); n != 10 {
		t.Errorf("told %d times", n)
	}
}

func TestTriesAreForgiven(t *testing.T) {
	tries, err := newTries()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	peer := peerOf(&http.Request{RemoteAddr: "[2001:db8::1]:99"})
	for range 10 {
		tries.count(peer, at)
	}
	if d := tries.wait(peerOf(&http.Request{RemoteAddr: "[2001:db8::2]:9"}), at); d != 6*time.Second {
		t.Errorf("the same /64 waits %v", d)
	}
	if d := tries.wait(peerOf(&http.Request{RemoteAddr: "10.0.0.1:9"}), at); d != 0 {
		t.Errorf("another peer waits %v", d)
	}
	if d := tries.wait(peer, at.Add(6*time.Second)); d != 0 {
		t.Errorf("after six seconds it waits %v", d)
	}
	for i := range mostPeers + 10 {
		tries.count(peerOf(&http.Request{RemoteAddr: fmt.Sprintf("10.%d.%d.1:9", i/256, i%256)}), at)
	}
	if n := len(tries.peers); n > mostPeers {
		t.Errorf("%d peers are remembered", n)
	}
}

// The file is read for each request: a token that was changed is in force at once,
// and without a file nobody comes in.
func TestTheTokenFileIsFollowed(t *testing.T) {
	h := newHouse(t).open()
	h.ask("GET", "/v1/top", "", 200, nil)
	h.file("admin.token", otherToken+"\n")
	h.ask("GET", "/v1/top", "", 401, nil)
	h.file("admin.token", "# ann and bob\nann "+otherToken+"\nbob "+secretToken)
	h.ask("GET", "/v1/top", "", 200, nil)
	for _, bad := range []string{"", "short\n", "one two three-and-that-is-long\n", strings.Repeat("#\n", longestTokens)} {
		h.file("admin.token", bad)
		h.ask("GET", "/v1/top", "", 503, nil)
	}
	if err := os.Remove(h.said.TokenFile); err != nil {
		t.Fatal(err)
	}
	h.ask("GET", "/v1/top", "", 503, nil)
	if log := h.log.String(); strings.Contains(log, "short\\n") || strings.Contains(log, "that-is-long") || !strings.Contains(log, "cannot be read") {
		t.Errorf("the log:\n%s", log)
	}
}

func TestForeignHostsAreTurnedAway(t *testing.T) {
	h := newHouse(t).open()
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:1": 200, "localhost": 200, "LOCALHOST.:80": 200, "[::ffff:127.0.0.1]:5": 200,
		"evil.example": 421, "127.0.0.2": 421, "localhost.evil.example": 421, "127.0.0.1.nip.io": 421, "[::1]": 421, "": 400,
	} {
		conn, err := net.Dial("tcp", h.server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /v1/top HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", host, secretToken)
		w, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%q: %v", host, err)
		}
		if w.StatusCode != want && !(host == "" && w.StatusCode == 421) {
			t.Errorf("%q: %d, want %d", host, w.StatusCode, want)
		}
		conn.Close()
	}
	r := h.request("GET", "/v1/top", "")
	r.Host = "evil.example"
	for range 30 {
		h.do(r)
	}
	if n := strings.Count(h.log.String(), "another host"); n != 10 {
		t.Errorf("the log heard of it %d times", n)
	}
}

func TestHostsOfAllAddresses(t *testing.T) {
	l, names, err := listen("0.0.0.0:0")
	if err != nil {
		t.Skip(err)
	}
	l.Close()
	for host, want := range map[string]bool{"192.0.2.7:9902": true, "localhost": true, "gateway.internal": false} {
		if names.allow(host) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
}

func TestHostileRequests(t *testing.T) {
	h := newHouse(t).open()
	h.ask("POST", "/v1/reset", `{"who":"`+strings.Repeat("a", mostBody)+`"}`, 413, nil)
	for _, body := range []string{"", "null and more", "[]", `{"who":1}`, `{"unknown":true}`, `{"who":"everyone","why":"x"} {}`, "{", strings.Repeat("[", 50_000)} {
		h.ask("POST", "/v1/reset", body, 400, nil)
	}
	for _, path := range []string{"/", "/v1", "/v1/identities/", "/v1/identities/a/b", "/v2/top", "/v1/top/", "/v1/overrides/x/y", "/metrics"} {
		h.ask("GET", path, "", 404, nil)
	}
	for _, method := range []string{"PUT", "PATCH", "OPTIONS", "TRACE", "POST"} {
		h.ask(method, "/v1/top", "", 404, nil)
	}
	for _, who := range []string{"nobody", "api_key:", "header:X-Other=1", "header:X-Product", "address:10.0.0.0/8", "address:x", "user:alice", "api_key:%00", "..%2f..%2fetc%2fpasswd", "api_key:" + strings.Repeat("a", 9000)} {
		if status, body, _ := h.do(h.request("GET", "/v1/identities/"+who, "")); status != 422 && status != 404 {
			t.Errorf("%.40s: %d %s", who, status, body)
		}
	}
	for _, path := range []string{"/v1/../v1/top", "//v1/top", "/v1/identities/..", "/v1/identities/%2e%2e"} {
		conn, err := net.Dial("tcp", h.server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
		text, _ := io.ReadAll(conn)
		if !strings.HasPrefix(string(text), "HTTP/1.1 401 ") {
			t.Errorf("%s without the token: %s", path, text)
		}
		conn.Close()
	}
}

func TestAUnixSocketIsTheGatewaysOwn(t *testing.T) {
	h := newHouse(t)
	path := filepath.Join(h.dir, "admin.sock")
	h.said.Listen = "unix:" + path
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if _, err := New(Options{Said: h.said}); err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("beside a live one: %v", err)
	}
	stale.Close()
	h.open()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	h.ask("GET", "/v1/top", "", 200, nil)
	r := h.request("GET", "/v1/top", "")
	r.Host = "evil.example"
	if status, _, _ := h.do(r); status != 421 {
		t.Errorf("another host: %d", status)
	}
	h.file("admin.sock.txt", "")
	h.said.Listen = "unix:" + filepath.Join(h.dir, "admin.sock.txt")
	if _, err := New(Options{Said: h.said}); err == nil {
		t.Error("a file that is no socket was replaced")
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	h := newHouse(t)
	h.said.TokenFile = filepath.Join(h.dir, "none")
	if _, err := New(Options{Said: h.said}); err == nil || !strings.Contains(err.Error(), "cannot be read: no such file") {
		t.Errorf("without a token: %v", err)
	}
	h.said.TokenFile = h.file("weak.token", "hunter2")
	if _, err := New(Options{Said: h.said}); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "at least 16 bytes") {
		t.Errorf("a weak token: %v", err)
	}
	h = newHouse(t)
	h.said.Audit = filepath.Join(h.dir, "none", "audit.log")
	if _, err := New(Options{Said: h.said}); err == nil || !strings.Contains(err.Error(), "audit file") {
		t.Errorf("without its audit file: %v", err)
	}
}
