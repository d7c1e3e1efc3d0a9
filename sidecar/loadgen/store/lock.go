package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

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
	PID     int    `json:"pid"`
	Owner   string `json:"owner"`
	Machine string `json:"machine,omitempty"` // differs where the lock may not apply
	Claim   string `json:"claim,omitempty"`   // id of this opening; empty after closing
}

// takeLock locks the directory and writes its holder. Both files remain when
// the lock is released: removing them would race with the next process.
func takeLock(ctx context.Context, dir, owner string, beat time.Duration) (*flock.Flock, *claim, error) {
	lock := newLock(dir)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, nil, fmt.Errorf("locking the data directory: %w", err)
	}
	if !locked {
		return nil, nil, lockedBy(dir)
	}
	c, err := takeClaim(ctx, dir, holder{PID: os.Getpid(), Owner: owner, Machine: machine(), Claim: rand.Text()}, beat)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return lock, c, nil
}

// claim is a second lock on a directory. On a network file system the first one may hold within one machine only. The
// holder touches lock.json once every beat. A process on another machine takes the directory after several beats
// without a touch. The first process, which may have been suspended meanwhile, then finds the other claim in lock.json
// and stops writing. No clocks are compared.
type claim struct {
	path string
	holder
	beat time.Duration

	mu      sync.Mutex
	touched time.Time
}

// beats is the number of missed touches after which a claim has expired.
const beats = 5

func takeClaim(ctx context.Context, dir string, by holder, beat time.Duration) (*claim, error) {
	path := holderPath(dir)
	if last := readHolder(path); last.Claim != "" && last.Machine != by.Machine {
		before := touches(path)
		select {
		case <-time.After(beats * beat):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if touches(path) != before {
			return nil, lockedBy(dir)
		}
	}
	c := &claim{path: path, holder: by, beat: beat}
	if err := writeHolder(path, by); err != nil {
		return nil, fmt.Errorf("writing the lock file: %w", err)
	}
	return c, nil
}

// touches returns the time of a file's last touch. The file is opened, since network file systems ask their server
// then.
func touches(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	return info.ModTime().String()
}

// check gives errTaken if another process has taken the directory, and touches the file once every beat.
func (c *claim) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := readHolder(c.path); now.Claim != "" && now.Claim != c.Claim {
		return fmt.Errorf("%w: process %d at %s", errTaken, now.PID, now.Owner)
	}
	if now := time.Now(); now.Sub(c.touched) >= c.beat {
		c.touched = now
		_ = os.Chtimes(c.path, now, now) // after a failure only the first lock protects
	}
	return nil
}

// release marks lock.json as free for processes on any machine.
func (c *claim) release() {
	if c.check() == nil {
		// after a failure the next process waits for the claim to expire
		_ = writeHolder(c.path, holder{PID: c.PID, Owner: c.Owner})
	}
}

// machine identifies the machine, by the id of its boot where the system has one, else by its name.
func machine() string {
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(id))
	}
	name, _ := os.Hostname() // without a name only the first lock protects
	return name
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

// readHolder returns the readable part of the file, which may be incomplete during a write.
func readHolder(path string) (by holder) {
	if text, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(text, &by) // the error names an unreadable holder "another process"
	}
	return by
}
