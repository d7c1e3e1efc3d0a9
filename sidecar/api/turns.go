package api

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// turnColumn is a column of turns.csv. An empty cell means that the value is not known.
type turnColumn struct {
	name string
	text func(*Turn) string
	set  func(t *Turn, text string) error // nil: the column is computed from others
}

// turnColumns lists the columns of turns.csv in their order. Times are RFC 3339 in UTC.
var turnColumns = []turnColumn{
	textColumn("lane", func(t *Turn) *string { return &t.Lane }),
	textColumn("conversation", func(t *Turn) *string { return &t.Conversation }),
	wholeColumn("turn", func(t *Turn) *int { return &t.Number }),
	textColumn("request_id", func(t *Turn) *string { return &t.RequestID }),
	wholeColumn("step", func(t *Turn) *int64 { return &t.Step }),
	levelColumn(),
	textColumn("mode", func(t *Turn) *Mode { return &t.Mode }),
	textColumn("speculation", func(t *Turn) *Speculation { return &t.Speculation }),
	flagColumn("counted", func(t *Turn) *bool { return &t.Counted }),
	textColumn("status", func(t *Turn) *TurnStatus { return &t.Status }),
	textColumn("error_class", func(t *Turn) *ErrorClass { return &t.ErrorClass }),
	textColumn("error_message", func(t *Turn) *string { return &t.ErrorMessage }),
	timeColumn("started", func(t *Turn) *time.Time { return &t.Started }),
	timeColumn("ended", func(t *Turn) *time.Time { return &t.Ended }),
	numberColumn("ttft_seconds", func(t *Turn) **float64 { return &t.TTFT }),
	numberColumn("first_answer_seconds", func(t *Turn) **float64 { return &t.FirstAnswer }),
	numberColumn("tpot_seconds", func(t *Turn) **float64 { return &t.TPOT }),
	numberColumn("itl_p50_seconds", func(t *Turn) **float64 { return &t.ITLP50 }),
	numberColumn("itl_p95_seconds", func(t *Turn) **float64 { return &t.ITLP95 }),
	flagColumn("itl_estimated", func(t *Turn) *bool { return &t.ITLEstimated }),
	numberColumn("latency_seconds", func(t *Turn) **float64 { return &t.Latency }),
	countColumn("prompt_tokens", func(t *Turn) **int { return &t.PromptTokens }),
	countColumn("cached_tokens", func(t *Turn) **int { return &t.CachedTokens }),
	countColumn("output_tokens", func(t *Turn) **int { return &t.OutputTokens }),
	textColumn("token_source", func(t *Turn) *string { return &t.TokenSource }),
	textColumn("finish_reason", func(t *Turn) *string { return &t.FinishReason }),
	textColumn("worker", func(t *Turn) *string { return &t.Worker }),
	numberColumn("predicted_ratio", func(t *Turn) **float64 { return &t.PredictedRatio }),
	countColumn("queue_depth", func(t *Turn) **int { return &t.QueueDepth }),
	numberColumn("server_ttft_seconds", func(t *Turn) **float64 { return &t.ServerTTFT }),
	{name: "counts_in", text: countsIn},
	textColumn("arm", func(t *Turn) *string { return &t.Arm }),
	flagColumn("in_bursts", func(t *Turn) *bool { return &t.InBursts }),
}

// requiredColumns lists the columns that [ReadTurns] requires.
var requiredColumns = []string{"conversation", "turn", "status", "started", "ended"}

// countsIn returns the figures that include the turn. "latencies" means all of them, and "rates" only the rates, for an
// answer without text. "span_ttft" means the TTFT of a span, for an answer that was cut short. "errors" means the error
// rate. It is empty if no figure includes the turn.
func countsIn(t *Turn) string {
	switch {
	case t.Status == TurnOK && t.TTFT == nil:
		return "rates"
	case t.Status == TurnOK:
		return "latencies"
	case t.Status == TurnError:
		return "errors"
	case t.TTFT != nil:
		return "span_ttft"
	}
	return ""
}

func textColumn[T ~string](name string, field func(*Turn) *T) turnColumn {
	return turnColumn{
		name: name,
		text: func(t *Turn) string { return string(*field(t)) },
		set: func(t *Turn, text string) error {
			*field(t) = T(plainText(text))
			return nil
		},
	}
}

func wholeColumn[T int | int64](name string, field func(*Turn) *T) turnColumn {
	return turnColumn{
		name: name,
		text: func(t *Turn) string { return strconv.FormatInt(int64(*field(t)), 10) },
		set: func(t *Turn, text string) error {
			v, err := strconv.ParseInt(text, 10, 0)
			*field(t) = T(v)
			return err
		},
	}
}

func levelColumn() turnColumn {
	return turnColumn{
		name: "concurrency",
		text: func(t *Turn) string { return t.Level.String() },
		set:  func(t *Turn, text string) error { return t.Level.UnmarshalText([]byte(text)) },
	}
}

func flagColumn(name string, field func(*Turn) *bool) turnColumn {
	return turnColumn{
		name: name,
		text: func(t *Turn) string { return strconv.FormatBool(*field(t)) },
		set: func(t *Turn, text string) (err error) {
			*field(t), err = strconv.ParseBool(text)
			return err
		},
	}
}

func timeColumn(name string, field func(*Turn) *time.Time) turnColumn {
	return turnColumn{
		name: name,
		text: func(t *Turn) string { return field(t).UTC().Format(time.RFC3339Nano) },
		set: func(t *Turn, text string) (err error) {
			*field(t), err = time.Parse(time.RFC3339Nano, text)
			return err
		},
	}
}

func numberColumn(name string, field func(*Turn) **float64) turnColumn {
	return optionalColumn(name, field, func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) },
		func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
}

func countColumn(name string, field func(*Turn) **int) turnColumn {
	return optionalColumn(name, field, strconv.Itoa, strconv.Atoi)
}

// optionalColumn returns a column whose cell is empty if the value is nil. Its set function must not be called with an
// empty cell, for which [ReadTurns] leaves the value nil. After an error of parse, the value is not valid.
func optionalColumn[T any](
	name string, field func(*Turn) **T, format func(T) string, parse func(string) (T, error),
) turnColumn {
	return turnColumn{
		name: name,
		text: func(t *Turn) string {
			v := *field(t)
			if v == nil {
				return ""
			}
			return format(*v)
		},
		set: func(t *Turn, text string) error {
			v, err := parse(text)
			*field(t) = &v
			return err
		},
	}
}

// TurnsRemark begins a last row of turns.csv that is no turn. It says what is missing.
const TurnsRemark = "#"

// TurnsHeader returns the names of the columns of turns.csv, in their order.
func TurnsHeader() []string {
	names := make([]string, len(turnColumns))
	for i, c := range turnColumns {
		names[i] = c.name
	}
	return names
}

// Cells writes the turn's row of turns.csv into to, which must be as long as [TurnsHeader].
func (t *Turn) Cells(to []string) {
	for i, c := range turnColumns {
		to[i] = CSVText(Printable(c.text(t)))
	}
}

// ReadTurns reads a table that [Client.TurnsCSV] has written. It ignores a last remark and unknown columns, and leaves
// the values of missing optional columns unset. The error names the line and the column of an invalid value.
func ReadTurns(r io.Reader) ([]Turn, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("turns.csv: %w", err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("turns.csv is empty")
	}
	if last := rows[len(rows)-1]; strings.HasPrefix(last[0], TurnsRemark) {
		rows = rows[:len(rows)-1]
	}
	for _, name := range requiredColumns {
		if !slices.Contains(rows[0], name) {
			return nil, fmt.Errorf("turns.csv has no column %s", name)
		}
	}
	known := map[string]turnColumn{}
	for _, c := range turnColumns {
		known[c.name] = c
	}
	turns := make([]Turn, len(rows)-1)
	for i, row := range rows[1:] {
		for column, text := range row {
			name := rows[0][column]
			if set := known[name].set; set != nil && text != "" {
				if err := set(&turns[i], text); err != nil {
					return nil, fmt.Errorf("turns.csv, line %d, %s: %w", i+2, name, err)
				}
			}
		}
	}
	return turns, nil
}
