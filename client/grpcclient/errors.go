package grpcclient

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/comporta/comporta"
	"github.com/comporta/comporta/client"
)

// A failure is a status, and why the call was not sent, or not again.
type failure struct {
	last   error // of the last attempt; nil where there was none
	status *status.Status
	why    *client.RateLimitError
}

func (f *failure) Error() string              { return f.status.Err().Error() }
func (f *failure) GRPCStatus() *status.Status { return f.status }

func (f *failure) Unwrap() []error {
	if f.last == nil {
		return []error{f.why}
	}
	return []error{f.last, f.why}
}

// outcome is the error of a call: last is that of its last attempt, and err what
// the caller says.
func outcome(ctx context.Context, last, err error) error {
	var why *client.RateLimitError
	switch {
	case err == nil:
		return last
	case errors.As(err, &why) && last == nil:
		return &failure{status: unsent(why), why: why}
	case why != nil:
		return &failure{last: last, status: status.Convert(last), why: why}
	case ctx.Err() != nil && status.Code(last) != codes.Canceled && status.Code(last) != codes.DeadlineExceeded:
		return status.FromContextError(ctx.Err()).Err() // while it waited
	case last != nil:
		return last
	}
	return status.FromContextError(err).Err()
}

// unsent is the status of a call that was not sent.
func unsent(why *client.RateLimitError) *status.Status {
	code := codes.ResourceExhausted
	if why.Reason == client.ReasonThrottle || why.Err != nil {
		code = codes.Unavailable
	}
	s := status.New(code, why.Error())
	if why.RetryAfter > 0 && why.RetryAfter != comporta.Never {
		if told, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(why.RetryAfter)}); err == nil {
			return told
		}
	}
	return s
}
