// Package policy says which requests are limited, per whom, by what and for how
// much: patterns, identities, limits, and the Engine that asks them all at once.
//
// # The bargain
//
// [NewEngine] takes a [Policy] only if all of it can be enforced; nothing is
// dropped in silence. [Engine.Check] then puts a request to all the limits that
// it is under, in one step of the store: it is allowed if every enforced limit
// allows it, and if one denies, none is charged (limits that charge attempts
// aside). Two limits never share a counter, whatever they match, and each
// counts a request once. A shadow limit counts what the others allow, and
// refuses, delays and hides nothing.
//
// A request is under a limit if one of its patterns matches, none of its
// exceptions does, and the request shows an identity of the limit's kind. An
// unlimited limit applies without asking the store; it overrides no other.
//
// When the store cannot answer, the policy says what holds ([OnError]), for each
// limit if it likes: a local store decides with this instance's share, or the
// request passes, or it is refused. The verdict says so ([Verdict.Fallen]).
//
// Paths are read before they are matched ([Paths.Clean]), and what was matched
// is what is to be forwarded.
//
// What a client's numbers are hangs on who it is: an override's stand before those
// of its plan, and those before the limit's own. What it has used stays when they change.
//
// An Engine is safe for concurrent use, and immutable but for the overrides that it
// is given while it runs ([Engine.SetOverrides]).
package policy
