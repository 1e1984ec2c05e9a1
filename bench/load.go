package main

import (
	"fmt"
	"slices"
)

// prepareKeyed makes a contender and all its keys.
func prepareKeyed(s setup) (func(zipf bool) load, error) {
	i := slices.IndexFunc(keyed, func(c contender) bool { return c.name == s.Contender })
	if i < 0 {
		return nil, fmt.Errorf("no contender is named %q", s.Contender)
	}
	take, err := keyed[i].make(s.Allowance)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Contender, err)
	}
	for range s.Fill {
		for k := range s.Keys {
			if !take(keyName(k)) {
				return nil, fmt.Errorf("%s denied a request within the limit", s.Contender)
			}
		}
	}
	return func(zipf bool) load { return keyedLoad(take, newSequence(s.Keys, zipf, sequenceLength)) }, nil
}

// keyedLoad takes one unit for each key of a sequence; each goroutine begins at
// another place in it.
func keyedLoad(take func(key string) bool, keys sequence) load {
	return func(goroutine int) func(int) int {
		at := goroutine * keys.len() / 3
		return func(n int) (allowed int) {
			for range n {
				if take(keys.at(at)) {
					allowed++
				}
				if at++; at == keys.len() {
					at = 0
				}
			}
			return allowed
		}
	}
}
