//go:build race

package identity_test

// raced: the race detector drops what pools keep.
const raced = true
