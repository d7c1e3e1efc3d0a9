package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// Bounds of a removal. A transaction removes little, so that the writer soon
// returns to its queue.
const (
	pruneBatch  = 250    // conversations
	vacuumBatch = 2_000  // pages returned to the disk
	spare       = 500    // free pages kept in the file for the next writes, at least; twice that at most
	nearlyFull  = 10     // divides the batches on a disk that is nearly full
	keepEvents  = 10_000 // newest events kept
	keepSteps   = 10_000 // newest steps kept
)

// rewritten is the size in bytes up to which a file is rewritten at the start.
const rewritten = 32 << 20

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
	now.disk = s.disk()
	due, err := s.due(ctx, now)
	if err != nil {
		return false, err
	}
	err = s.change(ctx, len(due)*perRecord, func(tx *sql.Tx) error {
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
	s.reportRemoval(now, len(due))
	vacuumed, err := s.vacuum(ctx, now)
	return len(due) > 0 || vacuumed, err
}

// reportRemoval reports conversations that were removed for lack of disk space, at the first removal and at the end.
func (s *Store) reportRemoval(now size, removed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case now.missing() > 0 && removed > 0:
		if s.removed == 0 {
			s.opts.Log.Warn("the disk is nearly full: the oldest conversations are removed",
				"path", s.path, "free_bytes", now.disk.free)
		}
		s.removed += removed
		s.notice = fmt.Sprintf("the disk is nearly full: the %d oldest conversations were removed, and %d are kept; "+
			"free space on it, or lower store.max_bytes", s.removed, now.conversations-removed)
	case s.removed > 0 && now.disk.held && now.disk.short() < -4*now.disk.reserve:
		s.opts.Log.Info("there is room on the disk again", "path", s.path, "removed", s.removed, "kept", now.conversations)
		s.removed = 0
		s.notice = ""
	}
}

// size describes the contents of the file.
type size struct {
	conversations     int
	pages, free, page int64 // all pages, free pages, and the bytes of a page
	shrinks           bool  // the file can return free pages to the disk
	disk              disk
}

// missing returns the bytes that the database has to return to a disk that it has filled, beyond the free bytes in
// the file; none if 0 or less.
func (n size) missing() int64 {
	if !n.shrinks || !n.disk.filledBy(n.pages*n.page) {
		return 0
	}
	return n.disk.short() - n.free*n.page
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
	if missing := n.missing(); missing > 0 {
		excess = max(excess, 1, int(float64(n.conversations)*float64(missing)/float64(used*n.page)))
	}
	return excess
}

// vacuum returns free pages to the disk, except for a few.
func (s *Store) vacuum(ctx context.Context, n size) (some bool, err error) {
	pages := min(n.free-spare, vacuumBatch)
	switch {
	case n.shrinks && n.free > 0 && n.disk.short() > 0:
		pages = min(n.free, vacuumBatch/nearlyFull)
	case !n.shrinks || n.free <= 2*spare:
		return false, nil
	}
	// The statement gives a row for each page and must be read to its end. The
	// checkpoint then shortens the file.
	_, err = query(ctx, s.write, "shrinking the store", func(*sql.Rows) (none struct{}, err error) { return none, nil },
		fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pages))
	if err != nil {
		return false, err
	}
	s.files.mu.Lock()
	s.files.pending += int(pages * n.page)
	s.files.mu.Unlock()
	return true, s.checkpoint(ctx, 0)
}

// makeShrinkable rewrites a file of an earlier version, which could not return
// pages. For a large file that would take long: it keeps its size, and removed
// records free space inside it.
func (s *Store) makeShrinkable(ctx context.Context) error {
	n, err := measure(ctx, s.write)
	if err != nil || n.shrinks {
		return err
	}
	if used := (n.pages - n.free) * n.page; used > rewritten {
		s.opts.Log.Info("the database was made by an earlier version: its file does not shrink, but deleted records free "+
			"space in it",
			"path", s.path, "bytes", n.pages*n.page, "used", used, "rewritten_at_a_start_below", rewritten)
		return nil
	}
	// VACUUM applies the setting of auto_vacuum.
	if _, err := s.write.ExecContext(ctx, "VACUUM; PRAGMA wal_checkpoint"); err != nil {
		s.opts.Log.Warn("the database file cannot be rewritten, so it does not shrink", "path", s.path, "error", err)
	}
	return nil
}

// ended is a conversation that can be removed.
type ended struct {
	id      string
	started int64
}

// due returns the oldest ended conversations that exceed a limit.
func (s *Store) due(ctx context.Context, now size) ([]ended, error) {
	batch := pruneBatch
	if now.missing() > 0 {
		batch /= nearlyFull
	}
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
		max(0, min(s.excess(now), batch)), before, batch)
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
