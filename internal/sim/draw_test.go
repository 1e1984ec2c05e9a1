package sim

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/comporta/comporta"
)

func allFive() (names []string) {
	for _, a := range comporta.Algorithms() {
		names = append(names, a.String())
	}
	return names
}

// Each drawing is a file that people can look at; the pictures too.
func TestDrawings(t *testing.T) {
	articles := scene(t, "1/s burst 5", "", "7@0s,3@2s,10@10s", "token_bucket")
	five := scene(t, "1/s burst 5", "", "7@0s,3@2s,10@10s", allFive()...)
	dense := scene(t, "1001/s burst 1", "500ms", "5000@0s every 200us", "token_bucket")
	for _, d := range []struct {
		file  string
		scene Scene
		draw  func(*Report, io.Writer) error
	}{
		{"articles-color.txt", articles, text(80, true)},
		{"articles-narrow.txt", articles, text(40, false)},
		{"five.txt", five, text(80, false)},
		{"five-wide.txt", five, text(120, false)},
		{"queue.txt", scene(t, "10/10s", "", "12@0s,30@0s every 300ms", "leaky_bucket"), text(80, false)},
		{"nearly.txt", scene(t, "20/s", "", "21@0s", "fixed_window"), text(80, false)}, // one denied of many is seen
		{"looks.txt", scene(t, "0/s", "", "2@0s cost 0", "fixed_window", "sliding_log"), text(80, false)},
		{"articles.svg", articles, (*Report).WriteSVG},
		{"five.svg", five, (*Report).WriteSVG},
		{"dense.svg", dense, (*Report).WriteSVG},
		{"looks.svg", scene(t, "unlimited", "", "2@0s cost 0", "fixed_window"), (*Report).WriteSVG},
		{"five.json", scene(t, "1/s burst 2", "", "1@0.5s,2@1s every 250ms cost 3", allFive()...), (*Report).WriteJSON},
	} {
		t.Run(d.file, func(t *testing.T) {
			var out bytes.Buffer
			if err := d.draw(play(t, d.scene), &out); err != nil {
				t.Fatal(err)
			}
			golden(t, d.file, out.Bytes())
			if strings.HasSuffix(d.file, ".svg") {
				wellFormed(t, out.Bytes())
			}
		})
	}
}

func text(width int, color bool) func(*Report, io.Writer) error {
	return func(r *Report, w io.Writer) error { return r.WriteText(w, Screen{width, color}) }
}

func wellFormed(t *testing.T, picture []byte) {
	t.Helper()
	for read := xml.NewDecoder(bytes.NewReader(picture)); ; {
		_, err := read.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A timeline fits any terminal that is wide enough for its words, whatever arrives.
func TestTimelinesFit(t *testing.T) {
	for _, at := range []string{"7@0s,3@2s,10@10s", "1@0", "9999@0s every 10ms,1@400d", "1@1s cost 9007199254740991,2@2s"} {
		one := play(t, scene(t, "1000/s", "", at, "leaky_bucket"))
		five := play(t, scene(t, "1000/s", "", at, allFive()...))
		for width := 30; width <= 200; width += 17 {
			s := Screen{Width: width}
			for _, page := range []*canvas{one.timeline(one.Runs[0], s), five.strips(s)} {
				for _, row := range page.rows {
					if len(row) > width {
						t.Fatalf("%s: %d columns of %d", at, len(row), width)
					}
				}
			}
		}
	}
}

func TestNoEscapesWithoutColor(t *testing.T) {
	var out strings.Builder
	if err := play(t, scene(t, "1/s burst 5", "", "7@0s", allFive()...)).WriteText(&out, Screen{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(out.String(), 0x1b) {
		t.Error("an escape")
	}
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("too wide: %s", line)
		}
		if strings.HasSuffix(line, " \n") {
			t.Errorf("blanks at its end: %q", line)
		}
	}
}
