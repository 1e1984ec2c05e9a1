package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"
)

func TestFindNumber(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		document, place string
		want            int64
	}{
		{`{"max_tokens": 100}`, "max_tokens", 100},
		{` {"a":{"b":{"c":7}},"c":8}`, "a.b.c", 7},
		{`{"a":[{"b":1}],"b":2}`, "a.b", none},
		{`{"a":{"x":{"b":1},"b":2}}`, "a.b", 2},
		{`{"x":{"a":1}}`, "a", none},
		{`{"a":{"a":3}}`, "a", none},
		{`{"a":{"a":3}}`, "a.a", 3},
		{`{"a":"5"}`, "a", none},
		{`{"a":null}`, "a", none},
		{`{"a":[5]}`, "a", none},
		{`[{"a":5}]`, "a", none},
		{`5`, "a", none},
		{`{"":5}`, "", 5},
		{`{"b":"\"a\":9,\\","a":1}`, "a", 1},
		{`{"\u0061\ud83d\ude00\n":1}`, "a😀\n", 1},
		{`{"\ud83da":1}`, "\ufffda", 1},
		{`{"\ud83d\ud83d\ude00":1}`, "\ufffd😀", 1},
		{`{"\ude00":1}`, "\ufffd", 1},
		{`{"ab":1,"a":2,"abc":3}`, "ab", 1},
		// Numbers.
		{`{"a":0}`, "a", 0},
		{`{"a":-0}`, "a", 0},
		{`{"a":-1}`, "a", none},
		{`{"a":1.0}`, "a", 1},
		{`{"a":1.01}`, "a", 2},
		{`{"a":0.00001}`, "a", 1},
		{`{"a":1.5e2}`, "a", 150},
		{`{"a":15E-1}`, "a", 2},
		{`{"a":12e-1000}`, "a", 1},
		{`{"a":9e18}`, "a", 9e18},
		{`{"a":1e19}`, "a", none},
		{`{"a":1e999999999999}`, "a", none},
		{`{"a":01}`, "a", none},
		{`{"a":1.}`, "a", none},
		{`{"a":1e}`, "a", none},
		{`{"a":1-1}`, "a", none},
		{`{"a":` + strings.Repeat("1", 50) + `}`, "a", none},
		// The largest of several.
		{`{"a":1,"a":3,"a":2}`, "a", 3},
		{`{"a":{"b":4},"a":{"b":1}}`, "a.b", 4},
		// The beginning of a document, and no document.
		{`{"a":1,"b":{`, "a", 1},
		{`{"a":1`, "a", none},
		{`{"b":1 "a":2}`, "a", none},
		{`{"b":1,}`, "a", none},
		{`{"b" 1,"a":2}`, "a", none},
		{`{"b":1],"a":2}`, "a", none},
		{`{"\x":1,"a":2}`, "a", none},
		{`{"\u00zz":1,"a":2}`, "a", none},
		{`{"a":1} {"a":2}`, "a", 1},
		{`<html>{"a":1}`, "a", none},
		{``, "a", none},
		{strings.Repeat(`{"a":`, mostDepth) + "1" + strings.Repeat("}", mostDepth), strings.TrimSuffix(strings.Repeat("a.", mostDepth), "."), 1},
		{strings.Repeat("[", mostDepth+1) + `{"a":1}`, "a", none},
	} {
		got, found := FindNumber([]byte(c.document), c.place)
		if !found {
			got = none
		}
		if got != c.want {
			t.Errorf("%.80s: %.20s is %d, want %d", c.document, c.place, got, c.want)
		}
	}
}

// Whatever the pieces, the number is that of a reader which has all of it.
func FuzzFindNumber(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1.5e1,"c":[{"b":2},[]]},"x":"}\"","a":{"b":3}}`), 1)
	f.Add([]byte(`{"\u0061":{"b":-0.0}}`), 3)
	f.Add([]byte(`[true,null,{"a":{"b":1}}]`), 2)
	f.Add([]byte(`{"a":{"\u0062":12345678901234567890}}`), 5)
	f.Fuzz(func(t *testing.T, document []byte, piece int) {
		place := []string{"a", "b"}
		s := numberScan{place: place}
		for part := range bytes.Lines(document) {
			for len(part) > 0 {
				n := min(len(part), max(piece, 1))
				s.read(part[:n])
				part = part[n:]
			}
		}
		if whole, found := FindNumber(document, "a.b"); whole != s.number || found != s.found {
			t.Errorf("in pieces %d %v, whole %d %v", s.number, s.found, whole, found)
		}
		if !json.Valid(document) {
			return
		}
		want, found := oracle(t, document, place)
		if want != s.number || found != s.found {
			t.Errorf("%s: %d %v, want %d %v", document, s.number, s.found, want, found)
		}
	})
}

// oracle finds the number by encoding/json.
func oracle(t *testing.T, document []byte, place []string) (largest int64, found bool) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	token := func() json.Token {
		tok, err := d.Token()
		if err != nil && !errors.Is(err, io.EOF) {
			t.Skip(err) // it reads less deep than we do, or takes no such number
		}
		return tok
	}
	var value func(at []string, on bool, depth int)
	value = func(at []string, on bool, depth int) {
		if depth > mostDepth {
			t.Skip("too deep")
		}
		switch tok := token().(type) {
		case json.Number:
			if on && len(at) == 0 && len(tok) <= mostDigits {
				if n, ok := roundUp(string(tok)); ok {
					largest, found = max(largest, n), true
				}
			}
		case json.Delim:
			for d.More() {
				inner, here := at, false
				if tok == '{' {
					key := token()
					if here = on && len(at) > 0 && key == at[0]; here {
						inner = at[1:]
					}
				}
				value(inner, here, depth+1)
			}
			token()
		}
	}
	value(place, true, 0)
	return largest, found
}

func roundUp(text string) (int64, bool) {
	if _, exponent, _ := strings.Cut(strings.ToLower(text), "e"); len(exponent) > 4 {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || r.Sign() < 0 {
		return 0, false
	}
	n, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	return n.Int64(), n.IsInt64()
}

func BenchmarkFindNumber(b *testing.B) {
	document := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("words and words ", 4000) + `"}],"max_tokens":100}`)
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if n, _ := FindNumber(document, "max_tokens"); n != 100 {
			b.Fatal(n)
		}
	}
}
