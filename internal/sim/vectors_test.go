package sim

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// The vectors are right when the lines that come out are those that went in,
// with "got" where "want" was.
func TestVectorsAreAnsweredAsTheyWant(t *testing.T) {
	files, _ := filepath.Glob("../../testdata/vectors/*.jsonl")
	if len(files) != 3 {
		t.Fatalf("found %d files of vectors", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := Vectors(bytes.NewReader(in), &out); err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.ReplaceAll(string(in), `"want"`, `"got"`), "\n")
			got := strings.Split(out.String(), "\n")
			if len(got) != len(want) {
				t.Fatalf("%d lines: want %d", len(got), len(want))
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("line %d:\n%s", i+1, cmp.Diff(want[i], got[i]))
				}
			}
		})
	}
}

const (
	full   = `"got": {"allowed": true, "limit": 1, "remaining": 1, "reset_after_us": 0, "full_after_us": 0, "retry_after_us": 0, "delay_us": 0}`
	taken  = `"got": {"allowed": true, "limit": 1, "remaining": 0, "reset_after_us": 1000, "full_after_us": 1000, "retry_after_us": 0, "delay_us": 0}`
	beyond = `"got": {"allowed": false, "limit": 1, "remaining": 1, "reset_after_us": 0, "full_after_us": 0, "retry_after_us": -1, "delay_us": 0}`
	one    = `"limit": {"limit": 1, "window_us": 1000}`
)

// All but the answers stays as it was: blanks, order, what is not known here.
func TestVectorLinesKeepTheirForm(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"no takes", `{` + one + `, "takes": []}`, `{` + one + `, "takes": []}` + "\n"},
		{"nothing", "", ""},
		{"blank lines", "\n \r\n{" + one + `,"takes":[]}` + "\r\n\n", "{" + one + `,"takes":[]}` + "\n"},
		{"a want anywhere in its row, and one that is another's",
			` { "takes" :[ { "want" : {"a":"}"} , "at_us":1,"cost":0, "x":{"want":1}} ,{"at_us":5,"cost":1,"want":null , "z":[1, 2] } ],` + one + `, "é":"\u00e9 <&"} `,
			` { "takes" :[ { ` + full + ` , "at_us":1,"cost":0, "x":{"want":1}} ,{"at_us":5,"cost":1,` + taken + ` , "z":[1, 2] } ],` + one + `, "é":"\u00e9 <&"} ` + "\n"},
		{"no want, and never", `{` + one + `, "takes": [{"at_us":0,"cost":2 }]}`, `{` + one + `, "takes": [{"at_us":0,"cost":2, ` + beyond + ` }]}` + "\n"},
		{"answered before", `{` + one + `, "takes": [{"at_us": 0, "cost": 1, "got": 7}]}`, `{` + one + `, "takes": [{"at_us": 0, "cost": 1, ` + taken + `}]}` + "\n"},
		{"a settle", `{` + one + `, "takes": [{"at_us":0,"cost":1},{"at_us":0,"settle":{"take":0,"actual":0},"want":{}}]}`,
			`{` + one + `, "takes": [{"at_us":0,"cost":1, ` + taken + `},{"at_us":0,"settle":{"take":0,"actual":0},` + full + `}]}` + "\n"},
	} {
		var out bytes.Buffer
		err := Vectors(iotest.OneByteReader(strings.NewReader(c.in)), &out)
		if diff := cmp.Diff(c.out, out.String()); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, diff)
		}
	}
}

func TestVectorErrorsSayWhere(t *testing.T) {
	take := func(rows string) string { return `{` + one + `, "takes": [` + rows + `]}` }
	limit := func(words string) string { return `{"limit": {` + words + `}, "takes": []}` }
	for in, want := range map[string]string{
		`{`:             "unexpected end of JSON input",
		`{"takes": []}`: "limit: is missing",
		`{` + one + `}`: `"takes" is missing`,
		`{` + one + `, "takes": [], "takes": [{"at_us":0,"cost":1}]} x`: "invalid character 'x'",
		`{` + one + `, "takes": [{"at_us":0,"cost":1}], "takes": []}`:   `"takes" is wanted once`,
		limit(`"limit": 1`): `"limit" and "window_us" are wanted`,
		limit(`"limit": 1, "window_us": 1000, "stagger": true`):                        `unknown field "stagger"`,
		limit(`"limit": 1, "window_us": 1000, "algorithm": "gcra"`):                    `unknown algorithm "gcra"`,
		limit(`"limit": 1, "window_us": 1000, "charge": "twice"`):                      `unknown charge "twice"`,
		limit(`"limit": 1, "window_us": 9223372036854775807`):                          "window_us: 9223372036854775807 is out of range",
		limit(`"limit": 1, "window_us": 1000, "max_wait_us": -1`):                      "max_wait_us: -1 is out of range",
		limit(`"limit": 1000000000001, "window_us": 1000`):                             "out of range",
		limit(`"limit": 1, "window_us": 1000, "burst": 2, "algorithm": "sliding_log"`): "burst: is for",
		take(`{"cost":1}`):                                 `row 0: "at_us" is missing`,
		take(`null`):                                       `row 0: "at_us" is missing`,
		take(`{"at_us":1}`):                                `row 0: has neither "cost" nor "settle"`,
		take(`{"at_us":1.5,"cost":1}`):                     "cannot unmarshal number 1.5",
		take(`{"at_us":1,"cost":-1}`):                      "a cost of -1 is out of range",
		take(`{"at_us":1,"settle":{"take":0,"actual":1}}`): "settle: row 0 is not one of the 0 before",
		take(`{"at_us":1,"settle":{"take":0}}`):            `settle: "take" and "actual" are wanted`,
		take(`{"at_us":1,"cost":2},{"at_us":1,"settle":{"take":0,"actual":1}}`):                                            "row 1: settle: row 0 has nothing to settle",
		take(`{"at_us":1,"cost":1},{"at_us":1,"settle":{"take":0,"actual":1}},{"at_us":1,"settle":{"take":0,"actual":1}}`): "row 2: settle: row 0 has nothing to settle",
		take(`{"at_us":1,"cost":1},{"at_us":1,"settle":{"take":0,"actual":9007199254740992}}`):                             "settle: a cost of",
	} {
		var out bytes.Buffer
		before := `{` + one + `, "takes": []}` + "\n"
		err := Vectors(strings.NewReader(before+"\n"+in+"\n"+before), &out)
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", in, err, want)
		}
		if out.String() != before {
			t.Errorf("%s: the line before was not written: %q", in, out.String())
		}
	}
}

func TestVectorsTellFailedReadsAndWrites(t *testing.T) {
	broken := errors.New("broken")
	if err := Vectors(iotest.ErrReader(broken), &bytes.Buffer{}); !errors.Is(err, broken) {
		t.Errorf("a failed read is %v", err)
	}
	line := `{` + one + `, "takes": []}`
	if err := Vectors(strings.NewReader(line), failing{broken}); !errors.Is(err, broken) {
		t.Errorf("a failed write is %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func FuzzVectors(f *testing.F) {
	f.Add(`{` + one + `, "takes": [{"at_us":0,"cost":1},{"at_us":0,"settle":{"take":0,"actual":0},"want":{}}]}`)
	f.Add(`{"Takes":[{"at_us":0,"cost":1}],"limit":{"limit":1,"window_us":1000},"takes":[{},{}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		var out bytes.Buffer
		if Vectors(strings.NewReader(in), &out) != nil {
			return
		}
		var again bytes.Buffer
		if err := Vectors(bytes.NewReader(out.Bytes()), &again); err != nil || again.String() != out.String() {
			t.Errorf("its own answer is not understood as it is: %v\n%s\n%s", err, &out, &again)
		}
	})
}
