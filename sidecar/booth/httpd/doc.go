// Package httpd serves the simulated cluster of package sim over HTTP as NVIDIA
// Dynamo serves a real one: an OpenAI-compatible frontend, and the pages from which
// Prometheus reads frontend, workers and GPUs.
//
// The cluster lives on the wall clock, or so many times faster; what it says of
// times (nvext.timing, metrics, decisions) is virtual time. One goroutine advances
// it from event to event and sleeps between them. The cluster's observers only note
// what happened; each request's own goroutine writes it to its client, so that a
// slow client holds up nobody else.
//
// Beside Dynamo's paths the frontend has /sim/v1, by which the booth and tests
// steer the simulation: its mode, faults, the loss of a worker, and why each
// request went where it went. Those calls are for this machine only.
package httpd
