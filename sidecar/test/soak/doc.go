// Package soak runs a load generator for an hour with a fast simulated cluster, behind the build tag soak, and
// requires that memory, descriptors, goroutines and database do not grow. SOAK sets another duration, such as 5m.
package soak
