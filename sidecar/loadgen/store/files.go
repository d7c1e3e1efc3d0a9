package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Reasons why a database is not used or not written any more.
var (
	errDamaged = errors.New("the database is damaged")
	errIndexes = fmt.Errorf("%w: an index differs from its table", errDamaged)
	errForeign = errors.New("it is no database of this program")
	errNewer   = errors.New("a newer version of the program made it")
	errGone    = errors.New("was removed or replaced while in use")
	errTaken   = errors.New("another process has taken the data directory")
)

// Advice returns the remedy for an error of [Open] or of a write.
func Advice(err error) string {
	code := codeOf(err)
	switch {
	case errors.Is(err, errNewer):
		return "use that version"
	case errors.Is(err, errForeign):
		return "move it out of the directory"
	case errors.Is(err, errDamaged), damaged(err):
		return "keep a copy for recovery and restore a backup, or move it out of the directory to start with an empty one"
	case errors.Is(err, errGone):
		return "put it back, or restart the load generator to start with an empty one"
	case errors.Is(err, errTaken):
		return "stop one of the two"
	case code == sqlite3.SQLITE_FULL:
		return "free space on the disk"
	case code == sqlite3.SQLITE_READONLY, errors.Is(err, fs.ErrPermission):
		return "make it writable"
	}
	return "free space on the disk or make it writable"
}

// files monitors the files of a store. SQLite does not detect these faults: it writes to a file that was removed, and
// to a file that another program has overwritten.
type files struct {
	mu      sync.Mutex             // held while the database file is examined or changed
	known   map[string]fs.FileInfo // by path
	stamp   fs.FileInfo            // the database file after its last checkpoint; only a checkpoint changes it
	damage  error                  // the damage found in the file, which stops all writes
	pending int                    // estimated bytes in the log since the last checkpoint
}

// databaseFiles lists the database and SQLite's files beside it.
func (s *Store) databaseFiles() []string { return []string{s.path, s.path + "-wal", s.path + "-shm"} }

// watch records the present state of the files.
func (s *Store) watch() (err error) {
	s.files.known = map[string]fs.FileInfo{}
	for _, path := range append(s.databaseFiles(), s.lock.Path()) {
		if s.files.known[path], err = os.Stat(path); err != nil {
			return err
		}
	}
	s.files.stamp = s.files.known[s.path]
	return nil
}

// intact returns the reason why the store must not write now. A file that was put back can be used again, a damaged one
// cannot.
func (s *Store) intact(ctx context.Context) error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return s.intactLocked(ctx)
}

func (s *Store) intactLocked(ctx context.Context) error {
	f := &s.files
	if f.damage != nil {
		return f.damage
	}
	if err := s.claim.check(); err != nil {
		return err
	}
	for path, known := range f.known {
		now, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(known, now):
			return fmt.Errorf("%s %w", filepath.Base(path), errGone)
		case err != nil:
			return err
		case path == s.path && (now.Size() != f.stamp.Size() || !now.ModTime().Equal(f.stamp.ModTime())):
			if err := s.examine(ctx); err != nil {
				return err
			}
			f.stamp = now
		}
	}
	return nil
}

// examine checks the whole file after another program has changed it. The change may be harmless.
func (s *Store) examine(ctx context.Context) error {
	// PRAGMA shrink_memory drops the cache, so that the check reads the file.
	if _, err := s.write.ExecContext(ctx, "PRAGMA shrink_memory"); err != nil {
		return err
	}
	if err := integrityCheck(ctx, s.write); err != nil {
		if errors.Is(err, errDamaged) {
			s.files.damage = fmt.Errorf("another program changed the file: %w", err)
			s.opts.Log.Error("the database was damaged by another program; nothing is written to it any more",
				"path", s.path, "error", err)
		}
		return err
	}
	s.opts.Log.Warn("another program changed the database file, which is intact", "path", s.path)
	return nil
}

// integrityCheck compares a database's tables with their indexes. It gives errDamaged with the first fault, as
// errIndexes where the tables are whole.
func integrityCheck(ctx context.Context, db *sql.DB) error {
	err := pragmaCheck(ctx, db, "PRAGMA integrity_check(1)")
	if !errors.Is(err, errDamaged) {
		return err
	}
	if quick := pragmaCheck(ctx, db, "PRAGMA quick_check(1)"); quick != nil { // it reads all but the indexes' entries
		return quick
	}
	return fmt.Errorf("%w: %w", errIndexes, err)
}

func pragmaCheck(ctx context.Context, db *sql.DB, pragma string) error {
	var found string
	err := db.QueryRowContext(ctx, pragma).Scan(&found)
	switch {
	case damaged(err):
		return fmt.Errorf("%w: %w", errDamaged, err)
	case err == nil && found != "ok":
		return fmt.Errorf("%w: %.200s", errDamaged, found)
	}
	return unavailable("checking the database", err)
}

// rebuildIndexes makes the indexes anew from whole tables.
func (s *Store) rebuildIndexes(ctx context.Context, cause error) error {
	_, err := s.write.ExecContext(ctx, "REINDEX")
	if err == nil {
		err = integrityCheck(ctx, s.write)
	}
	if err != nil {
		return fmt.Errorf("%w; the indexes cannot be rebuilt: %w", cause, err)
	}
	s.notice = "the database was damaged: an index differed from its table, and was rebuilt; check the disk"
	s.opts.Log.Warn("the database was damaged; its indexes have been rebuilt from their tables, which are whole",
		"path", s.path, "error", cause)
	return nil
}

// noteDamage records that a stored record, of a kind in the plural, cannot be read. The first of a kind is logged.
func (s *Store) noteDamage(kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage[kind] == nil {
		if s.damage == nil {
			s.damage = map[string]map[string]bool{}
		}
		s.damage[kind] = map[string]bool{}
		s.opts.Log.Error("the database is damaged; what can be read is used", "path", s.path, "unreadable", kind,
			"first", name)
	}
	s.damage[kind][name] = true
}

// describeDamage returns what cannot be read; "" if nothing is known to be damaged. The lock is held.
func (s *Store) describeDamage() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(s.damage)) {
		all = append(all, fmt.Sprintf("%s (%d)", kind, len(s.damage[kind])))
	}
	if all == nil {
		return ""
	}
	return fmt.Sprintf("%v %s: unreadable %s; %s", errDamaged, s.path, strings.Join(all, ", "), Advice(errDamaged))
}

func damaged(err error) bool {
	code := codeOf(err)
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

// codeOf returns the primary code of an SQLite error, 0 for any other error.
func codeOf(err error) int {
	var sqliteErr *sqlite.Error
	if !errors.As(err, &sqliteErr) {
		return 0
	}
	return sqliteErr.Code() & 0xff // the low byte is the primary code
}

// change runs f in a transaction. bytes estimates what it adds to the file.
func (s *Store) change(ctx context.Context, bytes int, f func(*sql.Tx) error) error {
	if err := s.intact(ctx); err != nil {
		return err
	}
	err := inTransaction(ctx, s.write, f)
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if damaged(err) {
		s.files.damage = fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err == nil {
		s.files.pending += bytes + perRecord
	}
	return err
}

// perRecord estimates the bytes that a record adds to the log beside its texts.
const perRecord = 4096

// checkpoint moves the log into the database file if at least so many bytes are pending.
func (s *Store) checkpoint(ctx context.Context, least int) error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if s.files.pending < max(least, 1) {
		return nil
	}
	if err := s.intactLocked(ctx); err != nil {
		return err
	}
	_, err := query(ctx, s.write, "moving the log into the database",
		func(*sql.Rows) (none struct{}, err error) { return none, nil }, "PRAGMA wal_checkpoint")
	if err == nil {
		s.files.pending = 0
	}
	now, failed := os.Stat(s.path) // a failed checkpoint may have written, too
	if failed == nil {
		s.files.stamp = now
	}
	return err
}

// pin returns a connection that has read. While it is open, SQLite does not move the log into the database and remove
// it when the other connections are closed. To keep the files as they are, it stays open until the process ends.
func pin(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	c, err := db.Conn(ctx)
	if err == nil {
		_, err = c.ExecContext(ctx, "SELECT 1 FROM sqlite_schema")
	}
	return c, err
}

// A full disk stops deletions and checkpoints as well, so that a reserve is kept for them. The size of the reserve,
// and the free space beside it, depend on the size of the disk.
const (
	minReserve = 1 << 20
	maxReserve = 4 << 20
)

// disk describes the disk of the store.
type disk struct {
	free, size int64 // 0: unknown
	reserve    int64 // bytes to keep in reserve
	held       bool  // the reserve exists
}

func (s *Store) reservePath() string { return filepath.Join(filepath.Dir(s.path), "kvbooth.reserve") }

func (s *Store) disk() (d disk) {
	d.free, d.size = s.limits.space(filepath.Dir(s.path))
	d.reserve = min(max(d.size/8, minReserve), maxReserve)
	info, err := os.Stat(s.reservePath())
	d.held = err == nil && info.Size() >= d.reserve
	return d
}

// short returns the bytes missing for the reserve and as much free space again; none if 0 or less.
func (d disk) short() int64 {
	if d.size == 0 {
		return 0
	}
	need := d.reserve
	if !d.held {
		need += d.reserve
	}
	return need - d.free
}

// filledBy reports whether a database of so many bytes is a considerable part of the disk. Otherwise other files fill
// the disk, and deleting conversations would not help for long.
func (d disk) filledBy(bytes int64) bool { return bytes >= d.size/4 }

// release deletes the reserve and reports whether there was one.
func (s *Store) release() bool {
	return os.Remove(s.reservePath()) == nil
}

// keepReserve makes the reserve if there is room for it.
func (s *Store) keepReserve(d disk) {
	if d.held || d.size == 0 || d.short() > 0 {
		return
	}
	zeros := make([]byte, 1<<20)
	file, err := os.OpenFile(s.reservePath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_ = file.Chmod(0o600) // regardless of the umask
	}
	for n := int64(0); err == nil && n < d.reserve; n += int64(len(zeros)) {
		_, err = file.Write(zeros[:min(int64(len(zeros)), d.reserve-n)])
	}
	if file != nil {
		err = errors.Join(err, file.Close())
	}
	if err != nil { // an incomplete reserve is removed
		_ = os.Remove(s.reservePath())
	}
}

// inspect checks the header of a database file before the first write. created reports whether this process has created
// the file, which is empty then. An empty file that existed has lost its content.
func inspect(path string, created bool) error {
	log := path + "-wal"
	if info, err := os.Stat(log); created && err == nil && info.Size() > 0 {
		return fmt.Errorf("%w: it is missing beside its log %s", errDamaged, filepath.Base(log))
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	header := make([]byte, 100)
	n, err := file.ReadAt(header, 0)
	switch {
	case n == 0 && created:
		return nil
	case n == 0:
		return fmt.Errorf("%w: the file is empty", errDamaged)
	case n < len(header):
		return fmt.Errorf("%w: it has %d bytes", errForeign, n)
	case err != nil:
		return err
	case string(header[:16]) != "SQLite format 3\x00":
		return fmt.Errorf("%w: it does not begin as an SQLite database does", errForeign)
	}
	return nil
}

// inspectTables checks the tables before the first write. It gives an error for a database that is damaged, or of
// another program or a newer version.
func (s *Store) inspectTables(ctx context.Context) error {
	db, err := openDB(s.path, 2, "query_only(1)")
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := pin(ctx, db)
	if err == nil {
		err = s.checkTables(ctx, db)
	}
	if err == nil {
		err = c.Close()
	}
	if damaged(err) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

func (s *Store) checkTables(ctx context.Context, db *sql.DB) error {
	var found, known, tables int
	err := db.QueryRowContext(ctx, `SELECT user_version, count(name),
		count(CASE WHEN name IN ('conversations', 'turns', 'steps', 'events', 'documents') THEN 1 END)
		FROM pragma_user_version LEFT JOIN sqlite_schema ON type = 'table'`).Scan(&found, &tables, &known)
	version := len(migrations)
	switch {
	case err != nil:
		return err
	case tables == 0 && found == 0:
		return nil
	case known == 0:
		return fmt.Errorf("%w: it has other tables", errForeign)
	case found > version:
		return fmt.Errorf("%w: its schema has version %d, and this program supports up to %d", errNewer, found, version)
	case known < 5:
		return fmt.Errorf("%w: only %d of its 5 tables exist", errDamaged, known)
	}
	if info, err := os.Stat(s.path); err != nil || info.Size() > s.limits.checked {
		return err
	}
	return integrityCheck(ctx, db)
}
