package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// migrations bring the schema from one version (PRAGMA user_version) to the next.
// They are only added to, never changed. Times are nanoseconds since 1970 in UTC.
// Data columns are the JSON of the type in package api, so that a new field of a
// turn needs no migration.
var migrations = []string{
	`CREATE TABLE conversations (
		id            TEXT PRIMARY KEY,
		lane          TEXT NOT NULL,
		number        INTEGER NOT NULL,
		topic         TEXT NOT NULL,
		topic_folded  TEXT NOT NULL, -- in lower case, for searching
		starter       TEXT NOT NULL,
		status        TEXT NOT NULL,
		turns_planned INTEGER NOT NULL,
		turns_done    INTEGER NOT NULL,
		started       INTEGER NOT NULL,
		ended         INTEGER
	);
	CREATE INDEX conversations_by_start ON conversations (started, id);
	CREATE INDEX conversations_by_status ON conversations (status, started, id);

	CREATE TABLE turns (
		seq               INTEGER PRIMARY KEY,
		conversation      TEXT NOT NULL,
		number            INTEGER NOT NULL,
		lane              TEXT NOT NULL,
		step              INTEGER NOT NULL,
		ended             INTEGER NOT NULL,
		data              TEXT NOT NULL, -- without the messages, which raw data leaves unread
		user_message      TEXT NOT NULL,
		assistant_message TEXT NOT NULL,
		UNIQUE (conversation, number)
	);
	CREATE INDEX turns_by_step ON turns (lane, step, seq);

	CREATE TABLE steps (
		seq     INTEGER PRIMARY KEY,
		lane    TEXT NOT NULL,
		id      INTEGER NOT NULL,
		started INTEGER NOT NULL,
		ended   INTEGER,
		data    TEXT NOT NULL,
		UNIQUE (lane, id)
	);

	CREATE TABLE events (
		id   INTEGER PRIMARY KEY AUTOINCREMENT,
		time INTEGER NOT NULL,
		lane TEXT NOT NULL,
		kind TEXT NOT NULL,
		by   TEXT NOT NULL,
		text TEXT NOT NULL
	);

	CREATE TABLE documents ( -- settings and baselines
		kind TEXT NOT NULL,
		name TEXT NOT NULL,
		data TEXT NOT NULL,
		PRIMARY KEY (kind, name)
	);`,
}

// migrate brings the schema to the newest version, one transaction a version.
func migrate(ctx context.Context, db *sql.DB) error {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		next := fmt.Sprintf("%s; PRAGMA user_version = %d", migrations[version], version+1)
		if err := inTransaction(ctx, db, func(tx *sql.Tx) error { return execute(ctx, tx, next) }); err != nil {
			return err
		}
	}
	return nil
}

// endSteps ends a step with its turn that was stored last. Comparing the end times
// of all turns would take seconds for a million.
const endSteps = `UPDATE steps SET
	ended = coalesce((SELECT ended FROM turns WHERE lane = steps.lane AND step = steps.id
		ORDER BY seq DESC LIMIT 1), started)
	WHERE ended IS NULL`

// validData is the data of a turn; that of a damaged one is empty.
const validData = "CASE WHEN json_valid(data) THEN data ELSE '{}' END"

// recoverFromKill ends the conversations and steps that a killed process left active:
// conversations as cancelled, steps with their last turn.
func recoverFromKill(ctx context.Context, db *sql.DB) error {
	return inTransaction(ctx, db, func(tx *sql.Tx) error {
		err := execute(ctx, tx, `UPDATE conversations SET status = 'cancelled',
			ended = coalesce((SELECT max(ended) FROM turns WHERE conversation = conversations.id), started),
			turns_done = max(turns_done, (SELECT count(*) FROM turns
				WHERE conversation = conversations.id AND (`+validData+`) ->> 'status' = 'ok'))
			WHERE status = 'active'`)
		if err != nil {
			return err
		}
		return execute(ctx, tx, endSteps)
	})
}

// openDB opens a pool of at most n connections to an existing file.
func openDB(path string, n int, pragmas ...string) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // the path begins with a drive letter
	}
	query := url.Values{
		"_pragma": append([]string{"busy_timeout(5000)"}, pragmas...), "_txlock": {"immediate"},
		"mode": {"rw"},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: slashed, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// inTransaction commits the changes of f, or none if it fails.
func inTransaction(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // has no effect after a commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func execute(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}
