package store

import (
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"kvbooth/sidecar/api"
)

// page is how many turns are read at once. Between pages nothing is held open,
// so that a slow reader of a long file does not keep the log from being reset.
const page = 500

// Turns calls yield with each stored turn of a lane's step, without its
// messages, in the order of storing; step 0 means all steps, ascending. An
// error of yield ends it and comes back. A step that never was gives
// [api.ErrNotFound], a negative one an [api.FieldError].
func (s *Store) Turns(ctx context.Context, lane string, step int64, yield func(api.Turn) error) error {
	after, last := position{step: step}, step
	if step == 0 {
		last = math.MaxInt64
	} else if err := s.checkStep(ctx, lane, step); err != nil {
		return err
	}
	for {
		turns, err := query(ctx, s.read, "reading turns", scanPlacedTurn,
			`SELECT step, seq, data FROM turns WHERE lane = ? AND step <= ? AND (step, seq) > (?, ?)
			ORDER BY step, seq LIMIT ?`, lane, last, after.step, after.seq, page)
		if err != nil {
			return err
		}
		for _, t := range turns {
			if err := yield(t.Turn); err != nil {
				return err
			}
			after = t.position
		}
		if len(turns) < page {
			return nil
		}
	}
}

// position is where a turn stands in the order of [Store.Turns].
type position struct {
	step, seq int64
}

type placedTurn struct {
	position
	api.Turn
}

func scanPlacedTurn(rows *sql.Rows) (t placedTurn, err error) {
	var data []byte
	if err = rows.Scan(&t.position.step, &t.seq, &data); err == nil {
		err = json.Unmarshal(data, &t.Turn)
	}
	return t, err
}

// checkStep says whether a lane ever had the step.
func (s *Store) checkStep(ctx context.Context, lane string, step int64) error {
	if step < 0 {
		return &api.FieldError{Field: "step", Value: strconv.FormatInt(step, 10), Allowed: "a whole number from 1, or 0 for all steps"}
	}
	found, err := query(ctx, s.read, "looking for a step", func(rows *sql.Rows) (yes bool, err error) {
		return yes, rows.Scan(&yes)
	}, `SELECT EXISTS (SELECT 1 FROM steps WHERE lane = ? AND id = ?)
		OR EXISTS (SELECT 1 FROM turns WHERE lane = ? AND step = ?)`, lane, step, lane, step)
	if err == nil && !found[0] {
		err = fmt.Errorf("%w: lane %q has no step %d", api.ErrNotFound, lane, step)
	}
	return err
}

// TurnsCSV writes the turns of [Store.Turns] as RFC 4180 has it, with a header.
// Nothing has been written when the step is refused; other errors are those of
// the file and of w.
func (s *Store) TurnsCSV(ctx context.Context, w io.Writer, lane string, step int64) error {
	if step != 0 { // before the header
		if err := s.checkStep(ctx, lane, step); err != nil {
			return err
		}
	}
	out := csv.NewWriter(w)
	out.UseCRLF = true
	fields := make([]string, len(turnColumns))
	for i, c := range turnColumns {
		fields[i] = c.name
	}
	if err := out.Write(fields); err != nil {
		return err
	}
	err := s.Turns(ctx, lane, step, func(t api.Turn) error {
		for i, c := range turnColumns {
			fields[i] = c.text(&t)
		}
		return out.Write(fields)
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// turnColumns are the columns of the raw data. Times are RFC 3339 in UTC, an
// empty field is not known.
var turnColumns = []struct {
	name string
	text func(*api.Turn) string
}{
	{"lane", func(t *api.Turn) string { return t.Lane }},
	{"conversation", func(t *api.Turn) string { return t.Conversation }},
	{"turn", func(t *api.Turn) string { return strconv.Itoa(t.Number) }},
	{"request_id", func(t *api.Turn) string { return t.RequestID }},
	{"step", func(t *api.Turn) string { return strconv.FormatInt(t.Step, 10) }},
	{"concurrency", func(t *api.Turn) string { return strconv.Itoa(t.Concurrency) }},
	{"mode", func(t *api.Turn) string { return string(t.Mode) }},
	{"speculation", func(t *api.Turn) string { return string(t.Speculation) }},
	{"counted", func(t *api.Turn) string { return strconv.FormatBool(t.Counted) }},
	{"status", func(t *api.Turn) string { return string(t.Status) }},
	{"error_class", func(t *api.Turn) string { return string(t.ErrorClass) }},
	{"error_message", func(t *api.Turn) string { return t.ErrorMessage }},
	{"started", func(t *api.Turn) string { return t.Started.UTC().Format(time.RFC3339Nano) }},
	{"ended", func(t *api.Turn) string { return t.Ended.UTC().Format(time.RFC3339Nano) }},
	{"ttft_seconds", func(t *api.Turn) string { return number(t.TTFT) }},
	{"tpot_seconds", func(t *api.Turn) string { return number(t.TPOT) }},
	{"itl_p50_seconds", func(t *api.Turn) string { return number(t.ITLP50) }},
	{"itl_p95_seconds", func(t *api.Turn) string { return number(t.ITLP95) }},
	{"itl_estimated", func(t *api.Turn) string { return strconv.FormatBool(t.ITLEstimated) }},
	{"latency_seconds", func(t *api.Turn) string { return number(t.Latency) }},
	{"prompt_tokens", func(t *api.Turn) string { return whole(t.PromptTokens) }},
	{"cached_tokens", func(t *api.Turn) string { return whole(t.CachedTokens) }},
	{"output_tokens", func(t *api.Turn) string { return whole(t.OutputTokens) }},
	{"token_source", func(t *api.Turn) string { return t.TokenSource }},
	{"finish_reason", func(t *api.Turn) string { return t.FinishReason }},
	{"worker", func(t *api.Turn) string { return t.Worker }},
	{"predicted_ratio", func(t *api.Turn) string { return number(t.PredictedRatio) }},
	{"queue_depth", func(t *api.Turn) string { return whole(t.QueueDepth) }},
	{"server_ttft_seconds", func(t *api.Turn) string { return number(t.ServerTTFT) }},
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

func whole(v *int) string {
	if v == nil {
		return ""
	}
	return strconv.Itoa(*v)
}
