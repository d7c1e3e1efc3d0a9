package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// LockedError reports that another process uses the data directory.
type LockedError struct {
	Path  string // of the data directory
	Owner string // address of that process; empty if it could not be read
	PID   int    // process id; 0 if it could not be read
}

// Error names the other process and the remedy.
func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	if e.Owner != "" {
		holder += " at " + e.Owner
	}
	return fmt.Sprintf("the data directory %s is in use by %s: stop it, or choose another directory", e.Path, holder)
}

// holder describes the process that holds the lock. It has its own file, since a
// locked file cannot be read where locks are mandatory.
type holder struct {
	PID   int    `json:"pid"`
	Owner string `json:"owner"`
}

// takeLock locks the directory and writes its holder. Both files remain when
// the lock is released: removing them would race with the next process.
func takeLock(dir, owner string) (*flock.Flock, error) {
	lock := newLock(dir)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	if !locked {
		return nil, lockedBy(dir)
	}
	text, err := json.Marshal(holder{PID: os.Getpid(), Owner: owner})
	if err == nil {
		err = os.WriteFile(holderPath(dir), append(text, '\n'), 0o600)
	}
	if err != nil {
		_ = lock.Close() // the next process can have it
		return nil, fmt.Errorf("writing the lock file: %w", err)
	}
	return lock, nil
}

// Locked returns the [*LockedError] that [Open] would give now, nil where it would
// give none. It creates no file.
func Locked(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(holderPath(dir)); err != nil {
		return nil // the directory has never been used
	}
	lock := newLock(dir)
	defer lock.Close()
	if locked, err := lock.TryLock(); err != nil || locked {
		return nil
	}
	return lockedBy(dir)
}

func newLock(dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
}

func holderPath(dir string) string { return filepath.Join(dir, "lock.json") }

// lockedBy names the holder, as far as its file can be read: it may be incomplete during a write.
func lockedBy(dir string) *LockedError {
	var by holder
	if text, err := os.ReadFile(holderPath(dir)); err == nil {
		_ = json.Unmarshal(text, &by) // the error names an unreadable holder "another process"
	}
	return &LockedError{Path: dir, Owner: by.Owner, PID: by.PID}
}
