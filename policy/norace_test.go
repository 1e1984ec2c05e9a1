//go:build !race

package policy_test

const raced = false
