package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// ErrClosed reports a wait for a store that is closed.
var ErrClosed = errors.New("the store is closed")

// Statements that run for every turn. Each is prepared once, since SQLite takes longer to parse than to run it.
const (
	upsertConversation = `INSERT INTO conversations
		(id, lane, number, topic, topic_folded, starter, status, turns_planned, turns_done, started, ended)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET status = excluded.status,
		turns_planned = excluded.turns_planned, turns_done = excluded.turns_done, ended = excluded.ended`
	insertTurn = `INSERT INTO turns
		(lane, step, ended, data, user_message, assistant_message, conversation, number) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (conversation, number) DO NOTHING`
)

// prepare prepares the statements that run for every turn.
func (s *Store) prepare(ctx context.Context) error {
	s.prepared = map[string]*sql.Stmt{}
	for _, query := range []string{upsertConversation, insertTurn} {
		statement, err := s.write.PrepareContext(ctx, query) //nolint:sqlclosecheck // closed with its connection
		if err != nil {
			return err
		}
		s.prepared[query] = statement
	}
	return nil
}

// executePrepared runs a statement of [Store.prepare].
func (s *Store) executePrepared(ctx context.Context, tx *sql.Tx, query string, args ...any) (sql.Result, error) {
	statement := tx.StmtContext(ctx, s.prepared[query])
	defer statement.Close()
	return statement.ExecContext(ctx, args...)
}

// SaveConversation queues the present state of a conversation. The newest state
// of an id is kept. Turns are saved separately. It never blocks.
func (s *Store) SaveConversation(c api.Conversation) {
	s.enqueue(record{write: func(ctx context.Context, tx *sql.Tx) error {
		_, err := s.executePrepared(ctx, tx, upsertConversation,
			c.ID, c.Lane, c.Number, c.Topic, strings.ToLower(c.Topic), c.Starter, c.Status,
			c.TurnsPlanned, c.TurnsDone, c.Started.UnixNano(), nanos(c.Ended))
		return err
	}})
}

// SaveTurn queues an ended turn. The caller must not change the values behind its
// pointers afterwards. It never blocks. [Store.LostTurns] counts turns that find
// the queue full or that cannot be written.
func (s *Store) SaveTurn(t api.Turn) {
	user, assistant := t.UserMessage, t.AssistantMessage
	t.UserMessage, t.AssistantMessage = "", ""
	r := record{turn: true, bytes: len(user) + len(assistant), known: new(bool)}
	r.write = func(ctx context.Context, tx *sql.Tx) error {
		data, err := encode(t)
		if err != nil {
			return err
		}
		values := []any{t.Lane, t.Step, t.Ended.UnixNano(), data, user, assistant, t.Conversation, t.Number}
		done, err := s.executePrepared(ctx, tx, insertTurn, values...)
		if err != nil {
			return err
		}
		added, err := done.RowsAffected()
		if *r.known = added == 0; err != nil || !*r.known {
			return err
		}
		return execute(ctx, tx, `UPDATE turns SET lane = ?, step = ?, ended = ?, data = ?,
			user_message = ?, assistant_message = ? WHERE conversation = ? AND number = ?`, values...)
	}
	s.enqueue(r)
}

// SaveStep queues the present state of a step. The newest state of a lane's id is
// kept. It never blocks.
func (s *Store) SaveStep(r api.StepRecord) {
	ended := r.Ended
	r.Ended = nil // stored in a column, which recovery fills in
	s.enqueue(record{write: func(ctx context.Context, tx *sql.Tx) error {
		data, err := encode(r)
		if err != nil {
			return err
		}
		return execute(ctx, tx, `INSERT INTO steps (lane, id, started, ended, data) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (lane, id) DO UPDATE SET started = excluded.started, ended = excluded.ended, data = excluded.data`,
			r.Lane, r.ID, r.Started.UnixNano(), nanos(ended), data)
	}})
}

// enqueue adds a record to the queue or counts it as lost.
func (s *Store) enqueue(r record) {
	if s.queue.push(r) {
		return
	}
	if r.turn {
		s.lost.Add(1)
	}
	if !s.full.Swap(true) {
		s.opts.Log.Error("the store's queue is full or closed: new records are lost", "path", s.path)
	}
}

// Flush blocks until all records saved before are committed or counted as lost.
// The error is that of ctx, or [ErrClosed].
func (s *Store) Flush(ctx context.Context) error {
	mark := record{done: make(chan struct{})}
	if !s.queue.push(mark) {
		return ErrClosed
	}
	select {
	case <-mark.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the store: %w", context.Cause(ctx))
	}
}

// SaveEvent commits an event and returns it with its id. The error is an
// [api.ErrUnavailable] if the disk refuses it, or that of ctx.
func (s *Store) SaveEvent(ctx context.Context, e api.Event) (api.Event, error) {
	err := s.change(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "INSERT INTO events (time, lane, kind, by, text) VALUES (?, ?, ?, ?, ?)",
			e.Time.UnixNano(), e.Lane, e.Kind, e.By, e.Text)
		if err == nil {
			e.ID, err = done.LastInsertId()
		}
		return err
	})
	return e, unavailable("storing an event", err)
}

// Kinds of documents. There is one document of settings, with an empty name.
const (
	settingsKind = "settings"
	baselineKind = "baseline"
	sweepKind    = "sweep"
	secondsKind  = "sweep_seconds" // of a span; the name is the sweep's id, a slash and the span's index
	runKind      = "run"           // of the history
)

// SaveSweep commits a sweep, as JSON. If seconds is not empty, it also commits the
// seconds of the ended span at index place. Errors are those of [Store.SaveEvent].
func (s *Store) SaveSweep(ctx context.Context, id string, data []byte, place int, seconds []byte) error {
	err := s.change(ctx, func(tx *sql.Tx) error {
		if len(seconds) > 0 {
			if err := execute(ctx, tx, upsertDocument, secondsKind, fmt.Sprintf("%s/%06d", id, place),
				string(seconds)); err != nil {
				return err
			}
		}
		return execute(ctx, tx, upsertDocument, sweepKind, id, string(data))
	})
	return unavailable("storing a "+sweepKind, err)
}

// Sweeps returns all saved sweeps as JSON, by id.
func (s *Store) Sweeps(ctx context.Context) ([]json.RawMessage, error) {
	return documents[json.RawMessage](ctx, s, sweepKind)
}

// SweepSeconds returns the seconds of a sweep's spans, as JSON, by their index.
func (s *Store) SweepSeconds(ctx context.Context, id string) ([]json.RawMessage, error) {
	return readable(ctx, s, "documents", scanDocument[json.RawMessage], selectDocument+
		" AND name >= ? AND name < ? ORDER BY name", secondsKind, id+"/", id+"0")
}

// DeleteSweep deletes a sweep with the seconds of its spans. Turns are kept. Errors are
// those of [Store.SaveEvent].
func (s *Store) DeleteSweep(ctx context.Context, id string) error {
	err := s.change(ctx, func(tx *sql.Tx) error {
		err := execute(ctx, tx, "DELETE FROM documents WHERE kind = ? AND name >= ? AND name < ?", secondsKind, id+"/",
			id+"0")
		if err == nil {
			err = execute(ctx, tx, "DELETE FROM documents WHERE kind = ? AND name = ?", sweepKind, id)
		}
		return err
	})
	return unavailable("deleting a "+sweepKind, err)
}

// keepRuns is the number of newest runs that the history keeps.
const keepRuns = 2000

// SaveRun commits a run of the history. Ids sort by time; the oldest runs beyond 2,000 are removed. Errors are those of
// [Store.SaveEvent].
func (s *Store) SaveRun(ctx context.Context, r api.RunRecord) error {
	if err := s.saveDocument(ctx, runKind, r.ID, r); err != nil {
		return err
	}
	err := s.change(ctx, func(tx *sql.Tx) error {
		return execute(ctx, tx, `DELETE FROM documents WHERE kind = ?1 AND name IN (SELECT name FROM documents
			WHERE kind = ?1 ORDER BY name DESC LIMIT -1 OFFSET ?2)`, runKind, keepRuns)
	})
	return unavailable("shortening the history", err)
}

// Runs returns the runs of the history by id.
func (s *Store) Runs(ctx context.Context) ([]api.RunRecord, error) {
	return documents[api.RunRecord](ctx, s, runKind)
}

// AcceptRun sets whether later runs are compared with a run of the history, and returns it. The error is an
// [api.ErrNotFound], an *[api.FieldError] if a run to accept has no figures, or one of [Store.SaveEvent].
func (s *Store) AcceptRun(ctx context.Context, id string, accepted bool) (api.RunRecord, error) {
	all, err := s.Runs(ctx)
	if err != nil {
		return api.RunRecord{}, err
	}
	i := slices.IndexFunc(all, func(r api.RunRecord) bool { return r.ID == id })
	if i < 0 {
		return api.RunRecord{}, fmt.Errorf("%w: no run %q in the history", api.ErrNotFound, id)
	}
	r := &all[i]
	switch {
	case !accepted:
		r.Accepted = nil
	case !r.Measured():
		return api.RunRecord{}, api.Refuse("run", strconv.Quote(id), "a run that measured a TTFT; its verdict is: "+r.Verdict)
	default:
		r.Accepted = new(time.Now().UTC())
	}
	return all[i], s.saveDocument(ctx, runKind, id, all[i])
}

// SaveSettings commits the settings. Errors are those of [Store.SaveEvent].
func (s *Store) SaveSettings(ctx context.Context, v api.Settings) error {
	return s.saveDocument(ctx, settingsKind, "", v)
}

// Settings returns the settings that were saved last; false if none were.
func (s *Store) Settings(ctx context.Context) (api.Settings, bool, error) {
	list, err := documents[api.Settings](ctx, s, settingsKind)
	if err != nil || len(list) == 0 {
		return api.Settings{}, false, err
	}
	return list[0], true, nil
}

// SaveBaseline commits a baseline and replaces the one with its name. Errors are
// those of [Store.SaveEvent].
func (s *Store) SaveBaseline(ctx context.Context, b api.Baseline) error {
	return s.saveDocument(ctx, baselineKind, b.Name, b)
}

// DeleteBaseline deletes the baseline with a name, if there is one. Errors are
// those of [Store.SaveEvent].
func (s *Store) DeleteBaseline(ctx context.Context, name string) error {
	err := s.change(ctx, func(tx *sql.Tx) error {
		return execute(ctx, tx, "DELETE FROM documents WHERE kind = ? AND name = ?", baselineKind, name)
	})
	return unavailable("deleting a "+baselineKind, err)
}

// Baselines returns all saved baselines by name; the slice is never nil.
func (s *Store) Baselines(ctx context.Context) ([]api.Baseline, error) {
	return documents[api.Baseline](ctx, s, baselineKind)
}

const upsertDocument = `INSERT INTO documents (kind, name, data) VALUES (?, ?, ?)
	ON CONFLICT (kind, name) DO UPDATE SET data = excluded.data`

func (s *Store) saveDocument(ctx context.Context, kind, name string, v any) error {
	data, err := encode(v)
	if err != nil {
		return fmt.Errorf("storing a %s: %w", kind, err)
	}
	err = s.change(ctx, func(tx *sql.Tx) error { return execute(ctx, tx, upsertDocument, kind, name, data) })
	return unavailable("storing a "+kind, err)
}

const selectDocument = "SELECT kind || ' ' || name, data FROM documents WHERE kind = ?"

// documents returns the documents of a kind by name. Damaged ones are left out; [Store.Status] names them.
func documents[T any](ctx context.Context, s *Store, kind string) ([]T, error) {
	return readable(ctx, s, "documents", scanDocument[T], selectDocument+" ORDER BY name", kind)
}

func scanDocument[T any](rows *sql.Rows) (name string, v T, err error) {
	var data []byte
	if err = rows.Scan(&name, &data); err == nil {
		err = decode(data, &v)
	}
	return name, v, err
}

// encode returns JSON as text, so that SQLite's functions can read it.
func encode(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errEncoding, err)
	}
	return string(data), nil
}

// nanos converts a time to the value of a column, NULL for nil.
func nanos(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	n := t.UnixNano()
	return &n
}

// timeAt is the inverse of nanos.
func timeAt(n sql.NullInt64) *time.Time {
	if !n.Valid {
		return nil
	}
	t := time.Unix(0, n.Int64).UTC()
	return &t
}

// ReadBaselines returns the baselines in a directory's store, by name, also while a
// process uses the directory. It changes nothing. Without a store there are none.
func ReadBaselines(ctx context.Context, dir string) ([]api.Baseline, error) {
	return readDocuments[api.Baseline](ctx, dir, baselineKind)
}

// ReadRuns returns the history in a directory's store, as [ReadBaselines] does.
func ReadRuns(ctx context.Context, dir string) ([]api.RunRecord, error) {
	return readDocuments[api.RunRecord](ctx, dir, runKind)
}

func readDocuments[T any](ctx context.Context, dir, kind string) ([]T, error) {
	path, err := filepath.Abs(filepath.Join(dir, "kvbooth.db"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	db, err := openDB(path, 1, "query_only(1)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return documents[T](ctx, &Store{read: db, opts: Options{Log: slog.New(slog.DiscardHandler)}}, kind)
}
