//go:build !unix

package main

// openFileLimit returns 0: this system has no such limit.
func openFileLimit() int { return 0 }
