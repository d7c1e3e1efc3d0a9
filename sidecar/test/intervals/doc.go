// Package intervals tests the load generator's statistics with the simulated cluster in virtual time: windows of one
// unchanged setting are hardly ever called different, and a true difference is found soon.
package intervals
