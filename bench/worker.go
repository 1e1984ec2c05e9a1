package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Every contender works in a process of its own, so that its heap is its own:
// whoever makes the collector work pays for it, and nobody else. One conductor
// lets them run in turns; a worker that has no turn is idle.

// A setup is what a worker makes ready.
type setup struct {
	Kind      string // "keyed" or "middleware"
	Contender string
	Allowance allowance
	Keys      int
	// Fill is how many requests each key makes beforehand.
	Fill int
	// Collect: measure what a collection costs.
	Collect bool
}

// A round is one turn.
type round struct {
	Zipf       bool
	Goroutines int
	For        time.Duration
}

// An order is either.
type order struct {
	Setup *setup
	Round *round
}

// An answer to an order.
type answer struct {
	Error  string
	Heap   int           // bytes that the keys hold, of a setup
	Cycle  time.Duration // of a collection, if that was asked
	Sample sample        // of a round
}

// A worker carries out orders.
type worker struct {
	// load makes the requests of the present distribution.
	load func(zipf bool) load

	zipf    bool
	current load
}

func (w *worker) carryOut(o order) (r answer) {
	var err error
	switch {
	case o.Setup != nil:
		r.Heap, r.Cycle, err = w.prepare(*o.Setup)
	case w.load == nil:
		err = errors.New("a round before the setup")
	default:
		if w.current == nil || w.zipf != o.Round.Zipf {
			w.zipf, w.current = o.Round.Zipf, w.load(o.Round.Zipf)
		}
		r.Sample = measure(w.current, o.Round.Goroutines, o.Round.For)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func (w *worker) prepare(s setup) (heap int, cycle time.Duration, err error) {
	prepare, ok := map[string]func(setup) (func(bool) load, error){"keyed": prepareKeyed, "middleware": prepareMiddleware}[s.Kind]
	if !ok {
		return 0, 0, fmt.Errorf("unknown kind of contest %q", s.Kind)
	}
	before := heapInUse()
	if w.load, err = prepare(s); err != nil {
		return 0, 0, err
	}
	heap = heapInUse() - before
	if s.Collect {
		cycle = cycleCPU()
	}
	return heap, cycle, nil
}

// work carries out the orders that come in, until there are no more.
func work(in io.Reader, out io.Writer) error {
	orders, answers := gob.NewDecoder(in), gob.NewEncoder(out)
	var w worker
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(w.carryOut(o)); err != nil {
			return err
		}
	}
}

// A colleague is a worker in another process.
type colleague struct {
	process *exec.Cmd
	orders  *gob.Encoder
	answers *gob.Decoder
	in      io.Closer
}

// hire starts this program once more, as a worker.
func hire() (*colleague, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "-worker")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &colleague{cmd, gob.NewEncoder(in), gob.NewDecoder(out), in}, nil
}

func (c *colleague) ask(o order) (answer, error) {
	if err := c.orders.Encode(o); err != nil {
		return answer{}, fmt.Errorf("ordering a worker: %w", err)
	}
	var r answer
	if err := c.answers.Decode(&r); err != nil {
		return answer{}, fmt.Errorf("waiting for a worker: %w", err)
	}
	if r.Error != "" {
		return answer{}, errors.New(r.Error)
	}
	return r, nil
}

// dismiss ends the worker: it stops when its orders end.
func (c *colleague) dismiss() error {
	return errors.Join(c.in.Close(), c.process.Wait())
}
