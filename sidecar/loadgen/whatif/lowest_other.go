//go:build !unix

package whatif

// standBack does nothing: this system has no such priority.
func standBack() {}

// stepForward does nothing: nothing has stood back.
func stepForward(int) {}
