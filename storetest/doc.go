// Package storetest holds any [comporta.Store] against the reference: [Model] is
// a store that is right at a glance, [Run] asks it and another store the same
// questions at the same instants, [Laws] are what every limit keeps whatever is
// asked of it, and [Faults] is a store that fails on purpose.
//
// A store's conformance test is five lines:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, now func() time.Time) comporta.Store {
//			return mystore.New(now)
//		})
//	}
package storetest
