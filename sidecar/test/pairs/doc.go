// Package pairs holds two lanes against two simulated clusters in virtual time: what their
// pairs of turns say must be what either lane says for itself, a showcase must be in none of
// it, and each lane must measure what a run alone against its cluster does.
package pairs
