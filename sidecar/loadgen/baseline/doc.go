// Package baseline holds recorded results: the two tables that come with the product, those that a user imports, and
// the one of the target's own settled steps. It reads and writes them, looks values up at a concurrency, compares a
// live step with them, and judges them by the SLOs.
//
// The meaning of a table's columns is defined in one place, the table of quantities in quantity.go. A recorded itl
// column is one mean gap per request, which is this product's TPOT. A recorded tpot column was derived from percentiles
// of other quantities; it is kept as TPOTDerived and compared with nothing.
//
// The functions keep no state. They are safe for concurrent use as long as no
// baseline is changed while it is read. [Merge] leaves earlier copies of its
// baseline unchanged.
package baseline
