package baseline

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kvbooth/sidecar/api"
)

// Limits of a baseline.
const (
	maxBytes       = api.MaxBaseline
	maxRows        = 10_000
	maxRuns        = 100 // averaged in rows
	maxConcurrency = api.MaxConcurrency
	maxText        = api.MaxLine
	maxNotes       = 4000
	maxCount       = 1_000_000_000
	maxSetting     = 1_000_000 // of a deployment's settings
	maxSeconds     = 86_400    // of a latency: no turn takes longer than a day
	maxMemory      = 1e15      // of a GPU, in bytes
	maxPrice       = 1e4       // of an hour of a GPU, in dollars
	maxJoules      = 1e15      // of a million tokens
)

// Kinds of a baseline.
const (
	KindRecorded = "recorded" // comes with the product
	KindImported = "imported" // imported by a user
	KindMeasured = "measured" // this target's own settled steps
)

var kinds = []string{KindRecorded, KindImported, KindMeasured}

var nameSyntax = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}$`)

// Validate checks everything that an import must satisfy: 1 to 10,000 rows, each (concurrency, mode, speculation) once,
// known modes, concurrency 1 to 100,000, latencies of 0 to a day with no p95 below the p50, other values from 0 to 1e9,
// ratios up to 1, texts of bounded length. The error is an [api.FieldError] whose field is the JSON path.
func Validate(b api.Baseline) error {
	if !nameSyntax.MatchString(b.Name) {
		return api.Refuse("name", quote(b.Name),
			"1 to 100 letters, digits, spaces and ._+-, beginning with a letter or digit")
	}
	if !slices.Contains(kinds, b.Kind) {
		return api.Refuse("kind", quote(b.Kind), oneOf(kinds))
	}
	if !utf8.ValidString(b.Notes) || utf8.RuneCountInString(b.Notes) > maxNotes {
		return api.Refuse("notes", quote(b.Notes), fmt.Sprintf("text of at most %d characters", maxNotes))
	}
	for _, a := range attributes {
		if err := a.validate(&b); err != nil {
			return err
		}
	}
	return validateRows(b.Rows)
}

func validateRuns(runs []api.Source) error {
	if len(runs) > maxRuns {
		return api.Refuse("provenance.runs", fmt.Sprintf("%d runs", len(runs)), fmt.Sprintf("at most %d runs", maxRuns))
	}
	for i, r := range runs {
		field := fmt.Sprintf("provenance.runs[%d]", i)
		if r.File == "" {
			return api.Refuse(field+".file", "none", "the name of a file or a run")
		}
		if r.Date != nil && !plausible(*r.Date) {
			return api.Refuse(field+".date", r.Date.String(), timeAllowed)
		}
		if err := firstError(validateLine(field+".file", r.File), validateLine(field+".version", r.Version)); err != nil {
			return err
		}
	}
	return nil
}

func validatePrintedLevels(levels []int) error {
	if len(levels) > maxRuns || !slices.IsSorted(levels) || len(levels) > 0 && levels[0] < 1 {
		return api.Refuse("provenance.printed_levels", fmt.Sprint(levels),
			fmt.Sprintf("at most %d numbers above 0, in ascending order", maxRuns))
	}
	return nil
}

func validateTurns(turns []api.RecordedTurn) error {
	if len(turns) > maxRuns {
		return api.Refuse("provenance.turns", fmt.Sprintf("%d turns", len(turns)), fmt.Sprintf("at most %d turns", maxRuns))
	}
	for i, t := range turns {
		field := fmt.Sprintf("provenance.turns[%d].", i)
		if err := firstError(validateInt(field+"input_tokens", t.InputTokens, 0, maxSetting),
			validateInt(field+"output_tokens", t.OutputTokens, 0, maxSetting),
			validateValue(field+"latency", t.Latency, maxSeconds)); err != nil {
			return err
		}
	}
	return nil
}

func validateLine(field, text string) error {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxText ||
		strings.ContainsFunc(text, unicode.IsControl) || strings.TrimSpace(text) != text {
		return api.Refuse(field, quote(text), fmt.Sprintf("one line of at most %d characters with no space around it",
			maxText))
	}
	return nil
}

func validateWorkload(w api.WorkloadShape) error {
	lengths, timeouts := cmp.Or(w.OutputTokens, &api.Distribution{}), cmp.Or(w.Timeouts, &api.Timeouts{})
	return firstError(
		validateInt("workload.turns.min", w.Turns.Min, 0, maxCount),
		validateInt("workload.turns.max", w.Turns.Max, w.Turns.Min, maxCount),
		validateInt("workload.max_tokens", w.MaxTokens, 0, maxCount),
		validateInt("workload.opening_tokens", w.OpeningTokens, 0, maxCount),
		validateLine("workload.corpus", w.Corpus),
		validateLine("workload.followup", w.Followup),
		validateLine("workload.request", w.Request),
		validateLine("workload.session", w.Session),
		validateLine("workload.arrivals", w.Arrivals),
		validateLine("workload.traffic", w.Traffic),
		validateInt("workload.openings", *cmp.Or(w.Openings, new(int)), 0, maxCount),
		validateValue("workload.output_tokens.mean", lengths.Mean, maxCount),
		validateValue("workload.output_tokens.cv", lengths.CV, maxCount),
		validateValue("workload.think_time", *cmp.Or(w.ThinkTime, new(float64)), maxCount),
		validateValue("workload.target_rps", *cmp.Or(w.TargetRPS, new(float64)), maxCount),
		validateValue("workload.timeouts.first_token", timeouts.FirstToken, maxCount),
		validateValue("workload.timeouts.stall", timeouts.Stall, maxCount),
		validateValue("workload.timeouts.turn", timeouts.Turn, maxCount),
	)
}

func validateRows(rows []api.BaselineRow) error {
	if err := validateInt("rows", len(rows), 1, maxRows); err != nil {
		return err
	}
	seen := make(map[key]bool, len(rows))
	for i, r := range rows {
		field := fmt.Sprintf("rows[%d]", i)
		if err := validateRow(field, r); err != nil {
			return err
		}
		if seen[keyOf(r)] {
			return api.Refuse(field, describe(r), "each concurrency, mode and speculation once")
		}
		seen[keyOf(r)] = true
	}
	return nil
}

func validateRow(field string, r api.BaselineRow) error {
	if !slices.Contains(modes, r.Mode) {
		return api.Refuse(field+".mode", quote(string(r.Mode)), oneOf(modes))
	}
	if !slices.Contains(speculations, r.Speculation) {
		return api.Refuse(field+".speculation", quote(string(r.Speculation)), oneOf(speculations))
	}
	if r.Arm != "" && !api.IsArmName(r.Arm) {
		return api.Refuse(field+".arm", quote(r.Arm), api.AllowedArm)
	}
	if m := r.Measured; m != nil && !plausible(*m) {
		return api.Refuse(field+".measured", m.String(), timeAllowed)
	}
	for _, name := range r.Unlike {
		if !slices.ContainsFunc(quantities, func(q *Quantity) bool { return q.Name == name && *q.In(&r) == nil }) {
			return api.Refuse(field+".unlike", quote(name), "names of values that the row does not have, such as ttft_p50")
		}
	}
	for _, name := range r.AtLeast {
		if q := byName[name]; q == nil || *q.In(&r) == nil {
			return api.Refuse(field+".at_least", quote(name), "names of values that the row has, such as ttft_p95")
		}
	}
	for _, q := range quantities {
		v := *q.In(&r)
		if v == nil {
			continue
		}
		if err := validateValue(field+"."+q.Path, *v, q.max); err != nil {
			return err
		}
	}
	if m, median := disordered(&r); m != nil {
		return api.Refuse(field+"."+m.Path, **m.In(&r), fmt.Sprintf("at least the median, %v", median))
	}
	return firstError(
		validateLevel(field+".concurrency", r.Level),
		validateInt(field+".n", r.N, 0, maxCount),
		validateQuality(field, r),
	)
}

// validateQuality checks the sample sizes, intervals and errors of a row.
func validateQuality(field string, r api.BaselineRow) error {
	lag := 0.0
	if r.LagSeconds != nil {
		lag = *r.LagSeconds
	}
	for _, q := range values {
		if e := q.errorOf(&r); e != nil {
			if err := validateValue(field+".errors."+q.Path, *e, maxSeconds); err != nil {
				return err
			}
		}
		if err := validateInterval(field+".intervals."+q.Path, q.IntervalOf(&r), max(maxCount, q.max)); err != nil {
			return err
		}
	}
	return firstError(
		validateValue(field+".seconds", r.Seconds, maxCount),
		validateValue(field+".lag_seconds", lag, maxSeconds),
	)
}

// validateInterval refuses ends that are no numbers, in the wrong order, or beyond the limit.
func validateInterval(field string, in *[2]float64, limit float64) error {
	if in == nil || in[0] <= in[1] && in[0] >= -limit && in[1] <= limit {
		return nil
	}
	return api.Refuse(field, fmt.Sprint(*in),
		fmt.Sprintf("two numbers from %.0f to %.0f, the smaller one first", -limit, limit))
}

const timeAllowed = "an RFC 3339 time from 1970 to 9998"

// plausible reports whether the RFC 3339 form of a year has four digits in every zone.
func plausible(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 1970 && year < 9999
}

// validateValue refuses NaN, values below 0 (and −0), and values above the limit.
func validateValue(field string, v, limit float64) error {
	if math.Signbit(v) || !(v <= limit) { // also true for NaN
		return api.Refuse(field, v, numberAllowed(limit, 0))
	}
	return nil
}

func validateInt(field string, v, low, high int) error {
	if v < low || v > high {
		return api.Refuse(field, strconv.Itoa(v), wholeAllowed(low, high))
	}
	return nil
}

func validateLevel(field string, l api.Level) error {
	if l.IsRate() {
		return nil
	}
	return validateInt(field, l.Conversations(), 1, maxConcurrency)
}

func wholeAllowed(low, high int) string {
	return fmt.Sprintf("a whole number from %d to %d", low, high)
}

func describe(r api.BaselineRow) string {
	if r.Arm != "" {
		return fmt.Sprintf("a second row for concurrency %v, arm %s", r.Level, r.Arm)
	}
	return fmt.Sprintf("a second row for concurrency %v, mode %s, speculation %s", r.Level, r.Mode, r.Speculation)
}

// quote shortens a user's text, so that an error stays one line.
func quote(s string) string {
	if runes := []rune(s); len(runes) > 60 {
		s = string(runes[:60]) + "…"
	}
	return strconv.Quote(s)
}

func oneOf[S ~string](list []S) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	return "one of " + strings.Join(names, ", ")
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
