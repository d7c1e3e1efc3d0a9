// Package boothtest is what the tests in a browser share: the programs of a booth,
// all on loopback, with a simulated cluster under load, and the journeys of
// tests/browser through them.
package boothtest
