// Package httpd serves the simulated cluster of package sim over HTTP, like a real NVIDIA Dynamo deployment: an
// OpenAI-compatible frontend, and the metrics pages of frontend, workers and GPUs for Prometheus.
//
// The cluster runs on the wall clock, or faster by a factor. All times that it reports (nvext.timing, metrics,
// decisions) are virtual. One goroutine advances the cluster from event to event and sleeps between them. The
// cluster's observers only record events. Each request's own goroutine writes them to its client, so that a slow
// client does not delay others.
//
// Besides Dynamo's paths, the frontend has /sim/v1, by which the booth and tests control the simulation: its mode,
// faults, the loss of a worker, and the router's decisions. These calls are restricted to the server's own host
// names.
package httpd
