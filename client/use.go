package client

import "github.com/dunglas/httpsfv"

var _ httpsfv.List
