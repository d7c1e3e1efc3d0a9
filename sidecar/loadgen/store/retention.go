package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"time"
)

// Bounds of a removal. A transaction removes little, so that the writer soon
// returns to its queue.
const (
	pruneBatch  = 250    // conversations
	vacuumBatch = 2_000  // pages returned to the disk
	spare       = 500    // free pages kept in the file for the next writes, at least; twice that at most
	keepEvents  = 10_000 // newest events kept
	keepSteps   = 10_000 // newest steps kept
)

// MinBytes is the smallest valid [Options.MaxBytes] other than 0.
const MinBytes = 16 << 20

// prune removes a bounded batch of what exceeds the limits, and reports whether
// there may be more. A failure is logged, and the next call retries.
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
	err = s.change(ctx, func(tx *sql.Tx) error {
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
		if err := execute(ctx, tx, "DELETE FROM turns WHERE conversation IN (SELECT value FROM json_each(?))",
			string(list)); err != nil {
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

// size describes the contents of the file.
type size struct {
	conversations     int
	pages, free, page int64 // all pages, free pages, and the bytes of a page
	shrinks           bool  // the file can return free pages to the disk
}

func measure(ctx context.Context, db *sql.DB) (n size, err error) {
	err = db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM conversations), page_count, freelist_count, page_size,
		auto_vacuum = 2 FROM pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_auto_vacuum`).
		Scan(&n.conversations, &n.pages, &n.free, &n.page, &n.shrinks)
	return n, unavailable("measuring the store", err)
}

// excess returns the number of conversations beyond the limits. For a limit in bytes
// it assumes conversations of average size, and at least one.
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

// oversized reports whether the file is larger than the limit.
func (s *Store) oversized() bool {
	info, err := os.Stat(s.path)
	return err == nil && s.opts.MaxBytes > 0 && info.Size() > s.opts.MaxBytes
}

// vacuum returns free pages to the disk, except for a few.
func (s *Store) vacuum(ctx context.Context, n size) (some bool, err error) {
	if !n.shrinks || n.free <= 2*spare {
		return false, nil
	}
	// The statement gives a row for each page and must be read to its end. The
	// checkpoint then shortens the file.
	_, err = query(ctx, s.write, "shrinking the store", func(*sql.Rows) (none struct{}, err error) { return none, nil },
		fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(n.free-spare, vacuumBatch)))
	if err == nil {
		_, err = s.write.ExecContext(ctx, "PRAGMA wal_checkpoint")
	}
	return err == nil, err
}

// ended is a conversation that can be removed.
type ended struct {
	id      string
	started int64
}

// due returns the oldest ended conversations that exceed a limit.
func (s *Store) due(ctx context.Context, now size) ([]ended, error) {
	before := int64(math.MinInt64)
	if s.opts.MaxAge > 0 {
		before = s.now().Add(-s.opts.MaxAge).UnixNano()
	}
	// By the order of storing: after a clock was set back the newest have the earliest times.
	return query(ctx, s.read, "looking for old conversations", func(rows *sql.Rows) (c ended, err error) {
		return c, rows.Scan(&c.id, &c.started)
	}, `SELECT id, started FROM conversations WHERE rowid IN (
		SELECT * FROM (SELECT rowid FROM conversations WHERE status <> 'active' ORDER BY rowid LIMIT ?) UNION
		SELECT * FROM (SELECT rowid FROM conversations WHERE status <> 'active' AND started < ? ORDER BY started LIMIT ?))`,
		max(0, min(s.excess(now), pruneBatch)), before, pruneBatch)
}

// now returns the time from which ages count. While the process runs, a clock that is set forward has no effect, and
// one that is set back makes records younger: nothing is removed too early.
func (s *Store) now() time.Time {
	now := s.opts.Now()
	steady := s.opened.Round(0).Add(time.Since(s.opened))
	if steady.Before(now) {
		return steady
	}
	return now
}

// pruneRest removes old events and steps. Among the oldest turns it removes those
// whose conversation was lost with a full disk, if they ended before the
// conversations that were just removed.
func pruneRest(ctx context.Context, tx *sql.Tx, removed []ended) error {
	if err := execute(ctx, tx, "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", keepEvents); err != nil {
		return err
	}
	if err := execute(ctx, tx, "DELETE FROM steps WHERE ended IS NOT NULL AND seq <= (SELECT max(seq) FROM steps) - ?",
		keepSteps); err != nil {
		return err
	}
	if len(removed) == 0 {
		return nil
	}
	return execute(ctx, tx, `DELETE FROM turns WHERE seq IN (
		SELECT seq FROM (SELECT seq, conversation, ended FROM turns ORDER BY seq LIMIT ?) AS oldest
		WHERE ended < ? AND NOT EXISTS (SELECT 1 FROM conversations WHERE id = oldest.conversation))`,
		pruneBatch, slices.MaxFunc(removed, func(a, b ended) int { return cmp.Compare(a.started, b.started) }).started)
}
