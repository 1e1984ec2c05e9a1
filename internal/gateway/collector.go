package gateway

import (
	"bufio"
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// roomFor is the heap that the collector may let grow before it runs, where
// memory allows: a proxy's live heap is a few megabytes, and collecting each time
// that it doubles takes a good part of all its time.
const roomFor = 64 << 20

// PaceCollector paces the process's garbage collector until the context ends: by
// a memory limit of nine tenths of what the cgroup (v2 or v1) allows, and by a
// heap of up to 64 MB, or a quarter of what is allowed, before it runs. GOGC and
// GOMEMLIMIT, where they are set, win.
func PaceCollector(ctx context.Context) {
	allowed := cgroupMemory("/proc/self/cgroup", "/sys/fs/cgroup")
	if os.Getenv("GOMEMLIMIT") == "" && allowed < math.MaxInt64 {
		debug.SetMemoryLimit(allowed / 10 * 9)
	}
	if os.Getenv("GOGC") != "" {
		return
	}
	room := min(roomFor, allowed/4)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := 0
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		metrics.Read(live)
		// Setting it stops the world, so small changes are let be.
		if want := gcPercent(int64(live[0].Value.Uint64()), room); want*5 < percent*4 || want*4 > percent*5 {
			percent = want
			debug.SetGCPercent(percent)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// gcPercent is the GOGC under which a live heap grows to room before the
// collector runs; 100, Go's own, for a heap that is large already.
func gcPercent(live, room int64) int {
	const least, most = 100, 1600 // 1600 % of the least heap of 4 MB is 64 MB
	if live <= 0 {
		return most
	}
	return int(min(most, max(least, (room-live)*100/live)))
}

// cgroupMemory is the memory that the process's cgroup and those above it allow;
// math.MaxInt64 where there is no bound or no cgroup.
func cgroupMemory(self, mount string) int64 {
	allowed := int64(math.MaxInt64)
	f, err := os.Open(self)
	if err != nil {
		return allowed
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// hierarchy:controllers:path; version 2 has no controllers.
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, file := mount, "memory.max"
		if parts[1] != "" {
			if parts[1] != "memory" {
				continue
			}
			root, file = filepath.Join(mount, "memory"), "memory.limit_in_bytes"
		}
		// Inside a container the path may be the host's: the root counts in any case.
		for path := filepath.Clean("/" + parts[2]); ; path = filepath.Dir(path) {
			if text, err := os.ReadFile(filepath.Join(root, path, file)); err == nil {
				if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
					allowed = min(allowed, n)
				}
			}
			if path == "/" {
				break
			}
		}
	}
	if allowed > 1<<60 { // version 1 writes "no bound" as a very large number
		return math.MaxInt64
	}
	return allowed
}
