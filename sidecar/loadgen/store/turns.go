package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/goccy/go-json"

	"kvbooth/sidecar/api"
)

// page is the number of records read at once. No transaction is open between pages,
// so that a slow reader of a long file does not keep the log from being reset.
const page = 500

// The statements on turns read the table itself, so that a damaged index hides none.
const (
	firstAndLast = `SELECT coalesce((SELECT seq FROM turns NOT INDEXED ORDER BY seq LIMIT 1), 0),
		coalesce((SELECT seq FROM turns NOT INDEXED ORDER BY seq DESC LIMIT 1), 0)`
	selectPage = "SELECT seq, CAST(data AS BLOB) FROM turns NOT INDEXED WHERE lane = ? AND step BETWEEN ? AND ? " +
		"AND seq BETWEEN ? AND ? ORDER BY seq"
)

// turnReader reads the turns of a lane's steps from first to last.
type turnReader struct {
	store       *Store
	lane        string
	first, last int64
	add         func(*api.Turn) error // its argument is valid until it returns
	unread      int                   // turns that are damaged
}

// eachTurn calls add with every stored turn of a lane's steps from first to last, without its messages, in the order
// of storing. The turn is valid until add returns. After each page of turns eachTurn calls send, without a lock on the
// file. An unknown lane or step gives no call and no error. Damaged turns are left out and counted in unread. It stops
// at the first other error. One of add is returned wrapped in an [api.ErrUnavailable], one of send unchanged.
func (s *Store) eachTurn(ctx context.Context, lane string, first, last int64, add func(*api.Turn) error,
	send func() error,
) (unread int, err error) {
	r := turnReader{store: s, lane: lane, first: first, last: last, add: add}
	var from, to int64
	if err := s.read.QueryRowContext(ctx, firstAndLast).Scan(&from, &to); damaged(err) {
		// The damaged part of the table has the first or the last turn.
		err = s.read.QueryRowContext(ctx, "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM turns "+
			"INDEXED BY turns_by_step").Scan(&from, &to)
		if err != nil {
			return 0, unavailable("looking for turns", err)
		}
	} else if err != nil {
		return 0, unavailable("looking for turns", err)
	}
	for ; from <= to; from += page {
		if err := r.page(ctx, from, min(from+page-1, to)); err != nil {
			return r.unread, err
		}
		if err := send(); err != nil {
			return r.unread, err
		}
	}
	return r.unread, nil
}

// page reads the turns from one position to another. Only one page is read at a time, so that many readers leave
// processors for the measurement.
func (r *turnReader) page(ctx context.Context, from, to int64) error {
	select {
	case r.store.paging <- struct{}{}:
		defer func() { <-r.store.paging }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// Reading a page is short; checking ctx meanwhile would cost a tenth more.
	next, err := r.read(context.WithoutCancel(ctx), from, to)
	for damaged(err) && next <= to { // turn by turn, since SQLite ends at the first damaged one
		_, err = r.read(context.WithoutCancel(ctx), next, next)
		if damaged(err) {
			r.leaveOut(next)
		}
		if next++; err == nil && next <= to {
			next, err = r.read(context.WithoutCancel(ctx), next, to)
		}
	}
	if damaged(err) {
		return nil
	}
	return unavailable("reading turns", err)
}

// read calls add with the turns from one position to another. After an error next is the position after the last
// turn that was read.
func (r *turnReader) read(ctx context.Context, from, to int64) (next int64, err error) {
	rows, err := r.store.read.QueryContext(ctx, selectPage, r.lane, r.first, r.last, from, to)
	if err != nil {
		return from, err
	}
	defer rows.Close()
	for next = from; rows.Next(); next++ {
		var data sql.RawBytes
		var t api.Turn
		if err := rows.Scan(&next, &data); err != nil {
			return next, err
		}
		if json.Unmarshal(data, &t) != nil {
			r.leaveOut(next)
		} else if err := r.add(&t); err != nil {
			return next, err
		}
	}
	return next, rows.Err()
}

// leaveOut counts a damaged turn.
func (r *turnReader) leaveOut(seq int64) {
	r.unread++
	r.store.noteDamage("turns", strconv.FormatInt(seq, 10))
}

// checkStep gives [api.ErrNotFound] for a step that the lane never had.
func (s *Store) checkStep(ctx context.Context, lane string, step int64) error {
	if step < 0 {
		return api.Refuse("step", step, "a whole number from 1, or 0 for all steps")
	}
	var found bool
	err := s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM steps WHERE lane = ? AND id = ?)
		OR EXISTS (SELECT 1 FROM turns NOT INDEXED WHERE lane = ? AND step = ?)`, lane, step, lane, step).Scan(&found)
	switch {
	case damaged(err): // the export says what is missing
		return nil
	case err == nil && !found:
		return fmt.Errorf("%w: lane %q has no step %d", api.ErrNotFound, lane, step)
	}
	return unavailable("looking for a step", err)
}

// TurnsFrom calls add with every stored turn of a lane's steps from one on, without its
// messages, in the order of storing. The turn is valid until add returns. Damaged turns are
// left out; [Store.Status] names them. An error of add ends the reading and is returned; other
// errors are those of the file and of ctx.
func (s *Store) TurnsFrom(ctx context.Context, lane string, step int64, add func(*api.Turn) error) error {
	_, err := s.eachTurn(ctx, lane, step, math.MaxInt64, add, func() error { return nil })
	return err
}

// TurnsCSVFrom is [Store.TurnsCSV] for several lanes, in the order of their names. steps has the first step
// of each. Without turns it writes only the header.
func (s *Store) TurnsCSVFrom(ctx context.Context, w io.Writer, steps map[string]int64) error {
	return writeCSV(w, func(add func(*api.Turn) error, send func() error) (unread int, err error) {
		for _, lane := range slices.Sorted(maps.Keys(steps)) {
			n, err := s.eachTurn(ctx, lane, steps[lane], math.MaxInt64, add, send)
			if unread += n; err != nil {
				return unread, err
			}
		}
		return unread, nil
	})
}

// TurnsCSV writes the turns of a lane's step in the format of RFC 4180, with a header,
// in the order of storing and without their messages. Step 0 means all steps. Where
// turns are damaged, a last line says how many are missing. An unknown step gives [api.ErrNotFound], a negative one an
// [api.FieldError], both before anything is written. Other errors are those of the
// file, of w and of ctx, and end the writing.
func (s *Store) TurnsCSV(ctx context.Context, w io.Writer, lane string, step int64) error {
	last := step
	if step == 0 {
		last = math.MaxInt64
	} else if err := s.checkStep(ctx, lane, step); err != nil { // before the header
		return err
	}
	return writeCSV(w, func(add func(*api.Turn) error, send func() error) (int, error) {
		return s.eachTurn(ctx, lane, step, last, add, send)
	})
}

// writeCSV writes a header, a row for each turn, and a last one where turns could not be read.
func writeCSV(w io.Writer, each func(add func(*api.Turn) error, send func() error) (unread int, err error)) error {
	var text bytes.Buffer
	out := csv.NewWriter(&text)
	out.UseCRLF = true
	fields := api.TurnsHeader()
	if err := out.Write(fields); err != nil {
		return err
	}
	add := func(t *api.Turn) error {
		t.Cells(fields)
		return out.Write(fields)
	}
	send := func() error {
		out.Flush()
		_, err := text.WriteTo(w)
		return err
	}
	unread, err := each(add, send)
	if err != nil {
		return err
	}
	if unread > 0 {
		clear(fields)
		fields[0] = fmt.Sprintf("%s missing turns: %d; the database is damaged", api.TurnsRemark, unread)
		if err := out.Write(fields); err != nil {
			return err
		}
	}
	return send() // writes the header where no step has a turn
}
