package sim

import (
	"bufio"
	"fmt"
	"io"
	"unicode/utf8"
)

// A Screen is what a report is written to.
type Screen struct {
	// Width is the number of columns; drawings fit it.
	Width int
	// Color says that it understands ANSI colours.
	Color bool
}

// ink is the colour of a character: an ANSI parameter, or "" for none.
type ink string

const (
	plain  ink = ""
	bold   ink = "1"
	good   ink = "32"
	bad    ink = "31"
	faint  ink = "2"
	signal ink = "33"
)

type cell struct {
	char rune
	ink  ink
}

// canvas is a page of characters that grows downward as it is drawn on.
type canvas struct {
	width int
	rows  [][]cell
}

// set draws one character; what is beyond the sides is not seen.
func (c *canvas) set(row, column int, char rune, in ink) {
	for len(c.rows) <= row {
		c.rows = append(c.rows, nil)
	}
	if column < 0 || column >= c.width {
		return
	}
	for len(c.rows[row]) <= column {
		c.rows[row] = append(c.rows[row], cell{char: ' '})
	}
	c.rows[row][column] = cell{char, in}
}

func (c *canvas) text(row, column int, text string, in ink) {
	for _, char := range text {
		c.set(row, column, char, in)
		column++
	}
}

// label centres a text on a column where there is room for it, with a blank on
// either side, inside of left and the right edge; else it is left out.
func (c *canvas) label(row, column, left int, text string, in ink) {
	size := utf8.RuneCountInString(text)
	start := max(min(column-size/2, c.width-size), left)
	if start+size > c.width {
		return
	}
	if row < len(c.rows) {
		for i := max(start-1, left); i < min(start+size+1, len(c.rows[row])); i++ {
			if c.rows[row][i].char != ' ' {
				return
			}
		}
	}
	c.text(row, start, text, in)
}

// height is the number of rows that have been drawn on.
func (c *canvas) height() int { return len(c.rows) }

// write prints the page, without blanks at the ends of lines.
func (c *canvas) write(w io.Writer, color bool) error {
	out := bufio.NewWriter(w)
	for _, row := range c.rows {
		for len(row) > 0 && row[len(row)-1].char == ' ' {
			row = row[:len(row)-1]
		}
		var now ink
		for _, cell := range row {
			if color && cell.ink != now && cell.char != ' ' {
				now = cell.ink
				out.WriteString("\x1b[0m")
				if now != plain {
					fmt.Fprintf(out, "\x1b[%sm", now)
				}
			}
			out.WriteRune(cell.char)
		}
		if now != plain {
			out.WriteString("\x1b[0m")
		}
		out.WriteByte('\n')
	}
	return out.Flush()
}
