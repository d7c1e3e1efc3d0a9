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

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Reasons why a database is not used or not written.
var (
	errDamaged = errors.New("the database is damaged")
	errForeign = errors.New("it is no database of this program")
	errNewer   = errors.New("a newer version of the program made it")
	errGone    = errors.New("was removed or replaced while in use")
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
	case code == sqlite3.SQLITE_FULL:
		return "free space on the disk"
	case code == sqlite3.SQLITE_READONLY, errors.Is(err, fs.ErrPermission):
		return "make it writable"
	}
	return "free space on the disk or make it writable"
}

// databaseFiles lists the database and SQLite's files beside it.
func (s *Store) databaseFiles() []string { return []string{s.path, s.path + "-wal", s.path + "-shm"} }

// present returns an error if the database is not the opened file. SQLite goes on writing to a file that was removed.
func (s *Store) present() error {
	now, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(s.file, now) {
		return fmt.Errorf("%s %w", filepath.Base(s.path), errGone)
	}
	return err
}

// change runs f in a transaction.
func (s *Store) change(ctx context.Context, f func(*sql.Tx) error) error {
	if err := s.present(); err != nil {
		return err
	}
	return inTransaction(ctx, s.write, f)
}

// check refuses a database that is damaged, or of another program or a newer version, before anything is written to it.
func (s *Store) check(ctx context.Context) error {
	var version, tables, known int
	err := s.read.QueryRowContext(ctx, `SELECT user_version, count(name),
		count(CASE WHEN name IN ('conversations', 'turns', 'steps', 'events', 'documents') THEN 1 END)
		FROM pragma_user_version LEFT JOIN sqlite_schema ON type = 'table'`).Scan(&version, &tables, &known)
	switch {
	case codeOf(err) == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", errForeign, err)
	case damaged(err):
		return fmt.Errorf("%w: %w", errDamaged, err)
	case err != nil:
		return err
	case tables > 0 && known == 0:
		return fmt.Errorf("%w: it has other tables", errForeign)
	case version > len(migrations):
		return fmt.Errorf("%w: its schema has version %d, and this program supports up to %d", errNewer, version,
			len(migrations))
	}
	if s.file.Size() > s.limits.checked {
		return nil
	}
	return integrityCheck(ctx, s.read)
}

// integrityCheck compares a database's tables with their indexes. It gives errDamaged with the first fault.
func integrityCheck(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) error {
	var found string
	err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&found)
	switch {
	case damaged(err):
		return fmt.Errorf("%w: %w", errDamaged, err)
	case err == nil && found != "ok":
		return fmt.Errorf("%w: %.200s", errDamaged, found)
	}
	return err
}

// rebuildIndexes makes the indexes anew. A database with other damage stays as it is, and gives the cause.
func (s *Store) rebuildIndexes(ctx context.Context, cause error) error {
	err := inTransaction(ctx, s.write, func(tx *sql.Tx) error {
		if err := execute(ctx, tx, "REINDEX"); err != nil {
			return err
		}
		return integrityCheck(ctx, tx)
	})
	if err != nil {
		return cause
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
