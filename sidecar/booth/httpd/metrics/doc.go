// Package metrics is what the processes of the simulated cluster tell Prometheus:
// the frontend, each worker with its engine, and a DCGM exporter beside each
// worker. Names, types, labels, buckets and the moments at which something is
// counted are those of Dynamo 1.6.1, of TensorRT-LLM, vLLM and SGLang, and of the DCGM
// exporter; what the simulation does not know is not written at all. All times are
// virtual.
//
//	began      m.Begin            requests_started, inflight, queued
//	routed     Request.Routed     the router's requests and input tokens, predicted hit rate
//	first      Request.FirstToken time to first token, input tokens; queued no more
//	tokens     Request.Tokens     output tokens; each token's gap is the chunk's by its tokens
//	finished   Request.Finished   output and cached tokens, the worker's and the engine's histograms
//	ended      Request.Ended      requests_total, request_duration, inflight no more
//
// A process that restarts counts from zero: [Metrics.Restarted],
// [Metrics.FrontendRestarted], [Metrics.WorkerRestarted]. Requests that an old process served do not count in
// the new one.
package metrics
