package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/comporta/comporta/bench/internal/process"
	"github.com/redis/rueidis"
)

// A server is the one redis-server that all sides use. It keeps nothing on disk.
type server struct {
	process *process.Process
	address string
	client  rueidis.Client // for questions about the server itself
	version string
}

// databases is how many sides the server has room for: each has a database of its
// own, so that all can use the names of keys that they use by default.
const databases = 32

func startServer(ctx context.Context, dir string) (*server, error) {
	port, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	p, err := process.Start("redis", dir, port, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--databases", strconv.Itoa(databases))
	if err != nil {
		return nil, fmt.Errorf("starting redis-server (on Debian: apt-get install redis-server): %w", err)
	}
	s := &server{process: p, address: process.Address(port)}
	if s.client, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.address}, DisableCache: true}); err != nil {
		p.Stop()
		return nil, err
	}
	info, err := s.info(ctx, "server")
	if err != nil {
		s.stop()
		return nil, err
	}
	s.version = info["redis_version"]
	return s, nil
}

func (s *server) stop() {
	s.client.Close()
	s.process.Stop()
}

// flush empties all databases.
func (s *server) flush(ctx context.Context) error {
	return s.client.Do(ctx, s.client.B().Flushall().Build()).Error()
}

// cpu is what the server has spent on processors so far, in user mode and in the
// kernel, to the microsecond.
func (s *server) cpu(ctx context.Context) (time.Duration, error) {
	info, err := s.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	var total float64
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			return 0, fmt.Errorf("the server's %s: %w", field, err)
		}
		total += seconds
	}
	return time.Duration(total * float64(time.Second)), nil
}

func (s *server) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.client.Do(ctx, s.client.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}
