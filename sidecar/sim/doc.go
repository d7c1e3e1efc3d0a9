// Package sim is the serving cluster that the product imitates where there are no
// GPUs: how long its GPUs take ([Profile]), how its model reads text (the
// tokenizer and the chat template), and what becomes of requests in it
// ([Cluster]). Profile, tokenizer and template are also written in the forms that
// NVIDIA Dynamo's mock workers take, so that a real Dynamo on this machine serves
// the same cluster.
//
// # The cluster
//
// A [Cluster] is a discrete-event model of an aggregated Dynamo deployment: a
// frontend with a KV router, and workers that batch continuously, prefill in
// chunks, keep a prefix cache of blocks, and speculate. It lives in virtual time
// and knows nothing of HTTP. Whoever serves it holds a lock and repeats:
//
//	cluster.Advance(wall clock · speed)
//	Submit, Cancel, Switch, Workers, … as requests and scrapes come
//	wait until the clock reaches cluster.Next(), or until another call
//
// The path of a request, with the constants of the profile:
//
//	Submit      the router decides and adds the request to its account
//	+ 22 ms     it arrives at the worker's queue
//	            it is admitted when the iteration under way ends
//	Prefilled   its last chunk is computed; its prompt's blocks are registered
//	+ .8 step   the first token leaves the worker, as those of any iteration do
//	+ 8 ms      and the frontend: FirstToken, Tokens; the router clears its prefill
//	…           Tokens, once an iteration
//	Finished    the last tokens have left; the router frees the request
//
// What is left out: the router's own queue (its depth is always 0), the delay of
// cache events, the time in which a lost worker is not yet missed, and the memory
// that a draft model takes from the cache.
package sim
