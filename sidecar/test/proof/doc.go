// Package proof holds the statistics of trials against a system whose truth is known: the
// simulated cluster, in virtual time. Two equal routers must hardly ever differ, a true
// difference must be told, and intervals must hold the truth as often as they say. Its
// tests have the build tag proof, since they take minutes: a part of the suite of its own runs them, and go tool mage bench at length.
package proof
