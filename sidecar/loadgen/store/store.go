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
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"kvbooth/sidecar/api"
)

// Options say where the store is and how much it keeps.
type Options struct {
	Dir              string           // is made if it does not exist
	Owner            string           // this process's address, for the message to a second process
	MaxConversations int              // beyond it the oldest ended ones are removed; 0: no limit
	MaxAge           time.Duration    // of an ended conversation since its start; 0: no limit
	MaxBytes         int64            // of the database file, its log aside, beyond which the oldest ended conversations are removed; 0: no limit, else at least MinBytes
	Log              *slog.Logger     // nil: no log
	Now              func() time.Time // what age counts from; nil: time.Now
}

// limits are what tests make smaller.
type limits struct {
	gather             time.Duration // from the first arrival to the commit of a batch
	batch              int           // records in one transaction
	retryMin, retryMax time.Duration // pauses after a failed commit
	prune              time.Duration // between two looks at what is too old or too much
	queue              bounds
	beat               time.Duration // between two touches of lock.json
	space              func(dir string) (free, size int64)
}

var defaultLimits = limits{
	gather: 100 * time.Millisecond, batch: 500,
	retryMin: 200 * time.Millisecond, retryMax: 2 * time.Second,
	prune: time.Second,
	queue: bounds{turns: 4096, bytes: 32 << 20, others: 20_000},
	beat:  time.Second, space: space,
}

// Store is an open store. All methods are safe for concurrent use.
type Store struct {
	opts   Options
	limits limits
	path   string
	lock   *flock.Flock
	claim  *claim
	files  files
	made   made
	opened time.Time
	write  *sql.DB // one connection: SQLite has one writer
	// prepared are statements of that connection, by their text; closing it closes them.
	prepared map[string]*sql.Stmt
	read     *sql.DB
	pin      *sql.Conn // of read

	paging  chan struct{} // holds a word while a page of turns is read
	queue   *queue
	lost    atomic.Int64
	stored  atomic.Int64
	full    atomic.Bool // the queue refused a record since the last commit
	closing chan struct{}
	stopped chan struct{} // closed when the writer has ended
	close   func() error

	mu      sync.Mutex
	problem string // why the last commit failed; empty: it did not
	notice  string // what was removed for want of space
	removed int    // conversations, for that
}

// Open locks the directory, opens the store in it, brings its schema up to
// date, marks conversations that a killed process left active as cancelled, and
// starts the writer. ctx bounds the opening alone; [Store.Close] ends the rest.
// If another process has the directory the error is a [*LockedError], and an
// [api.FieldError] if an option is impossible.
func Open(ctx context.Context, opts Options) (*Store, error) {
	return open(ctx, opts, defaultLimits)
}

func open(ctx context.Context, opts Options, limits limits) (*Store, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("the data directory %s: %w", opts.Dir, err)
	}
	made := missing(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	lock, claim, err := takeLock(ctx, dir, opts.Owner, limits.beat)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts: opts, limits: limits, path: filepath.Join(dir, "kvbooth.db"), opened: time.Now(),
		lock: lock, claim: claim, made: made, queue: newQueue(limits.queue),
		paging: make(chan struct{}, 1), closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.close = sync.OnceValue(s.shutDown)
	if err := s.openFile(ctx); err != nil {
		return nil, joinErrors(fmt.Errorf("opening the store %s: %w", s.path, err), s.closeFile())
	}
	s.keepReserve(s.disk())
	go s.run()
	return s, nil
}

// complete checks the options and fills in what was left out.
func (o *Options) complete() error {
	if o.Dir == "" {
		return &api.FieldError{Field: "data_dir", Value: `""`, Allowed: "a directory"}
	}
	if o.MaxConversations < 0 {
		return &api.FieldError{Field: "max_conversations", Value: fmt.Sprint(o.MaxConversations), Allowed: "a whole number from 0 (no limit)"}
	}
	if o.MaxAge < 0 {
		return &api.FieldError{Field: "max_age", Value: o.MaxAge.String(), Allowed: "a duration from 0 (no limit)"}
	}
	if o.MaxBytes != 0 && o.MaxBytes < MinBytes {
		return &api.FieldError{Field: "max_bytes", Value: fmt.Sprint(o.MaxBytes), Allowed: fmt.Sprintf("a whole number from %d, or 0 (no limit)", MinBytes)}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

func (s *Store) openFile(ctx context.Context) (err error) {
	if err := s.keepPrivate(); err != nil {
		return err
	}
	if err := inspect(s.path); err != nil {
		return err
	}
	if s.disk().short() > 0 {
		s.release() // SQLite needs some room to open a database
	}
	if err := inspectTables(ctx, s.path); err != nil {
		return err
	}
	// auto_vacuum counts where the file is still empty; checkpoints are the writer's
	s.write, err = openDB(s.path, 1, "cache_size(-8192)", "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(FULL)",
		"journal_size_limit(16777216)", "wal_autocheckpoint(0)")
	if err != nil {
		return err
	}
	if err := migrate(ctx, s.write); err != nil {
		return err
	}
	if err := s.makeShrinkable(ctx); err != nil {
		return err
	}
	if err := recoverFromKill(ctx, s.write); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if s.read, err = openDB(s.path, readers+1, "cache_size(-512)", "query_only(1)"); err != nil {
		return err
	}
	if err := s.openReaders(ctx); err != nil {
		return err
	}
	return s.watch()
}

// readers is how many connections read at once.
const readers = 4

// openReaders opens all connections now: to one that is opened later, a file that was emptied meanwhile is a new
// database, whose log it removes.
func (s *Store) openReaders(ctx context.Context) (err error) {
	if s.pin, err = pin(ctx, s.read); err != nil {
		return err
	}
	var all [readers]*sql.Conn
	for i := range all {
		if all[i], err = pin(ctx, s.read); err != nil {
			break
		}
	}
	for _, c := range all {
		if c != nil {
			err = joinErrors(err, c.Close()) // into the pool
		}
	}
	return err
}

// keepPrivate leaves the files of the store to their owner alone, whatever the
// directory's mode and the umask say. SQLite gives its own files beside the
// database the mode of that.
func (s *Store) keepPrivate() error {
	file, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_ = file.Close() // nothing was written
	for _, path := range append(s.databaseFiles(), s.lock.Path(), holderPath(filepath.Dir(s.path))) {
		// Where there are no such modes, or another user owns the file, it can serve.
		if err := os.Chmod(path, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.opts.Log.Warn("the store may be readable by other users", "error", err)
		}
	}
	return nil
}

// Close commits what was handed in, or counts it as lost after one last
// attempt, ends the writer and releases the directory. Records handed in
// afterwards are lost. Later calls give the first one's error.
func (s *Store) Close() error { return s.close() }

func (s *Store) shutDown() error {
	s.queue.close()
	close(s.closing)
	<-s.stopped
	var err error
	if problem := s.Status().Problem; problem != "" {
		err = errors.New(problem)
	}
	if s.intact(context.Background()) != nil {
		s.pin = nil // stays open
	}
	return joinErrors(err, s.closeFile())
}

// made is what [Open] had to make: the outermost directory of its path that was missing, and whether there was no
// database before.
type made struct {
	root string // empty: all were there
	file bool
}

func missing(dir string) (m made) {
	_, err := os.Stat(filepath.Join(dir, "kvbooth.db"))
	m.file = errors.Is(err, fs.ErrNotExist)
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return m
		}
		m.root = dir
	}
}

// Discard closes the store, and removes the database and the directories that [Open] made, where it made them. It is
// for a start that is refused after all.
func (s *Store) Discard() error {
	err := s.Close()
	if !s.made.file {
		return err
	}
	dir := filepath.Dir(s.path)
	for _, path := range append(s.databaseFiles(), s.reservePath(), s.lock.Path(), holderPath(dir)) {
		_ = os.Remove(path) // what cannot be removed stays
	}
	for ; s.made.root != ""; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil || dir == s.made.root {
			break
		}
	}
	return err
}

// closeFile closes the connections that are open, the reading ones first so
// that the writing one leaves no log behind, and releases the directory.
func (s *Store) closeFile() error {
	var err error
	if s.pin != nil {
		err = s.pin.Close()
	}
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			err = joinErrors(err, db.Close())
		}
	}
	s.claim.release()
	return joinErrors(err, s.lock.Close())
}

// Status says whether finished turns reach the disk.
func (s *Store) Status() api.StoreStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return api.StoreStatus{
		Path: s.path, OK: s.problem == "", Problem: s.problem, Notice: s.notice,
		StoredTurns: s.stored.Load(), LostTurns: s.lost.Load(),
	}
}

// LostTurns counts the finished turns that could not be stored since [Open].
func (s *Store) LostTurns() int64 { return s.lost.Load() }

// unavailable is the error of a call that the file refused.
func unavailable(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%w: %s: %w", api.ErrUnavailable, doing, err)
}

// joinErrors is [errors.Join] that leaves a single error as it is.
func joinErrors(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}
