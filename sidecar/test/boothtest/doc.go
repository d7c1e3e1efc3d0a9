// Package boothtest has what browser tests share: the programs of a booth on loopback, with a simulated cluster under
// load, and the runner of the journeys in tests/browser.
package boothtest
