package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// LockedError says that another process uses the data directory.
type LockedError struct {
	Path  string // of the data directory
	Owner string // that process's address; empty if it could not be read
	PID   int    // its process id; 0 if it could not be read
}

// Error names the first process and says what to do.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if e.Owner != "" {
		who += " at " + e.Owner
	}
	return fmt.Sprintf("the data directory %s is in use by %s: stop it, or choose another directory", e.Path, who)
}

// holder is what a process that holds the lock tells of itself, in a file of
// its own: where locks are mandatory, the locked file cannot be read.
type holder struct {
	PID   int    `json:"pid"`
	Owner string `json:"owner"`
}

// takeLock locks the directory and writes who holds it. Both files stay when
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
	if err := writeHolder(holderPath(dir), holder{os.Getpid(), owner}); err != nil {
		return nil, joinErrors(fmt.Errorf("writing the lock file: %w", err), lock.Close())
	}
	return lock, nil
}

// Locked gives the [*LockedError] that [Open] would give now, nil where it would
// give none. It makes no file.
func Locked(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(holderPath(dir)); err != nil {
		return nil // nobody has ever had it
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

func lockedBy(dir string) *LockedError {
	by := readHolder(holderPath(dir))
	return &LockedError{Path: dir, Owner: by.Owner, PID: by.PID}
}

func writeHolder(path string, by holder) error {
	text, err := json.Marshal(by)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// readHolder gives what it can read: the file may be just being written.
func readHolder(path string) (by holder) {
	if text, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(text, &by) // an unreadable holder is named "another process"
	}
	return by
}
