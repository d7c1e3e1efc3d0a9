//go:build !linux

package main

// trimProgram does nothing: this system does not list the memory of a process.
func trimProgram() {}
