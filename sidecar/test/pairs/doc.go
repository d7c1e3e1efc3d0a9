// Package pairs holds two lanes against two simulated clusters in virtual time: what their
// pairs of turns say must be what either lane says for itself, and a showcase must be in none
// of it.
package pairs
