// Package doctor examines a Redis or Valkey that is to keep limits, and says in
// plain words what is wrong with it and what to change.
package doctor
