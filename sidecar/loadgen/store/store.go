// Package store keeps conversations, turns, steps, baselines, events and settings
// in one SQLite file.
//
// Records of the workload are saved without waiting: they enter a bounded queue,
// and one goroutine commits them in batches, at most 200 ms after their arrival
// while the disk works. While it fails, the batch is retried with growing pauses,
// the queue fills, and turns that no longer fit are counted as lost. Changes by
// an operator (events, settings, baselines) are committed before the call returns.
//
// The file is in WAL mode with synchronous=FULL. A commit in WAL mode has been
// handed to the operating system, so that kill −9 loses nothing committed with
// either NORMAL or FULL. FULL also syncs the log at each commit, so that results
// survive a power failure. The price is at most ten syncs a second, in a goroutine
// that no measurement waits for.
//
// Reads have their own connections and see only what is committed.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"kvbooth/sidecar/api"
)

// Options configure the place of a store and how much it keeps.
type Options struct {
	Dir              string        // created if it does not exist
	Owner            string        // address of this process, for the error of a second process
	MaxConversations int           // the oldest ended ones beyond it are removed; 0: no limit
	MaxAge           time.Duration // of an ended conversation, since its start; 0: no limit
	// MaxBytes limits the database file without its log. Beyond it the oldest ended conversations are removed. 0 means
	// no limit; otherwise it is at least MinBytes. Three quarters of the disk, and MinBytes, are a limit in any case: a
	// database that has filled its disk could not delete anything.
	MaxBytes int64
	Log      *slog.Logger     // nil disables the log
	Now      func() time.Time // the clock for ages; nil means time.Now
}

// limits are constants that tests lower.
type limits struct {
	gather             time.Duration // from the first record's arrival to the commit of a batch
	batch              int           // records in one transaction
	retryMin, retryMax time.Duration // pauses after a failed commit
	prune              time.Duration // between two checks of the file and the limits
	queue              bounds
	checked            int64 // size up to which a file is checked as a whole at each start
	disk               func(dir string) (bytes int64)
}

var defaultLimits = limits{
	gather: 100 * time.Millisecond, batch: 500,
	retryMin: 200 * time.Millisecond, retryMax: 2 * time.Second,
	prune:   time.Second,
	queue:   bounds{turns: 4096, bytes: 32 << 20, others: 20_000},
	checked: 64 << 20, disk: diskSize,
}

// Store is an open store. All methods are safe for concurrent use.
type Store struct {
	opts   Options
	limits limits
	path   string
	lock   *flock.Flock
	file   fs.FileInfo // of the opened database
	opened time.Time
	write  *sql.DB // one connection: SQLite has one writer
	// prepared holds statements of write by their text. Closing write closes them.
	prepared map[string]*sql.Stmt
	read     *sql.DB

	paging  chan struct{} // holds a token while a page of turns is read
	queue   *queue
	lost    atomic.Int64
	stored  atomic.Int64
	full    atomic.Bool // the queue refused a record since the last commit
	closing chan struct{}
	stopped chan struct{} // closed when the writer has ended
	close   func() error

	mu      sync.Mutex
	problem string                     // why the last commit failed; empty after a success
	notice  string                     // describes rebuilt indexes
	damage  map[string]map[string]bool // records that cannot be read, by kind and name
}

// Open locks the directory, opens the store in it, migrates its schema, marks
// conversations that a killed process left active as cancelled, and starts the
// writer. ctx bounds the opening only; [Store.Close] ends the writer. If another
// process uses the directory the error is a [*LockedError], and an [api.FieldError] if no directory is named.
func Open(ctx context.Context, opts Options) (*Store, error) {
	return open(ctx, opts, defaultLimits)
}

func open(ctx context.Context, opts Options, limits limits) (*Store, error) {
	if opts.Dir == "" {
		return nil, api.Refuse("data_dir", `""`, "a directory")
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("the data directory %s: %w", opts.Dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	if most := limits.disk(dir) / 4 * 3; most > 0 && (opts.MaxBytes == 0 || opts.MaxBytes > most) {
		opts.MaxBytes = max(most, MinBytes)
	}
	lock, err := takeLock(dir, opts.Owner)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts: opts, limits: limits, path: filepath.Join(dir, "kvbooth.db"), opened: time.Now(),
		lock: lock, queue: newQueue(limits.queue),
		paging: make(chan struct{}, 1), closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.close = sync.OnceValue(s.shutDown)
	_ = os.Remove(filepath.Join(dir, "kvbooth.reserve")) // up to 4 MiB of an earlier version
	if err := s.openFile(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store %s: %w", s.path, err), s.closeFile())
	}
	go s.run()
	return s, nil
}

// readers is the number of connections that read concurrently.
const readers = 4

func (s *Store) openFile(ctx context.Context) (err error) {
	if err := s.keepPrivate(); err != nil {
		return err
	}
	if s.read, err = openDB(s.path, readers, "cache_size(-512)", "query_only(1)"); err != nil {
		return err
	}
	found := s.check(ctx)
	if found != nil && !errors.Is(found, errDamaged) {
		return found
	}
	pragmas := []string{"cache_size(-8192)", "journal_mode(WAL)", "synchronous(FULL)", "journal_size_limit(16777216)"}
	if s.file.Size() == 0 { // later it has no effect
		pragmas = slices.Insert(pragmas, 0, "auto_vacuum(INCREMENTAL)")
	}
	if s.write, err = openDB(s.path, 1, pragmas...); err != nil {
		return err
	}
	if found != nil {
		if err := s.rebuildIndexes(ctx, found); err != nil {
			return err
		}
	}
	if err := migrate(ctx, s.write); err != nil {
		return err
	}
	if err := recoverFromKill(ctx, s.write); err != nil {
		return err
	}
	return s.prepare(ctx)
}

// keepPrivate makes the files of the store accessible to their owner only,
// regardless of the directory's mode and the umask. SQLite gives its files beside
// the database the same mode.
func (s *Store) keepPrivate() error {
	file, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.file, err = file.Stat()
	_ = file.Close() // nothing was written
	if err != nil {
		return err
	}
	for _, path := range append(s.databaseFiles(), s.lock.Path(), holderPath(filepath.Dir(s.path))) {
		// Without such modes, or with another owner, the file can still be used.
		if err := os.Chmod(path, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.opts.Log.Warn("the store may be readable by other users", "error", err)
		}
	}
	return nil
}

// Close commits the queued records, or counts them as lost after one last attempt,
// ends the writer and releases the directory. Records saved afterwards are lost.
// Later calls return the first call's error.
func (s *Store) Close() error { return s.close() }

func (s *Store) shutDown() error {
	s.queue.close()
	close(s.closing)
	<-s.stopped
	var err error
	if problem := s.Status().Problem; problem != "" {
		err = errors.New(problem)
	}
	return errors.Join(err, s.closeFile())
}

// closeFile closes the open connections and releases the directory. Readers are
// closed first, so that closing the writer removes the log.
func (s *Store) closeFile() error {
	var err error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return errors.Join(err, s.lock.Close())
}

// Status reports whether ended turns reach the disk.
func (s *Store) Status() api.StoreStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return api.StoreStatus{
		Path: s.path, OK: s.problem == "", Problem: s.problem, Notice: s.notice, Damage: s.describeDamage(),
		StoredTurns: s.stored.Load(), LostTurns: s.lost.Load(),
	}
}

// LostTurns returns the number of ended turns that could not be stored since [Open].
func (s *Store) LostTurns() int64 { return s.lost.Load() }

// unavailable wraps an error of the file in [api.ErrUnavailable], and leaves an error of a context.
func unavailable(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%w: %s: %w", api.ErrUnavailable, doing, err)
}
