package process

import (
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// TryLock takes a lock between processes. ok is false if another process holds it. The lock file remains after unlock.
func TryLock(path string) (unlock func(), ok bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, false, err
	}
	l := flock.New(path)
	ok, err = l.TryLock()
	return func() { _ = l.Unlock() }, ok, err
}
