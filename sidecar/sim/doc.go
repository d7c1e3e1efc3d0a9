// Package sim implements the serving cluster that the product simulates where no GPUs are available: the time
// that its GPUs take ([Profile]), the tokenizer and the chat template of its model, and the way of requests
// through it ([Cluster]). Profile, tokenizer and template can also be written in the formats of NVIDIA Dynamo's
// mock workers, so that a real Dynamo on this machine simulates the same cluster.
//
// # The cluster
//
// A [Cluster] is a discrete-event model of an aggregated Dynamo deployment: a frontend with a KV router, and
// workers with continuous batching, chunked prefill, a prefix cache of blocks and speculative decoding. It runs
// in virtual time and does not depend on HTTP. A server of a cluster holds a lock and repeats:
//
//	cluster.Advance(wall clock · speed)
//	Submit, Cancel, Switch, Workers, … as requests and scrapes come
//	wait until the clock reaches cluster.Next(), or until another call is made
//
// The path of a request, with the constants of the profile:
//
//	Submit      the router decides and adds the request to its account
//	+ 22 ms     the request arrives at the worker's queue
//	            it is admitted when the current iteration ends
//	Prefilled   the last chunk is computed; the blocks of the prompt are registered
//	+ 0.8 step   the first token leaves the worker, like the tokens of every iteration
//	+ 8 ms      the token leaves the frontend: FirstToken, Tokens; the router removes the prefill from its account
//	…           Tokens, once per iteration
//	Finished    the last tokens have left the frontend; the router frees the request
//
// The model leaves out the router's own queue (its depth is always 0), the delay of cache events, the time until
// the router notices a lost worker, and the memory that a draft model takes from the cache.
package sim
