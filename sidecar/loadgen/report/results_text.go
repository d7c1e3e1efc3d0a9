package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
)

// What stands where an interval decides nothing, as on the screens.
const (
	noneShown   = "not certain"
	tooVariable = "not certain yet"
	ownError    = "withheld for the load generator's own error"
	notRecorded = "not recorded"
)

// speculation is the title of the table that only a report on speculation has.
const speculation = "Speculation and GPU memory"

// quantity is how reports show one.
type quantity struct {
	proof.Quantity
	table string // that it stands in
	title string // on its own
	label string // in its table
	value func(float64) string
}

// shown are all of them, in the order of the tables.
var shown = []*quantity{
	{proof.QuantityTTFT50, "TTFT", "TTFT p50", "p50", milliseconds},
	{proof.QuantityTTFT95, "TTFT", "TTFT p95", "p95", milliseconds},
	{proof.QuantityHitRate, "KV cache hit rate", "KV cache hit rate", "hit rate", share100},
	{proof.QuantityThroughput, "Throughput and requests", "Throughput", "tokens/s", tenths},
	{proof.QuantityRequests, "Throughput and requests", "Requests", "requests/s", hundredths},
	{proof.QuantityTPOT50, "TPOT", "TPOT p50", "p50", milliseconds},
	{proof.QuantityTPOT95, "TPOT", "TPOT p95", "p95", milliseconds},
	{proof.QuantityLatency50, "Latency", "Latency p50", "p50", seconds},
	{proof.QuantityLatency95, "Latency", "Latency p95", "p95", seconds},
	{proof.QuantityAcceptance, speculation, "Acceptance rate", "acceptance rate", share100},
	{proof.QuantityPerStep, speculation, "Tokens per step", "tokens per step", hundredths},
	{proof.QuantityGPUMemory, speculation, "Memory of a GPU", "memory of a GPU", gigabytes},
}

// describe is how a quantity is shown; nil: as none of the tables' columns.
func describe(q proof.Quantity) *quantity {
	at := slices.IndexFunc(shown, func(s *quantity) bool { return s.Quantity == q })
	if at < 0 {
		return nil
	}
	return shown[at]
}

// shown are the quantities of the report, in the order of its columns for programs.
func (r *Results) shown() (all []*quantity) {
	for _, q := range r.Quantities() {
		all = append(all, describe(q))
	}
	return all
}

// table is one of a report.
type table struct {
	title string
	of    []*quantity
}

// tables are those of the report: that of speculation only where anything was drafted, as far as it knows.
func (r *Results) tables() (all []table) {
	for _, q := range shown {
		if q.table == speculation && !r.drafts() {
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

// drafts says whether anything was drafted, as far as the report knows.
func (r *Results) drafts() bool {
	return slices.ContainsFunc(r.Quantities(), func(q proof.Quantity) bool {
		return q == proof.QuantityAcceptance || q == proof.QuantityPerStep
	})
}

func milliseconds(v float64) string { return fmt.Sprintf("%.0f ms", 1000*v) }
func seconds(v float64) string      { return fmt.Sprintf("%.1f s", v) }
func share100(v float64) string     { return fmt.Sprintf("%.1f %%", 100*v) }
func tenths(v float64) string       { return fmt.Sprintf("%.1f", v) }
func hundredths(v float64) string   { return fmt.Sprintf("%.2f", v) }
func gigabytes(v float64) string    { return fmt.Sprintf("%.1f GiB", v/(1<<30)) }

// points says whether differences are in percentage points.
func (q *quantity) points() bool {
	return baseline.QuantityOf(string(q.Quantity)).Kind == baseline.Share
}

// advantage prints one with its sign.
func (q *quantity) advantage(v float64) string {
	text := fmt.Sprintf("%+.1f", 100*v)
	if strings.Trim(text, "+-0.") == "" {
		text = "0.0"
	}
	text = strings.Replace(text, "-", "−", 1)
	if q.points() {
		return text + " points"
	}
	return text + " %"
}

// numbers lists levels.
func numbers(all []int) string {
	text := make([]string, len(all))
	for i, n := range all {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ", ")
}

// cell is a value, with the interval that was measured with it.
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

// cellOf is that of a value that a file may have by another definition.
func (q *quantity) cellOf(v *float64, interval *[2]float64, unlike bool) string {
	if v == nil && unlike {
		return "defined differently"
	}
	return q.cell(v, interval)
}

// advantageCell is an advantage with what it is worth.
func (q *quantity) advantageCell(f *proof.Figure) string {
	if f.Advantage == nil {
		if f.A != nil && f.B != nil {
			return "not compared"
		}
		return notRecorded
	}
	text := q.advantage(*f.Advantage)
	if !notCertain[f.Outcome] && f.Interval != nil && !f.Estimated {
		text = fmt.Sprintf("%s (%s to %s)", text, bare(q.advantage(f.Interval[0])), bare(q.advantage(f.Interval[1])))
	}
	if strings.HasPrefix(string(q.Quantity), "ttft") && f.A != nil && f.B != nil {
		text += ", " + signedMilliseconds(*f.B-*f.A)
	}
	switch f.Outcome {
	case api.OutcomeNoDifference:
		return text + ", " + noneShown
	case api.OutcomeTooVariable:
		return text + ", " + tooVariable
	case api.OutcomeWithheld:
		return text + ", " + ownError
	}
	return text
}

// notCertain are the outcomes that say nothing about which side is better.
var notCertain = map[api.Outcome]bool{
	api.OutcomeNoDifference: true, api.OutcomeTooVariable: true, api.OutcomeWithheld: true,
}

// signedMilliseconds writes a difference of times.
func signedMilliseconds(seconds float64) string {
	ms := math.Round(1000 * seconds)
	switch {
	case ms < 0:
		return fmt.Sprintf("−%.0f ms", -ms)
	case ms > 0:
		return fmt.Sprintf("+%.0f ms", ms)
	}
	return "0 ms"
}

// bare leaves the unit out.
func bare(text string) string {
	number, _, _ := strings.Cut(text, " ")
	return number
}

// verdict says in a sentence what an average shows, favorable or not.
func (q *quantity) verdict(s proof.Average, b string) string {
	text := fmt.Sprintf("an average advantage of %s for %s over %d levels (%d to %d), from %s at %d to %s at %d.",
		q.advantage(s.Advantage), b, s.Levels, s.From, s.To, q.advantage(s.Worst), s.WorstLevel,
		q.advantage(s.Best), s.BestLevel)
	if s.Levels == 1 {
		text = fmt.Sprintf("an advantage of %s for %s at %d.", q.advantage(s.Advantage), b, s.BestLevel)
	}
	var parts []string
	if len(s.Worse) > 0 {
		parts = append(parts, b+" is worse at "+numbers(s.Worse))
	}
	parts = append(parts, undecided(&s)...)
	if len(parts) > 0 {
		text += " " + capital(parts[0], b) + strings.Join(append([]string{""}, parts[1:]...), "; ") + "."
	}
	return text
}

// undecided says at which levels nothing is called better or worse.
func undecided(s *proof.Average) (parts []string) {
	for _, of := range []struct {
		words  string
		levels []int
	}{{noneShown, s.NoneShown}, {tooVariable, s.TooVariable}, {ownError, s.Withheld}} {
		if len(of.levels) > 0 {
			parts = append(parts, of.words+" at "+numbers(of.levels))
		}
	}
	return parts
}

// capital makes words the beginning of a sentence, but for a name that is written small.
func capital(text, name string) string {
	if strings.HasPrefix(text, name) {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
