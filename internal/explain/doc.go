// Package explain tells what a policy would do with a request, and why: which
// limits match, whose budget each counts against, by whose numbers, what is left,
// when it frees. Nothing is spent.
package explain
