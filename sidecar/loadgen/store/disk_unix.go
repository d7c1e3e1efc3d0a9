//go:build linux || darwin || freebsd

package store

import "syscall"

// diskSize returns the size of a directory's file system in bytes, 0 where it is unknown.
func diskSize(dir string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Blocks) * int64(s.Bsize) //nolint:unconvert // other types elsewhere
}
