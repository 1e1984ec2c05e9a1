// Package grpcclient keeps a gRPC client within the limits of the servers that it
// calls: interceptors over client.Caller.
package grpcclient

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
)

var (
	_ *grpc.ClientConn
	_ *errdetails.RetryInfo
	_ *durationpb.Duration
)
