//go:build linux || darwin || freebsd

package store

import "syscall"

// space returns the free bytes of a directory's file system for this user, and its size. Both are 0 where they are
// unknown.
func space(dir string) (free, size int64) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, 0
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize) //nolint:unconvert // other types elsewhere
}
