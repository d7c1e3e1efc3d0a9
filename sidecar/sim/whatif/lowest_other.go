//go:build !unix

package whatif

// lowerPriority does nothing: this system has no such priority.
func lowerPriority() {}

// raisePriority does nothing, since lowerPriority does nothing.
func raisePriority(int) {}
