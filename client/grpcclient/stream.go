package grpcclient

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/comporta/comporta/client"
)

// Stream is the interceptor of streams. A stream waits in line before it is
// opened. It is under way until its first message or its end comes, or its header
// where the program asks for that; what its trailer says is learnt when the
// program has read to the end. Errors and options are as of Unary.
//
// As always with gRPC, a program must read each stream until an error, cancel its
// context, or close the connection: until then a goroutine waits for the first
// answer to it.
func (i *Interceptor) Stream() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s := &stream{
			ctx: ctx, interceptor: i, again: !desc.ClientStreams,
			call: i.call(ctx, method, cc),
			open: func(ctx context.Context, own grpc.CallOption) (grpc.ClientStream, error) {
				return open(ctx, desc, cc, method, append(slices.Clip(opts), own)...)
			},
			turns: make(chan turn, 1), receiving: make(chan struct{}, 1),
		}
		s.call.Repeat = s.call.Repeat && s.again
		go func() {
			err := i.caller.Do(ctx, &s.call, s.try)
			s.turns <- turn{over: true, err: err}
		}()
		if t := <-s.turns; t.over {
			return nil, outcome(ctx, s.last, t.err)
		}
		return s, nil
	}
}

// A stream is opened by a goroutine of its own, again where need be: it runs try,
// which opens, then waits for the program to find out what the server said. The
// program's side gives it that answer and waits for its turn.
type stream struct {
	ctx         context.Context
	interceptor *Interceptor
	call        client.Call
	again       bool // it may be opened again: the program sends one message
	open        func(context.Context, grpc.CallOption) (grpc.ClientStream, error)
	// turns are taken by whoever waits for a stream to be opened. There is room for
	// the last one, which nobody waits for once a server has answered.
	turns chan turn
	last  error // of the last attempt to open; read after a turn

	sending sync.Mutex // held while sending or opening again; not where again is false
	message any        // the request
	sent    bool
	closed  bool

	current atomic.Pointer[opened]

	// receiving is held while receiving: a lock that a bubble of testing/synctest may
	// wait for. It guards the rest.
	receiving chan struct{}
	ended     bool  // the end of the stream was seen
	final     error // what all further receiving gets, where the end was the answer
}

// A turn says that a stream has been opened, or that it is over with err.
type turn struct {
	over bool
	err  error
}

// opened is one attempt.
type opened struct {
	grpc.ClientStream
	answered atomic.Bool // by whoever was the first to see what it came to
	answer   chan client.Answer
}

// try opens the stream, sends again what was sent, and waits for the answer.
func (s *stream) try(ctx context.Context, n int) client.Answer {
	ended := make(chan struct{}, 1)
	// The stream outlives this attempt, so its context is not the attempt's.
	cs, err := s.open(numbered(client.NoRetry(s.ctx), n), grpc.OnFinish(func(err error) {
		if status.Code(err) == codes.Canceled { // or the connection was closed, and nobody may be reading
			select {
			case ended <- struct{}{}:
			default:
			}
		}
	}))
	o := &opened{ClientStream: cs, answer: make(chan client.Answer, 1)}
	if err == nil {
		err = s.resume(o)
	}
	s.last = err
	a := client.Answer{Kind: client.Cancelled}
	if err != nil {
		a = answer(s.ctx, err, nil, nil, now())
	} else {
		s.turns <- turn{}
		select {
		case a = <-o.answer:
		case <-ended:
		case <-s.ctx.Done():
		}
	}
	s.call.Resend = s.again && s.interceptor.invited(&a)
	return a
}

// resume makes an attempt the one that the program uses.
func (s *stream) resume(o *opened) error {
	if s.again {
		s.sending.Lock()
		defer s.sending.Unlock()
		if s.sent {
			if err := o.SendMsg(s.message); err != nil {
				return err
			}
		}
		if s.closed {
			if err := o.CloseSend(); err != nil {
				return err
			}
		}
	}
	s.current.Store(o)
	return nil
}

// settle takes what receiving from an attempt came to; where it is not to be
// received from another instead, the error is what the program is told.
func (s *stream) settle(o *opened, err error) (again bool, _ error) {
	if s.final != nil {
		return false, s.final
	}
	if o.answered.Swap(true) {
		s.end(o, err)
		return false, err
	}
	header, trailer := s.metadata(o, err)
	a := answer(s.ctx, err, header, trailer, now())
	o.answer <- a
	if a.Kind != client.Accepted {
		t := <-s.turns
		if !t.over {
			return true, nil
		}
		if s.last != nil {
			err = s.last // it could not be opened again
		}
		err = outcome(s.ctx, err, t.err)
	}
	s.final = err
	return false, err
}

// metadata are those that have come.
func (s *stream) metadata(o *opened, err error) (header, trailer metadata.MD) {
	header, _ = o.Header()
	if err != nil {
		trailer = o.Trailer()
	}
	return header, trailer
}

// end learns from the end of a stream that was accepted earlier.
func (s *stream) end(o *opened, err error) {
	if err == nil || s.ended {
		return
	}
	s.ended = true
	if a := answer(s.ctx, err, nil, o.Trailer(), now()); a.Told || a.Kind == client.Refused || len(a.Hints) > 0 {
		s.interceptor.caller.Learn(s.call.Target, s.call.Partition, a)
	}
}

// receive receives from an attempt, and says whether to receive from another
// instead.
func (s *stream) receive(o *opened, m any) (again bool, _ error) {
	s.receiving <- struct{}{}
	defer func() { <-s.receiving }()
	if s.current.Load() != o {
		return true, nil
	}
	return s.settle(o, o.RecvMsg(m))
}

func (s *stream) RecvMsg(m any) error {
	for {
		if again, err := s.receive(s.current.Load(), m); !again {
			return err
		}
	}
}

// Header waits for the header. Once the program has seen one, the stream is not
// opened again.
func (s *stream) Header() (metadata.MD, error) {
	for {
		o := s.current.Load()
		md, err := o.Header()
		if md != nil {
			s.accept(o, md)
			return md, err
		}
		// It ended without one. Where it is opened again, there will be another.
		if again, _ := s.receive(o, &emptypb.Empty{}); !again {
			return nil, err
		}
	}
}

// accept settles an attempt whose header has been seen.
func (s *stream) accept(o *opened, header metadata.MD) {
	if !o.answered.Swap(true) {
		o.answer <- answer(s.ctx, nil, header, nil, now())
	}
}

func (s *stream) SendMsg(m any) error {
	if s.again {
		s.sending.Lock()
		defer s.sending.Unlock()
		s.message, s.sent = m, true
	}
	return s.current.Load().SendMsg(m)
}

func (s *stream) CloseSend() error {
	if s.again {
		s.sending.Lock()
		defer s.sending.Unlock()
		s.closed = true
	}
	return s.current.Load().CloseSend()
}

func (s *stream) Trailer() metadata.MD     { return s.current.Load().Trailer() }
func (s *stream) Context() context.Context { return s.current.Load().Context() }
