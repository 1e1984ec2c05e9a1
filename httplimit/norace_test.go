//go:build !race

package httplimit_test

const raced = false
