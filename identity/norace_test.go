//go:build !race

package identity_test

const raced = false
