package gateway

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestTheCgroupsMemoryIsTheLeastAbove(t *testing.T) {
	for name, test := range map[string]struct {
		self  string
		files map[string]string
		want  int64
	}{
		"version 2":           {"0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "1000\n"}, 1000},
		"version 2, own":      {"0::/a/b\n", map[string]string{"a/b/memory.max": "500\n", "a/memory.max": "1000\n"}, 500},
		"in a container":      {"0::/host/path\n", map[string]string{"memory.max": "700\n"}, 700},
		"version 1":           {"5:cpu:/x\n4:memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "2000\n"}, 2000},
		"version 1, no bound": {"4:memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, math.MaxInt64},
		"no cgroup":           {"", nil, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range test.files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, file), []byte(text))
			}
			write(t, filepath.Join(dir, "self"), []byte(test.self))
			if got := cgroupMemory(filepath.Join(dir, "self"), dir); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
	if got := cgroupMemory("/nowhere", "/nowhere"); got != math.MaxInt64 {
		t.Errorf("without /proc: %d", got)
	}
}

func TestTheCollectorIsPacedByTheRoomThereIs(t *testing.T) {
	const mb = 1 << 20
	for _, test := range []struct {
		live, room int64
		want       int
	}{
		{0, 64 * mb, 1600}, {1 * mb, 64 * mb, 1600}, {4 * mb, 64 * mb, 1500}, {16 * mb, 64 * mb, 300}, {50 * mb, 64 * mb, 100}, {500 * mb, 64 * mb, 100}, {4 * mb, 16 * mb, 300},
	} {
		if got := gcPercent(test.live, test.room); got != test.want {
			t.Errorf("live %d MB of %d: %d %%, want %d", test.live/mb, test.room/mb, got, test.want)
		}
	}
}
