package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/goccy/go-json"

	"kvbooth/sidecar/api"
)

// page is the number of turns read at once. No transaction is open between pages,
// so that a slow reader of a long file does not keep the log from being reset.
const page = 500

// Both statements search the index turns_by_step: a page costs the same at any
// position in a step.
const (
	selectPage = "SELECT seq, CAST(data AS BLOB) FROM turns WHERE lane = ? AND step = ? AND seq > ? " +
		"ORDER BY seq LIMIT ?"
	selectNextStep = "SELECT step FROM turns WHERE lane = ? AND step BETWEEN ? AND ? ORDER BY step LIMIT 1"
)

// eachTurn calls add with every stored turn of a lane's steps from first to last, ascending, without its
// messages, in the order of storing. The turn is valid until add returns. After each page of turns eachTurn
// calls send, without a lock on the file. Steps without a stored turn are skipped, so an unknown lane or step
// gives no call and no error. It stops at the first error. One of add is returned wrapped in an
// [api.ErrUnavailable], one of send unchanged.
func (s *Store) eachTurn(ctx context.Context, lane string, first, last int64, add func(*api.Turn) error,
	send func() error,
) error {
	for {
		err := s.read.QueryRowContext(ctx, selectNextStep, lane, first, last).Scan(&first)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return unavailable("looking for the next step", err)
		}
		if err := s.eachTurnOf(ctx, lane, first, add, send); err != nil {
			return err
		}
		first++
	}
}

func (s *Store) eachTurnOf(ctx context.Context, lane string, step int64, add func(*api.Turn) error,
	send func() error,
) error {
	for last := int64(0); ; {
		n, err := s.pageOfTurns(ctx, lane, step, &last, add)
		if err != nil {
			return err
		}
		if err := send(); err != nil || n < page {
			return err
		}
	}
}

// pageOfTurns calls add with the turns of a step that were stored after last, and
// returns their number. Only one page is read at a time, so that many readers
// leave processors for the measurement.
func (s *Store) pageOfTurns(ctx context.Context, lane string, step int64, last *int64,
	add func(*api.Turn) error,
) (n int, err error) {
	select {
	case s.paging <- struct{}{}:
		defer func() { <-s.paging }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	// Reading a page is short; checking ctx meanwhile would cost a tenth more.
	rows, err := s.read.QueryContext(context.WithoutCancel(ctx), selectPage, lane, step, *last, page)
	if err != nil {
		return 0, unavailable("reading turns", err)
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		var data sql.RawBytes
		var t api.Turn
		if err = rows.Scan(last, &data); err == nil {
			err = json.Unmarshal(data, &t)
		}
		if err == nil {
			err = add(&t)
		}
		if err != nil {
			return n, unavailable("reading turns", err)
		}
	}
	return n, unavailable("reading turns", rows.Err())
}

// checkStep gives [api.ErrNotFound] for a step that the lane never had.
func (s *Store) checkStep(ctx context.Context, lane string, step int64) error {
	if step < 0 {
		return api.Refuse("step", step, "a whole number from 1, or 0 for all steps")
	}
	var found bool
	err := s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM steps WHERE lane = ? AND id = ?)
		OR EXISTS (SELECT 1 FROM turns WHERE lane = ? AND step = ?)`, lane, step, lane, step).Scan(&found)
	if err == nil && !found {
		return fmt.Errorf("%w: lane %q has no step %d", api.ErrNotFound, lane, step)
	}
	return unavailable("looking for a step", err)
}

// TurnsFrom calls add with every stored turn of a lane's steps from one on, without its
// messages, by ascending step and in the order of storing. The turn is valid until add
// returns. An error of add ends the reading and is returned; other errors are those of the
// file and of ctx.
func (s *Store) TurnsFrom(ctx context.Context, lane string, step int64, add func(*api.Turn) error) error {
	return s.eachTurn(ctx, lane, step, math.MaxInt64, add, func() error { return nil })
}

// TurnsCSVFrom is [Store.TurnsCSV] for several lanes, in the order of their names. steps has the first step
// of each. Without turns it writes only the header.
func (s *Store) TurnsCSVFrom(ctx context.Context, w io.Writer, steps map[string]int64) error {
	return writeCSV(w, func(add func(*api.Turn) error, send func() error) error {
		for _, lane := range slices.Sorted(maps.Keys(steps)) {
			if err := s.eachTurn(ctx, lane, steps[lane], math.MaxInt64, add, send); err != nil {
				return err
			}
		}
		return nil
	})
}

// TurnsCSV writes the turns of a lane's step in the format of RFC 4180, with a header,
// in the order of storing and without their messages. Step 0 means all steps,
// ascending. An unknown step gives [api.ErrNotFound], a negative one an
// [api.FieldError], both before anything is written. Other errors are those of the
// file, of w and of ctx, and end the writing.
func (s *Store) TurnsCSV(ctx context.Context, w io.Writer, lane string, step int64) error {
	last := step
	if step == 0 {
		last = math.MaxInt64
	} else if err := s.checkStep(ctx, lane, step); err != nil { // before the header
		return err
	}
	return writeCSV(w, func(add func(*api.Turn) error, send func() error) error {
		return s.eachTurn(ctx, lane, step, last, add, send)
	})
}

// writeCSV writes a header and a row for each turn.
func writeCSV(w io.Writer, each func(add func(*api.Turn) error, send func() error) error) error {
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
	if err := each(add, send); err != nil {
		return err
	}
	return send() // writes the header where no step has a turn
}
