// Package metrics implements the Prometheus metrics of the simulated cluster's processes: the frontend, each worker
// with its engine, and a DCGM exporter beside each worker. Names, types, labels, buckets and the moments of counting
// equal those in Dynamo 1.6.1, in TensorRT-LLM, vLLM and SGLang, and in the DCGM exporter. Metrics without a
// counterpart in the simulation are left out. All times are virtual.
//
//	began      m.Begin            requests_started, inflight, queued
//	routed     Request.Routed     the router's requests and input tokens, predicted hit rate
//	first      Request.FirstToken time to first token, input tokens; queued ends
//	tokens     Request.Tokens     output tokens; each token's gap is the chunk's divided by its tokens
//	finished   Request.Finished   output and cached tokens, the worker's and the engine's histograms
//	ended      Request.Ended      requests_total, request_duration; inflight ends
//
// A process that restarts counts from zero: [Metrics.Restarted], [Metrics.FrontendRestarted],
// [Metrics.WorkerRestarted]. Requests that an old process served do not count in the new one.
package metrics
