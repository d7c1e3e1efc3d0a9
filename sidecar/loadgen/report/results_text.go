package report

import (
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
)

// Texts in place of an outcome. The screens use the same ones.
const (
	noneShown   = "not certain"
	ownError    = "withheld for the load generator's own error"
	notRecorded = "not recorded"
)

// undecided maps the outcomes that do not decide which side is better to their texts.
var undecided = map[api.Outcome]string{
	api.OutcomeNoDifference: noneShown, api.OutcomeTooVariable: "not certain yet", api.OutcomeWithheld: ownError,
	api.OutcomeTradeOff: "not counted",
}

// speculation is the title of a table that only reports with speculative decoding have.
const speculation = "Speculation and GPU memory"

// achieved is the title of a table that only reports on turns followed by a shadow have.
const achieved = "Share of the achievable hit rate"

// quantity describes how reports show a [proof.Quantity].
type quantity struct {
	*baseline.Quantity
	table string // title of its table
	title string // name outside its table
	label string // name within its table
	value func(float64) string
}

// quantities lists every quantity in the order of the tables.
var quantities = slices.Concat(latencies[:2], []*quantity{
	{proof.QuantityHitRate, "KV cache hit rate", "KV cache hit rate", "hit rate", api.Percent},
	{proof.QuantityAchieved, achieved, achieved, "share", api.Percent},
	{proof.QuantityThroughput, "Throughput and requests", "Throughput", "tokens/s", whole},
	{proof.QuantityRequests, "Throughput and requests", "Requests", "requests/s", hundredths},
}, latencies[2:], []*quantity{
	{proof.QuantityAcceptance, speculation, "Acceptance rate", "acceptance rate", api.Percent},
	{proof.QuantityPerStep, speculation, "Tokens per step", "tokens per step", hundredths},
	{proof.QuantityGPUMemory, speculation, "Memory of a GPU", "memory of a GPU", gigabytes},
})

// meanTTFT decides trials. Figures and charts of a sweep show it first, and no pair of results is judged by it.
var meanTTFT = &quantity{baseline.QuantityOf("ttft_mean"), "TTFT", "Mean TTFT", "mean", api.Milliseconds}

// latencies describes the percentiles of times, first those of TTFT. Each time has a table.
var latencies = func() (all []*quantity) {
	for _, q := range baseline.Latencies {
		key, percentile, _ := strings.Cut(q.Path, ".")
		name := sentenceCase(api.FigureOf(key).Short())
		all = append(all, &quantity{q, name, name + " " + percentile, percentile, api.Milliseconds})
	}
	return all
}()

func describe(q proof.Quantity) *quantity {
	return quantities[slices.IndexFunc(quantities, func(s *quantity) bool { return s.Quantity == q })]
}

type table struct {
	title string
	of    []*quantity
}

// tables returns the tables of the report. The table of speculation needs a value of drafted tokens, and that of the
// share of the achievable hit rate a value.
func (r *Results) tables() (all []table) {
	for _, q := range quantities {
		missing := q.table == achieved && !slices.Contains(r.Quantities(), q.Quantity)
		if missing || q.table == speculation && !r.drafts() {
			continue
		}
		if n := len(all); n == 0 || all[n-1].title != q.table {
			all = append(all, table{title: q.table})
		}
		last := &all[len(all)-1]
		last.of = append(last.of, q)
	}
	return all
}

// drafts reports whether the report has a value of drafted tokens.
func (r *Results) drafts() bool {
	return slices.ContainsFunc(r.Quantities(), func(q proof.Quantity) bool {
		return q == proof.QuantityAcceptance || q == proof.QuantityPerStep
	})
}

func tenths(v float64) string     { return api.Number(v, 1) }
func hundredths(v float64) string { return api.Number(v, 2) }
func gigabytes(v float64) string  { return api.Number(v/(1<<30), 1) + " GiB" }

// inPoints reports whether differences of the quantity are in percentage points.
func (q *quantity) inPoints() bool {
	return q.Kind == baseline.Share
}

// advantage formats an advantage with its sign, in per cent or points. v is a fraction.
func (q *quantity) advantage(v float64) string { return signed(v, q.inPoints()) }

// signed formats a difference with its sign, in per cent or percentage points. v is a fraction.
func signed(v float64, points bool) string {
	return api.Signed(100*v, 1) + unitOf(points)
}

func numbers(all []api.Level) string {
	text := make([]string, len(all))
	for i, level := range all {
		text[i] = level.String()
	}
	return strings.Join(text, ", ")
}

// succeeded is part of the name of a time where turns failed. Only the verdict of a trial counts failed turns in times.
const succeeded = "successful turns only"

// withFailures adds to the name of a time that failed turns are not in it, if any row has some.
func withFailures(name string, isTime bool, rows ...*api.BaselineRow) string {
	if isTime && slices.ContainsFunc(rows, func(row *api.BaselineRow) bool { return value64(row.ErrorRatio) > 0 }) {
		return name + ", " + succeeded
	}
	return name
}

// isTime reports whether the quantity is a time of turns.
func (q *quantity) isTime() bool { return q.Kind == baseline.Time }

// cell formats a value with its interval. A nil value is not recorded. A nil interval is left out.
func (q *quantity) cell(v *float64, interval *[2]float64) string {
	if v == nil {
		return notRecorded
	}
	text := q.value
	if interval == nil {
		return text(*v)
	}
	low, _, _ := strings.Cut(text(interval[0]), " ")
	high, _, _ := strings.Cut(text(interval[1]), " ")
	return fmt.Sprintf("%s (%s to %s)", text(*v), low, high)
}

// cellOf extends cell by values that an imported file has by another definition, and by those that are lower bounds.
func (q *quantity) cellOf(v *float64, interval *[2]float64, unlike, atLeast bool) string {
	switch {
	case v == nil && unlike:
		return "defined differently"
	case v != nil && atLeast:
		return "≥ " + q.cell(v, nil)
	}
	return q.cell(v, interval)
}

// advantageCell formats an advantage with its interval and, if it is not certain, the reason.
func (q *quantity) advantageCell(f *proof.Figure) string {
	if f.Advantage == nil {
		if f.A != nil && f.B != nil {
			return "not compared"
		}
		return notRecorded
	}
	text := q.advantage(*f.Advantage)
	isLong := q.Kind == baseline.Time && *f.Advantage < -1
	if isLong {
		text = timesAsLong(-*f.Advantage)
	}
	why := undecided[f.Outcome]
	if why == "" && f.Interval != nil && !f.Estimated && isLong {
		text = fmt.Sprintf("%s (%s to %s)", text, tenths(1-f.Interval[1]), tenths(1-f.Interval[0]))
	} else if why == "" && f.Interval != nil && !f.Estimated {
		text = fmt.Sprintf("%s (%s to %s)", text, withoutUnit(q.advantage(f.Interval[0])),
			withoutUnit(q.advantage(f.Interval[1])))
	}
	if strings.HasPrefix(q.Name, "ttft") && f.A != nil && f.B != nil {
		text += ", " + signedMilliseconds(*f.B-*f.A)
	}
	if why != "" {
		text += ", " + why
	}
	return text
}

func signedMilliseconds(seconds float64) string {
	text := api.Milliseconds(seconds)
	if seconds > 0 && !api.IsZero(text) {
		return "+" + text
	}
	return text
}

// timesAsLong words that a time is longer by more than 100 %. v is a fraction.
func timesAsLong(v float64) string { return api.Number(1+v, 1) + " times as long" }

// withoutUnit returns the text up to its first blank.
func withoutUnit(text string) string {
	number, _, _ := strings.Cut(text, " ")
	return number
}

// verdict describes an average advantage of b in a sentence, favorable or not.
func (q *quantity) verdict(s proof.Average, b string) string {
	text := fmt.Sprintf("an average advantage of %s for %s over %d levels (%v to %v), from %s at %v to %s at %v.",
		q.advantage(s.Advantage), b, s.Levels, s.From, s.To, q.advantage(s.Worst), s.WorstLevel,
		q.advantage(s.Best), s.BestLevel)
	if s.Levels == 1 {
		text = fmt.Sprintf("an advantage of %s for %s at %v.", q.advantage(s.Advantage), b, s.BestLevel)
	}
	var parts []string
	if len(s.Worse) > 0 {
		parts = append(parts, b+" is worse at "+numbers(s.Worse))
	}
	parts = append(parts, undecidedLevels(&s)...)
	if len(parts) > 0 {
		text += " " + capital(parts[0], b) + strings.Join(append([]string{""}, parts[1:]...), "; ") + "."
	}
	return text
}

// undecidedLevels lists the levels at which no side is better.
func undecidedLevels(s *proof.Average) (parts []string) {
	for _, of := range []struct {
		outcome api.Outcome
		levels  []api.Level
	}{
		{api.OutcomeNoDifference, s.NoneShown},
		{api.OutcomeTooVariable, s.TooVariable},
		{api.OutcomeWithheld, s.Withheld},
		{api.OutcomeTradeOff, s.TradeOff},
	} {
		if len(of.levels) > 0 {
			parts = append(parts, undecided[of.outcome]+" at "+numbers(of.levels))
		}
	}
	return parts
}

// capital writes the first letter in upper case, unless the text begins with a name.
func capital(text, name string) string {
	if strings.HasPrefix(text, name) {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// shortID shortens a number of more than 12 digits that identifies something, for readers. JSON and tables for programs
// have all of it.
func shortID(id string) string {
	const ends = 4
	if len(id) <= 3*ends || strings.Trim(id, "0123456789") != "" {
		return id
	}
	return id[:ends] + "…" + id[len(id)-ends:]
}
