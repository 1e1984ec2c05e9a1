//go:build !race

package probe

const raced = false
