// Package sim lets arrivals, written down beforehand, meet limits on a virtual
// clock: the real decisions at made-up instants, as tables, drawings in a
// terminal, pictures and JSON.
//
// [ParseBursts] reads the arrivals, a [Scene] plays them, and what comes out is a
// [Report] with one [Run] for each algorithm. [Vectors] answers takes and settles
// that come as JSON lines. A [Fleet] is many instances that share a limit, with
// leases, wrong clocks and failures. Nothing here reads a clock or keeps anything between calls.
package sim
