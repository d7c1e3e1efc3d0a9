// Package shadow keeps, beside traffic that one router has dealt out, what other routers
// would have found in the caches of the same workers: hits, tokens to prefill, and how
// evenly requests are spread. It claims nothing about latency: under another router the
// answers would have come at other times, and so would the requests after them.
//
// # The account
//
// A [Shadow] is told of requests in the order of time: [Shadow.Begin] when one reaches the
// router, [Shadow.First] at its first token, [Shadow.End]. For each [Policy] it keeps a
// world of its own: which worker got which request, what each worker's cache holds, what
// is in progress there. In all worlds a request takes as long as it really took.
//
// The caches are those of the simulated cluster's workers ([sim.Prefixes]): full blocks
// only, found from the prompt's beginning on; the last token of a prompt is always computed;
// a prompt's blocks can be found by others from its first token on; what a request in
// progress uses stays; what nobody uses goes, the least recently used first and of one
// request the last block first. Where a cache has no room for a request, an engine would
// let it wait: here its hits are counted at once, and [Totals.Crowded] tells how many
// such requests there were.
//
// One world is the actual one: the router's real choices on the same caches. What its
// hits miss of those that were measured is the cache account's error ([Account]), and
// Dynamo's costs in that world, held against what the router really chose, are the choice
// account ([Choices]). Both stand beside every figure.
//
// Nothing here reads a clock or does I/O. A Shadow is not safe for concurrent use.
package shadow
