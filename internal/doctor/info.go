package doctor

import (
	"context"
	"strconv"
	"strings"
)

// info is what a server tells of itself: INFO's fields by name, and settings.
type info map[string]string

// settings are what INFO does not tell. Not every user may ask for them, and
// some managed servers tell nobody: they are then left out.
var settings = [...]string{"appendfsync", "save", "min-replicas-to-write"}

func (e *examination) info(ctx context.Context) (info, error) {
	reply, err := e.do(ctx, "INFO", "everything")
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	i := parseInfo(text)
	for _, name := range settings {
		reply, _ := e.do(ctx, "CONFIG", "GET", name)
		if pair, _ := reply.([]any); len(pair) == 2 {
			i[name], _ = pair[1].(string)
		}
	}
	return i, nil
}

func parseInfo(text string) info {
	i := info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && line[0] != '#' {
			i[name] = value
		}
	}
	return i
}

// number is a field's number; 0 where it has none.
func (i info) number(name string) int64 {
	n, _ := strconv.ParseInt(i[name], 10, 64)
	return n
}

// calls are how often a command ran, and the microseconds that it took in all.
func (i info) calls(command string) (calls, us int64) {
	for part := range strings.SplitSeq(i["cmdstat_"+command], ",") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "calls":
			calls, _ = strconv.ParseInt(value, 10, 64)
		case "usec":
			us, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return calls, us
}

// atLeast says whether a version, 7.2.1, is not before major.minor.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (a > major || a == major && b >= minor)
}
