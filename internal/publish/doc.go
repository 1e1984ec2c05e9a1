// Package publish writes the limits of a policy for the people who call the API:
// which endpoint, which plan, how much, how to read the answers and how to wait.
//
// What clients are not told of in answers is not published either: limits for
// everyone, those per what is only claimed, shadow and unlimited ones, unless the
// policy shows them.
package publish
