// Package shadow computes, beside the traffic of one router, what other routers would have
// found in the caches of the same workers: hits, tokens to prefill, and how evenly requests
// are spread. It makes no claim about latency: under another router the answers would have
// come at other times, and so would the requests after them.
//
// # The account
//
// A [Shadow] receives the events of requests in the order of time: [Shadow.Begin] when a
// request reaches the router, [Shadow.First] at its first token, and [Shadow.End]. For each
// [Policy] it keeps a world: which worker got which request, what each worker's cache holds,
// and what is in progress. In all worlds a request takes as long as it really took.
//
// The caches are modeled as in the simulated cluster ([sim.Prefixes]). They hold full
// blocks only, found from the beginning of the prompt. The last token of a prompt is always
// computed. Other requests find a prompt's blocks from its first token on. Blocks of requests
// in progress stay; unused blocks are evicted, the least recently used first and the last
// block of a request first. Where a cache has no room for a request, an engine would make it
// wait; here its hits are counted at once, and [Totals.Crowded] counts such requests.
//
// One world is the actual one: the router's real choices on the same caches. The difference
// between its hits and the measured ones is the cache account's error ([Account]). Dynamo's
// costs in that world, compared with the router's real choices, are the choice account
// ([Choices]). Both accompany every figure.
//
// The package reads no clock and does no I/O. A Shadow is not safe for concurrent use.
package shadow
