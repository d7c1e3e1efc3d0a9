// Package intervals holds the load generator's statistics against the simulated
// cluster, in virtual time: windows of one unchanged setting must hardly ever differ,
// and a true difference must be told soon.
package intervals
