//go:build unix

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// CheckRoom returns an error if the disk of a folder, which may not exist yet, has less free space than a number of
// megabytes.
func CheckRoom(dir string, megabytes int) error {
	for {
		_, err := os.Stat(dir)
		if parent := filepath.Dir(dir); err != nil && parent != dir {
			dir = parent
			continue
		}
		break
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if free := int(s.Bavail * uint64(s.Bsize) >> 20); free < megabytes {
		return fmt.Errorf("%s has %d MB free, and %d MB are needed", dir, free, megabytes)
	}
	return nil
}
