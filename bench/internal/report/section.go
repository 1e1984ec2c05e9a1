package report

import (
	"fmt"
	"os"
	"strings"
)

// WriteSection puts text between the markers of a section in a file:
//
//	<!-- begin NAME -->
//	<!-- end NAME -->
//
// What was between them is replaced. A file without the markers is an error.
func WriteSection(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->\n"
	head, rest, found := strings.Cut(string(old), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no section %s: it needs the lines %s and %s", file, name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(file, []byte(head+begin+text+end+tail), 0o644)
}
