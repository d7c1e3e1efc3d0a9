// Package soak runs a load generator for an hour against a fast simulated cluster, behind the build tag soak, and
// shows that memory, descriptors, goroutines and database stay flat. SOAK sets another length, such as 5m.
package soak
