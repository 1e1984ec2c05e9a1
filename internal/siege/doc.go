// Package siege holds the gateway against who means it ill: an attacker's hour on a
// policy with everything in it, and the faults of identity that other limiters had.
// It has tests alone, which run the program as users do.
package siege
