package proof

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
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

// tables are those of a report.
var tables = []struct {
	title string
	of    []Quantity
}{
	{"TTFT", []Quantity{QuantityTTFT50, QuantityTTFT95}},
	{"KV cache hit rate", []Quantity{QuantityHitRate}},
	{"Throughput and requests", []Quantity{QuantityThroughput, QuantityRequests}},
	{"TPOT", []Quantity{QuantityTPOT50, QuantityTPOT95}},
	{"Latency", []Quantity{QuantityLatency50, QuantityLatency95}},
	{speculation, []Quantity{QuantityAcceptance, QuantityPerStep, QuantityGPUMemory}},
}

// title is what a quantity is called on its own.
func (q Quantity) title() string {
	switch q {
	case QuantityThroughput:
		return "Throughput"
	case QuantityRequests:
		return "Requests"
	case QuantityHitRate:
		return "KV cache hit rate"
	case QuantityAcceptance:
		return "Acceptance rate"
	case QuantityPerStep:
		return "Tokens per step"
	case QuantityGPUMemory:
		return "Memory of a GPU"
	case QuantityTPOT50, QuantityTPOT95:
		return "TPOT " + labels[q].name
	case QuantityLatency50, QuantityLatency95:
		return "Latency " + labels[q].name
	}
	return "TTFT " + labels[q].name
}

// labels are what tables call the quantities, and how they print a value and an advantage.
var labels = map[Quantity]struct {
	name   string
	value  func(float64) string
	points bool
}{
	QuantityTTFT50:     {"p50", milliseconds, false},
	QuantityTTFT95:     {"p95", milliseconds, false},
	QuantityTPOT50:     {"p50", milliseconds, false},
	QuantityTPOT95:     {"p95", milliseconds, false},
	QuantityLatency50:  {"p50", seconds, false},
	QuantityLatency95:  {"p95", seconds, false},
	QuantityThroughput: {"tokens/s", func(v float64) string { return fmt.Sprintf("%.1f", v) }, false},
	QuantityRequests:   {"requests/s", func(v float64) string { return fmt.Sprintf("%.2f", v) }, false},
	QuantityHitRate:    {"hit rate", func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }, true},
	QuantityAcceptance: {"acceptance rate", func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }, true},
	QuantityPerStep:    {"tokens per step", func(v float64) string { return fmt.Sprintf("%.2f", v) }, false},
	QuantityGPUMemory:  {"memory of a GPU", func(v float64) string { return fmt.Sprintf("%.1f GiB", v/(1<<30)) }, false},
}

func milliseconds(v float64) string { return fmt.Sprintf("%.0f ms", 1000*v) }
func seconds(v float64) string      { return fmt.Sprintf("%.1f s", v) }

// advantage prints one with its sign.
func (q Quantity) advantage(v float64) string {
	text := fmt.Sprintf("%+.1f", 100*v)
	if strings.Trim(text, "+-0.") == "" {
		text = "0.0"
	}
	text = strings.Replace(text, "-", "−", 1)
	if labels[q].points {
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
func (q Quantity) cell(v *float64, interval *[2]float64) string {
	if v == nil {
		return notRecorded
	}
	text := labels[q].value
	if interval == nil {
		return text(*v)
	}
	low, _, _ := strings.Cut(text(interval[0]), " ")
	high, _, _ := strings.Cut(text(interval[1]), " ")
	return fmt.Sprintf("%s (%s to %s)", text(*v), low, high)
}

// cellOf is that of a value that a file may have by another definition.
func (q Quantity) cellOf(v *float64, interval *[2]float64, unlike bool) string {
	if v == nil && unlike {
		return "defined differently"
	}
	return q.cell(v, interval)
}

// advantageCell is an advantage with what it is worth.
func (q Quantity) advantageCell(f *Figure) string {
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
	if strings.HasPrefix(string(q), "ttft") && f.A != nil && f.B != nil {
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

// verdict says in a sentence what an average shows, favourable or not.
func (q Quantity) verdict(s Average, b string) string {
	text := fmt.Sprintf("an average advantage of %s for %s over %d levels (%d to %d), from %s at %d to %s at %d.",
		q.advantage(s.Advantage), b, s.Levels, s.From, s.To, q.advantage(s.Worst), s.WorstLevel, q.advantage(s.Best), s.BestLevel)
	if s.Levels == 1 {
		text = fmt.Sprintf("an advantage of %s for %s at %d.", q.advantage(s.Advantage), b, s.BestLevel)
	}
	var parts []string
	for _, of := range []struct {
		levels []int
		words  string
	}{{s.Worse, b + " is worse at "}, {s.NoneShown, noneShown + " at "}, {s.TooVariable, tooVariable + " at "}, {s.Withheld, ownError + " at "}} {
		if len(of.levels) > 0 {
			parts = append(parts, of.words+numbers(of.levels))
		}
	}
	if len(parts) > 0 {
		text += " " + capital(parts[0], b) + strings.Join(append([]string{""}, parts[1:]...), "; ") + "."
	}
	return text
}

// capital makes words the beginning of a sentence, but for a name that is written small.
func capital(text, name string) string {
	if strings.HasPrefix(text, name) {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
