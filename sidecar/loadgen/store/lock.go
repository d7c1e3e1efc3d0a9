package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

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
	PID     int    `json:"pid"`
	Owner   string `json:"owner"`
	Machine string `json:"machine,omitempty"` // differs where the lock may not reach
	Claim   string `json:"claim,omitempty"`   // of this one opening; empty once it is closed
}

// takeLock locks the directory and writes who holds it. Both files stay when
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
		return nil, nil, joinErrors(err, lock.Close())
	}
	return lock, c, nil
}

// claim is the second lock on a directory, for network file systems, on which the first may hold within one machine
// alone. Whoever has the directory touches lock.json once a beat. A process of another machine takes the directory
// only after it saw no touch for some beats; a process that was suspended meanwhile finds the claim of the other in
// lock.json, and writes nothing more. Clocks are compared nowhere.
type claim struct {
	path string
	holder
	beat time.Duration

	mu      sync.Mutex
	touched time.Time
}

// beats is how many of them may be missed.
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

// touches is when a file was last touched. It is opened, since only then do network file systems ask their server.
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

// check says whether another process has taken the directory, and touches the file when that is due.
func (c *claim) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := readHolder(c.path); now.Claim != "" && now.Claim != c.Claim {
		return fmt.Errorf("%w: process %d at %s", errTaken, now.PID, now.Owner)
	}
	if now := time.Now(); now.Sub(c.touched) >= c.beat {
		c.touched = now
		_ = os.Chtimes(c.path, now, now) // where that fails, the first lock is all there is
	}
	return nil
}

// release leaves lock.json for the next process of any machine.
func (c *claim) release() {
	if c.check() == nil {
		_ = writeHolder(c.path, holder{PID: c.PID, Owner: c.Owner}) // at worst the next process waits for some beats
	}
}

// machine tells machines apart: by their boot where the system has an id of it, else by their name.
func machine() string {
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(id))
	}
	name, _ := os.Hostname() // without one, locks are all there is
	return name
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
