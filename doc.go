// Package comporta decides how much may flow: the five classic rate-limiting
// algorithms, exact to the microsecond, as one pure step from a state, an
// instant and a cost to a new state and a decision.
//
// A [Limit] is what a person writes, such as 100/min; [Limit.Compile] makes it a
// [Rule], whose step ([Rule.Step], [Rule.Advance]) is the whole arithmetic. A
// [Store] carries states to that step: package memstore in this process. A
// [Limiter] is the short way in.
package comporta
