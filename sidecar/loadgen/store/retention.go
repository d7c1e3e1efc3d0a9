package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// Bounds of the removal: a transaction removes little, so that the writer is soon
// back at its queue.
const (
	pruneBatch  = 250    // conversations
	vacuumBatch = 2_000  // pages given back to the disk
	spare       = 500    // free pages that the file keeps at least, for what is written next; twice that at most
	keepEvents  = 10_000 // the newest
	keepSteps   = 10_000
)

// rewritten is how many bytes of a file are rewritten at the start at most.
const rewritten = 32 << 20

// MinBytes is the least [Options.MaxBytes] that is a limit.
const MinBytes = 16 << 20

// prune removes a bounded part of what is too old or too much, and says whether
// there may be more of it. A failure is not serious: the next look tries again.
func (s *Store) prune() (more bool) {
	more, err := s.pruneOnce(context.Background())
	if err != nil {
		s.opts.Log.Debug("old conversations could not be removed", "error", err)
		return false
	}
	return more
}

func (s *Store) pruneOnce(ctx context.Context) (more bool, err error) {
	now, err := measure(ctx, s.read)
	if err != nil {
		return false, err
	}
	due, err := s.due(ctx, now)
	if err != nil {
		return false, err
	}
	err = inTransaction(ctx, s.write, func(tx *sql.Tx) error {
		if err := pruneRest(ctx, tx, due); err != nil || len(due) == 0 {
			return err
		}
		ids := make([]string, len(due))
		for i, c := range due {
			ids[i] = c.id
		}
		list, err := json.Marshal(ids)
		if err != nil {
			return err
		}
		if err := execute(ctx, tx, "DELETE FROM turns WHERE conversation IN (SELECT value FROM json_each(?))", string(list)); err != nil {
			return err
		}
		return execute(ctx, tx, "DELETE FROM conversations WHERE id IN (SELECT value FROM json_each(?))", string(list))
	})
	if err != nil {
		return false, err
	}
	vacuumed, err := s.vacuum(ctx, now)
	return len(due) > 0 || vacuumed, err
}

// size is what there is in the file.
type size struct {
	conversations     int
	pages, free, page int64 // free ones among all of them; bytes of one
	shrinks           bool  // the file can give free pages back
}

func measure(ctx context.Context, db *sql.DB) (size, error) {
	found, err := query(ctx, db, "measuring the store", func(rows *sql.Rows) (n size, err error) {
		return n, rows.Scan(&n.conversations, &n.pages, &n.free, &n.page, &n.shrinks)
	}, `SELECT (SELECT count(*) FROM conversations), page_count, freelist_count, page_size, auto_vacuum = 2
		FROM pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_auto_vacuum`)
	if err != nil {
		return size{}, err
	}
	return found[0], nil
}

// excess is how many conversations there are beyond the limits. Those in bytes are
// taken to be of average size; there is at least one.
func (s *Store) excess(n size) int {
	excess := 0
	if s.opts.MaxConversations > 0 {
		excess = n.conversations - s.opts.MaxConversations
	}
	used := n.pages - n.free
	if over := used - (s.opts.MaxBytes/n.page - 2*spare); s.opts.MaxBytes > 0 && over > 0 {
		excess = max(excess, 1, int(int64(n.conversations)*over/used))
	}
	return excess
}

// vacuum gives free pages back to the disk, but for a few.
func (s *Store) vacuum(ctx context.Context, n size) (some bool, err error) {
	if !n.shrinks || n.free <= 2*spare {
		return false, nil
	}
	// A statement that gives a row for each page has to be read to its end. Only
	// with the checkpoint does the file become shorter.
	for _, statement := range []string{fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(n.free-spare, vacuumBatch)), "PRAGMA wal_checkpoint"} {
		_, err = query(ctx, s.write, "shrinking the store", func(*sql.Rows) (none struct{}, err error) { return none, nil }, statement)
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// makeShrinkable rewrites a file of an earlier version, which could not give
// pages back. While much is in use that would take long: the file then keeps
// its size, and what is removed makes room inside it.
func (s *Store) makeShrinkable(ctx context.Context) error {
	n, err := measure(ctx, s.write)
	if err != nil || n.shrinks {
		return err
	}
	if used := (n.pages - n.free) * n.page; used > rewritten {
		s.opts.Log.Info("the database was made by an earlier version: its file does not shrink, but deleted records free space in it",
			"path", s.path, "bytes", n.pages*n.page, "used", used, "rewritten_at_a_start_below", rewritten)
		return nil
	}
	// What auto_vacuum was set to takes effect now.
	if _, err := s.write.ExecContext(ctx, "VACUUM; PRAGMA wal_checkpoint"); err != nil {
		s.opts.Log.Warn("the database file cannot be rewritten, so it does not shrink", "path", s.path, "error", err)
	}
	return nil
}

// ended is a conversation that may be removed.
type ended struct {
	id      string
	started int64
}

// due gives the oldest conversations that are beyond a limit, active ones never.
func (s *Store) due(ctx context.Context, now size) ([]ended, error) {
	oldest, err := query(ctx, s.read, "looking for old conversations", func(rows *sql.Rows) (c ended, err error) {
		return c, rows.Scan(&c.id, &c.started)
	}, "SELECT id, started FROM conversations WHERE status <> 'active' ORDER BY started, id LIMIT ?", pruneBatch)
	if err != nil {
		return nil, err
	}
	n, excess := 0, s.excess(now)
	for n < len(oldest) && (n < excess || s.tooOld(oldest[n].started)) {
		n++
	}
	return oldest[:n], nil
}

func (s *Store) tooOld(started int64) bool {
	return s.opts.MaxAge > 0 && s.opts.Now().Sub(time.Unix(0, started)) > s.opts.MaxAge
}

// pruneRest removes old events and steps, and, among the oldest turns, those
// whose conversation was lost with a full disk and that ended before the
// conversations just removed.
func pruneRest(ctx context.Context, tx *sql.Tx, removed []ended) error {
	if err := execute(ctx, tx, "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", keepEvents); err != nil {
		return err
	}
	if err := execute(ctx, tx, "DELETE FROM steps WHERE ended IS NOT NULL AND seq <= (SELECT max(seq) FROM steps) - ?", keepSteps); err != nil {
		return err
	}
	if len(removed) == 0 {
		return nil
	}
	return execute(ctx, tx, `DELETE FROM turns WHERE seq IN (
		SELECT seq FROM (SELECT seq, conversation, ended FROM turns ORDER BY seq LIMIT ?) AS oldest
		WHERE ended < ? AND NOT EXISTS (SELECT 1 FROM conversations WHERE id = oldest.conversation))`,
		pruneBatch, removed[len(removed)-1].started)
}
