package store

import (
	"context"
	"database/sql"
	"time"
)

// Bounds of the removal: a transaction removes few conversations, so that the
// writer is soon back at its queue, and a look removes few transactions' worth.
const (
	pruneBatch  = 50
	pruneRounds = 10
	keepEvents  = 10_000
	keepSteps   = 10_000
)

// prune removes what is too old or too much, a bounded part of it at a time. A
// failure is not serious: the next look tries again.
func (s *Store) prune() {
	for range pruneRounds {
		removed, err := s.pruneOnce(context.Background())
		if err != nil {
			s.opts.Log.Debug("old conversations could not be removed", "error", err)
			return
		}
		if removed < pruneBatch || s.queue.waitingTurns() > 0 {
			return
		}
	}
}

func (s *Store) pruneOnce(ctx context.Context) (removed int, err error) {
	due, err := s.due(ctx)
	if err != nil {
		return 0, err
	}
	err = inTransaction(ctx, s.write, func(tx *sql.Tx) error {
		for _, c := range due {
			if err := execute(ctx, tx, "DELETE FROM turns WHERE conversation = ?", c.id); err != nil {
				return err
			}
			if err := execute(ctx, tx, "DELETE FROM conversations WHERE id = ?", c.id); err != nil {
				return err
			}
		}
		return pruneRest(ctx, tx, due)
	})
	return len(due), err
}

// ended is a conversation that may be removed.
type ended struct {
	id      string
	started int64
}

// due gives the oldest conversations that are beyond a limit, active ones never.
func (s *Store) due(ctx context.Context) ([]ended, error) {
	excess, err := s.excess(ctx)
	if err != nil {
		return nil, err
	}
	oldest, err := query(ctx, s.read, "looking for old conversations", func(rows *sql.Rows) (c ended, err error) {
		return c, rows.Scan(&c.id, &c.started)
	}, "SELECT id, started FROM conversations WHERE status <> 'active' ORDER BY started, id LIMIT ?", pruneBatch)
	if err != nil {
		return nil, err
	}
	n := 0
	for n < len(oldest) && (n < excess || s.tooOld(oldest[n].started)) {
		n++
	}
	return oldest[:n], nil
}

func (s *Store) tooOld(started int64) bool {
	return s.opts.MaxAge > 0 && s.opts.Now().Sub(time.Unix(0, started)) > s.opts.MaxAge
}

// excess is how many conversations there are beyond the limit.
func (s *Store) excess(ctx context.Context) (int, error) {
	if s.opts.MaxConversations == 0 {
		return 0, nil
	}
	count, err := query(ctx, s.read, "counting conversations", func(rows *sql.Rows) (n int, err error) {
		return n, rows.Scan(&n)
	}, "SELECT count(*) FROM conversations")
	if err != nil {
		return 0, err
	}
	return count[0] - s.opts.MaxConversations, nil
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
