// Package pairs tests two lanes with two simulated clusters in virtual time: the figures of their paired turns must
// agree with those of each lane, a showcase must be in none of them, and each lane must measure the same as a single
// lane with its cluster.
package pairs
