package api

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// turnColumns are the columns of turns.csv that are read, and what they set. An
// empty field is not known and sets nothing.
var turnColumns = map[string]func(t *Turn, text string) error{
	"conversation": func(t *Turn, text string) error { t.Conversation = text; return nil },
	"turn":         func(t *Turn, text string) (err error) { t.Number, err = strconv.Atoi(text); return err },
	"status":       func(t *Turn, text string) error { t.Status = TurnStatus(text); return nil },
	"error_class":  func(t *Turn, text string) error { t.ErrorClass = ErrorClass(text); return nil },
	"started": func(t *Turn, text string) (err error) {
		t.Started, err = time.Parse(time.RFC3339Nano, text)
		return err
	},
	"ended": func(t *Turn, text string) (err error) {
		t.Ended, err = time.Parse(time.RFC3339Nano, text)
		return err
	},
	"ttft_seconds":  func(t *Turn, text string) error { return setNumber(&t.TTFT, text) },
	"tpot_seconds":  func(t *Turn, text string) error { return setNumber(&t.TPOT, text) },
	"prompt_tokens": func(t *Turn, text string) error { return setWhole(&t.PromptTokens, text) },
	"cached_tokens": func(t *Turn, text string) error { return setWhole(&t.CachedTokens, text) },
	"output_tokens": func(t *Turn, text string) error { return setWhole(&t.OutputTokens, text) },
	"worker":        func(t *Turn, text string) error { t.Worker = plainText(text); return nil },
}

func setNumber(to **float64, text string) error {
	v, err := strconv.ParseFloat(text, 64)
	*to = &v
	return err
}

func setWhole(to **int, text string) error {
	v, err := strconv.Atoi(text)
	*to = &v
	return err
}

// ReadTurns reads what [Client.TurnsCSV] writes: of every turn its conversation,
// number, status, times, TTFT, TPOT, tokens and worker. What is no such table
// gives an error that names the line and the column.
func ReadTurns(r io.Reader) ([]Turn, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("turns.csv: %w", err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("turns.csv is empty")
	}
	for name := range turnColumns {
		if !slices.Contains(rows[0], name) {
			return nil, fmt.Errorf("turns.csv has no column %s", name)
		}
	}
	turns := make([]Turn, len(rows)-1)
	for i, row := range rows[1:] {
		for column, text := range row {
			name := rows[0][column]
			if read := turnColumns[name]; read != nil && text != "" {
				if err := read(&turns[i], text); err != nil {
					return nil, fmt.Errorf("turns.csv, line %d, %s: %w", i+2, name, err)
				}
			}
		}
	}
	return turns, nil
}
