package proof

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// WriteJSON writes the report with all its digits.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTSV writes the levels as a table of tab-separated values: times in seconds,
// shares from 0 to 1, an empty field for what is not known.
func (r *Report) WriteTSV(w io.Writer) error {
	var b strings.Builder
	b.WriteString("concurrency")
	for _, q := range quantities {
		fmt.Fprintf(&b, "\ta_%s\tb_%[1]s\tadvantage_%[1]s", q.name)
	}
	for i := range r.Levels {
		fmt.Fprintf(&b, "\n%d", r.Levels[i].Concurrency)
		for _, q := range quantities {
			f := r.Levels[i].Figures[q.name]
			for _, v := range []*float64{f.A, f.B, f.Advantage} {
				b.WriteByte('\t')
				if v != nil {
					b.WriteString(strconv.FormatFloat(*v, 'g', 6, 64))
				}
			}
		}
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes the report to be read: setup, methodology, tables, what the SLOs
// allow, summary, inputs.
func (r *Report) WriteMarkdown(w io.Writer) error {
	m := &markdown{r: r, a: modeName(r.A), b: modeName(r.B)}
	if m.a == m.b { // they differ in speculation
		m.a, m.b = m.a+", speculation "+string(r.A.Speculation), m.b+", speculation "+string(r.B.Speculation)
	}
	m.f("# %s against %s: %s\n\n", m.b, m.a, r.Title)
	m.setup()
	m.f("\n## Results\n\nAn advantage is (%s − %s) / %[1]s for times, (%[2]s − %[1]s) / %[1]s for rates, and a difference in percentage points for hit rates: positive where %[2]s is better.\n", m.a, m.b)
	for _, t := range tables {
		m.table(t.title, t.of)
	}
	m.sustained()
	m.summary()
	m.inputs()
	_, err := io.WriteString(w, m.String())
	return err
}

// markdown is a report as it is written.
type markdown struct {
	strings.Builder
	r    *Report
	a, b string // names of the modes
}

func (m *markdown) f(format string, args ...any) { fmt.Fprintf(&m.Builder, format, args...) }

// modeName is what people call a mode.
func modeName(s api.ModeState) string {
	switch s.Mode {
	case api.ModeKV:
		return "KV-aware"
	case api.ModeRoundRobin:
		return "Round-robin"
	case api.ModeLeastLoaded:
		return "Least-loaded"
	}
	return string(s.Mode)
}

func (m *markdown) setup() {
	d := m.r.Deployment
	m.f("## Setup\n\n")
	item := func(name, value string) {
		if value != "" && value != "0" {
			m.f("- **%s**: %s\n", name, value)
		}
	}
	item("Model", d.Model)
	item("GPU", d.GPU)
	item("Workers", strconv.Itoa(d.Workers))
	item("Tensor parallelism", strconv.Itoa(d.TensorParallel))
	item("Engine", d.Engine)
	m.f("- **Modes**: %s (`%s`, speculation %s) against %s (`%s`, speculation %s)\n", m.b, m.r.B.Mode, speculation(m.r.B), m.a, m.r.A.Mode, speculation(m.r.A))
	m.f("\n## Methodology\n\n- **Figures**: %s\n- **Concurrency**: %s conversations in progress\n", m.r.Kind, numbers(m.levels()))
	if w := m.r.Workload; w != nil && w.Turns.Max > 0 {
		turns := strconv.Itoa(w.Turns.Min)
		if w.Turns.Max > w.Turns.Min {
			turns += " to " + strconv.Itoa(w.Turns.Max)
		}
		m.f("- **Workload**: %s turns a conversation\n", turns)
	}
	if m.r.Notes != "" {
		m.f("\n%s\n", m.r.Notes)
	}
}

func speculation(s api.ModeState) string {
	if s.Speculation == api.SpeculationNotRecorded {
		return "not recorded"
	}
	return cmp.Or(string(s.Speculation), "not recorded")
}

func (m *markdown) levels() (all []int) {
	for i := range m.r.Levels {
		all = append(all, m.r.Levels[i].Concurrency)
	}
	return all
}

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

// table writes quantities level by level, where any level has one.
func (m *markdown) table(title string, of []Quantity) {
	var known []Quantity
	for _, q := range of {
		if _, ok := m.r.Averages[q]; ok {
			known = append(known, q)
		}
	}
	if len(known) == 0 {
		m.f("\n### %s\n\nNot recorded.\n", title)
		return
	}
	m.f("\n### %s\n\n| Concurrency |", title)
	for _, q := range known {
		m.f(" %s %s | %s %[2]s | Advantage |", m.a, labels[q].name, m.b)
	}
	m.f("\n|:---:|%s\n", strings.Repeat(":---:|:---:|:---:|", len(known)))
	for i := range m.r.Levels {
		m.f("| %d |", m.r.Levels[i].Concurrency)
		for _, q := range known {
			f := m.r.Levels[i].Figures[q]
			m.f(" %s | %s | %s |", orMissing(f.A, labels[q].value), orMissing(f.B, labels[q].value), orMissing(f.Advantage, q.advantage))
		}
		m.f("\n")
	}
}

func orMissing(v *float64, text func(float64) string) string {
	if v == nil {
		return "not recorded"
	}
	return text(*v)
}

func (m *markdown) sustained() {
	slo := m.r.SLO
	m.f("\n### What the SLOs allow\n\nTTFT p95 up to %s and TPOT p95 up to %s. Sustained is the highest tested level such that it and every lower one meet both.\n\n| Mode | Sustained concurrency |\n|---|:---:|\n", milliseconds(slo.TTFT), milliseconds(slo.TPOT))
	for i, name := range []string{m.a, m.b} {
		s := m.r.Sustained[i]
		text := "not known"
		switch {
		case s.Level == nil:
		case *s.Level == 0:
			text = fmt.Sprintf("none: %d, the lowest tested, misses them", m.levels()[0])
		default:
			text = strconv.Itoa(*s.Level)
		}
		if len(s.Isolated) > 0 {
			text += "; by themselves " + numbers(s.Isolated) + " meet them, above a level that does not"
		}
		if len(s.TTFTOnly) > 0 {
			text += "; judged by TTFT alone, since TPOT was not recorded at " + numbers(s.TTFTOnly)
		}
		m.f("| %s | %s |\n", name, text)
	}
}

// numbers lists levels.
func numbers(all []int) string {
	text := make([]string, len(all))
	for i, n := range all {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ", ")
}

func (m *markdown) summary() {
	m.f("\n## Summary\n\n")
	for _, t := range tables {
		for _, q := range t.of {
			s, ok := m.r.Averages[q]
			if !ok {
				continue
			}
			name := t.title
			if len(t.of) > 1 {
				name += ", " + labels[q].name
			}
			m.f("- **%s**: %s", name, q.verdict(s, m.b))
			if q == QuantityHitRate {
				v := labels[q].value
				m.f(" On average %s under %s (%s to %s) and %s under %s (%s to %s).",
					v(s.B), m.b, v(s.RangeB[0]), v(s.RangeB[1]), v(s.A), m.a, v(s.RangeA[0]), v(s.RangeA[1]))
			}
			m.f("\n")
		}
	}
}

// verdict says in a sentence what an average shows, favourable or not.
func (q Quantity) verdict(s Average, b string) string {
	if s.Levels == 1 {
		return fmt.Sprintf("an advantage of %s for %s at %d.", q.advantage(s.Advantage), b, s.BestLevel)
	}
	text := fmt.Sprintf("an average advantage of %s for %s over %d levels, from %s at %d to %s at %d.",
		q.advantage(s.Advantage), b, s.Levels, q.advantage(s.Worst), s.WorstLevel, q.advantage(s.Best), s.BestLevel)
	if len(s.Worse) > 0 {
		text += fmt.Sprintf(" %s is worse at %s.", b, numbers(s.Worse))
	}
	return text
}

func (m *markdown) inputs() {
	m.f("\n## Inputs\n\n")
	if len(m.r.Inputs) == 0 {
		m.f("Not recorded.\n")
		return
	}
	m.f("| File | Date | Seed | Version |\n|---|---|---|---|\n")
	for _, in := range m.r.Inputs {
		date, seed := "not recorded", "not recorded"
		if in.Date != nil {
			date = in.Date.UTC().Format(time.RFC3339)
		}
		if in.Seed != nil {
			seed = strconv.FormatUint(*in.Seed, 10)
		}
		m.f("| %s | %s | %s | %s |\n", cmp.Or(in.File, "not recorded"), date, seed, cmp.Or(in.Version, "not recorded"))
	}
}
