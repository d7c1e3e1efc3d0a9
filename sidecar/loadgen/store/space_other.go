//go:build !(linux || darwin || freebsd)

package store

func space(string) (free, size int64) { return 0, 0 }
