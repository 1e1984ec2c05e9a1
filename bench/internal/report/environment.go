package report

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Environment says in a line on what the numbers were measured.
func Environment() string {
	return fmt.Sprintf("%s, %s/%s, %d × %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor())
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor"
}
