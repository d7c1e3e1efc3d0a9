package proof

import (
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// Input is where a report's figures come from.
type Input struct {
	File    string     `json:"file"`
	Date    *time.Time `json:"date,omitempty"`
	Seed    *uint64    `json:"seed,omitempty,string"`
	Version string     `json:"version,omitempty"` // of the load generator that measured
}

// Question is what a report is about: two modes of one baseline, at some levels.
type Question struct {
	A      api.ModeState // what B is compared with
	B      api.ModeState
	Levels []int // that are tested; none: all that both modes have
	SLO    api.SLO
	Inputs []Input
}

// Figure is one quantity of a level in both modes. Times are in seconds, shares from 0 to 1; nil is
// not recorded. The advantage of B is (A − B)/A of times, (B − A)/A of rates, and B − A
// of shares: positive where B is better.
type Figure struct {
	A         *float64 `json:"a,omitempty"`
	B         *float64 `json:"b,omitempty"`
	Advantage *float64 `json:"advantage,omitempty"`
}

// Level is a report's row.
type Level struct {
	Concurrency int                 `json:"concurrency"`
	Figures     map[Quantity]Figure `json:"figures"`
}

// Average sums a quantity up over the levels at which both modes have it.
type Average struct {
	Levels     int        `json:"levels"`
	A          float64    `json:"a"`       // mean
	B          float64    `json:"b"`       // mean
	RangeA     [2]float64 `json:"range_a"` // least and largest
	RangeB     [2]float64 `json:"range_b"`
	Advantage  float64    `json:"advantage"` // mean of the levels' own
	Best       float64    `json:"best"`      // the largest advantage, and where it is
	BestLevel  int        `json:"best_level"`
	Worst      float64    `json:"worst"`
	WorstLevel int        `json:"worst_level"`
	Worse      []int      `json:"worse"` // levels at which B is worse
}

// Report compares two modes level by level. All in it is computed from the baseline.
type Report struct {
	Title      string               `json:"title"`
	Kind       string               `json:"kind"` // recorded, imported or measured
	Deployment api.Deployment       `json:"deployment"`
	Workload   *api.WorkloadShape   `json:"workload,omitempty"`
	Notes      string               `json:"notes,omitempty"`
	A          api.ModeState        `json:"a"`
	B          api.ModeState        `json:"b"`
	SLO        api.SLO              `json:"slo"`
	Levels     []Level              `json:"levels"`
	Averages   map[Quantity]Average `json:"averages"`
	Sustained  [2]api.Sustained     `json:"sustained"` // of A and of B
	Inputs     []Input              `json:"inputs"`
}

// Quantity is a column of a report's tables.
type Quantity string

// The quantities.
const (
	QuantityTTFT50     Quantity = "ttft_p50"
	QuantityTTFT95     Quantity = "ttft_p95"
	QuantityTPOT50     Quantity = "tpot_p50"
	QuantityTPOT95     Quantity = "tpot_p95"
	QuantityLatency50  Quantity = "latency_p50"
	QuantityLatency95  Quantity = "latency_p95"
	QuantityThroughput Quantity = "output_tokens_per_second"
	QuantityRequests   Quantity = "requests_per_second"
	QuantityHitRate    Quantity = "kv_hit_ratio"
)

// quantity says how to read and to judge one.
type quantity struct {
	name     Quantity
	of       func(*api.BaselineRow) **float64
	interval func(*api.RowIntervals) **[2]float64
	kind     kind
}

// kind is what sort of quantity it is.
type kind int

const (
	duration kind = iota
	rate
	share
)

var quantities = []quantity{
	{QuantityTTFT50, func(r *api.BaselineRow) **float64 { return &r.TTFT.P50 }, func(r *api.RowIntervals) **[2]float64 { return &r.TTFT.P50 }, duration},
	{QuantityTTFT95, func(r *api.BaselineRow) **float64 { return &r.TTFT.P95 }, func(r *api.RowIntervals) **[2]float64 { return &r.TTFT.P95 }, duration},
	{QuantityTPOT50, func(r *api.BaselineRow) **float64 { return &r.TPOT.P50 }, func(r *api.RowIntervals) **[2]float64 { return &r.TPOT.P50 }, duration},
	{QuantityTPOT95, func(r *api.BaselineRow) **float64 { return &r.TPOT.P95 }, func(r *api.RowIntervals) **[2]float64 { return &r.TPOT.P95 }, duration},
	{QuantityLatency50, func(r *api.BaselineRow) **float64 { return &r.Latency.P50 }, func(r *api.RowIntervals) **[2]float64 { return &r.Latency.P50 }, duration},
	{QuantityLatency95, func(r *api.BaselineRow) **float64 { return &r.Latency.P95 }, func(r *api.RowIntervals) **[2]float64 { return &r.Latency.P95 }, duration},
	{QuantityThroughput, func(r *api.BaselineRow) **float64 { return &r.OutputTokensPerSecond }, func(r *api.RowIntervals) **[2]float64 { return &r.OutputTokensPerSecond }, rate},
	{QuantityRequests, func(r *api.BaselineRow) **float64 { return &r.RequestsPerSecond }, func(r *api.RowIntervals) **[2]float64 { return &r.RequestsPerSecond }, rate},
	{QuantityHitRate, func(r *api.BaselineRow) **float64 { return &r.KVHitRatio }, func(r *api.RowIntervals) **[2]float64 { return &r.KVHitRatio }, share},
}

// NewReport compares two modes of a baseline. An error is an *[api.FieldError]: a mode or a level
// that the baseline has not.
func NewReport(b api.Baseline, q Question) (Report, error) {
	a, err := rowsOf(b, "a", q.A)
	if err != nil {
		return Report{}, err
	}
	other, err := rowsOf(b, "b", q.B)
	if err != nil {
		return Report{}, err
	}
	levels := q.Levels
	if len(levels) == 0 {
		for level := range a {
			if other[level] != nil {
				levels = append(levels, level)
			}
		}
	}
	levels = slices.Compact(slices.Sorted(slices.Values(levels)))
	r := Report{
		Title: b.Title, Kind: b.Kind, Deployment: b.Deployment, Workload: b.Workload, Notes: b.Notes,
		A: q.A, B: q.B, SLO: q.SLO, Averages: map[Quantity]Average{}, Inputs: slices.Concat([]Input{}, q.Inputs),
	}
	var tested api.Baseline
	for _, level := range levels {
		if a[level] == nil || other[level] == nil {
			return Report{}, api.Refuse("levels", level, "one that both modes were measured at")
		}
		r.Levels = append(r.Levels, compareRows(level, a[level], other[level]))
		tested.Rows = append(tested.Rows, *a[level], *other[level])
	}
	for _, q := range quantities {
		if average, ok := r.average(q.name); ok {
			r.Averages[q.name] = average
		}
	}
	for _, s := range baseline.Sustained(tested, q.SLO) {
		state := api.ModeState{Mode: s.Mode, Speculation: s.Speculation}
		if state == q.A {
			r.Sustained[0] = s
		}
		if state == q.B {
			r.Sustained[1] = s
		}
	}
	return r, nil
}

// rowsOf are a mode's rows by level.
func rowsOf(b api.Baseline, field string, m api.ModeState) (map[int]*api.BaselineRow, error) {
	rows := map[int]*api.BaselineRow{}
	for i := range b.Rows {
		if r := &b.Rows[i]; r.Mode == m.Mode && r.Speculation == m.Speculation {
			rows[r.Concurrency] = r
		}
	}
	if len(rows) == 0 {
		return nil, api.Refuse(field, string(m.Mode)+" with speculation "+string(m.Speculation), "a mode and speculation that the baseline has")
	}
	return rows, nil
}

func compareRows(level int, a, b *api.BaselineRow) Level {
	l := Level{Concurrency: level, Figures: map[Quantity]Figure{}}
	for _, q := range quantities {
		f := Figure{A: *q.of(a), B: *q.of(b)}
		if f.A != nil && f.B != nil {
			if v := q.kind.advantage(*f.A, *f.B); finite(v) {
				f.Advantage = &v
			}
		}
		l.Figures[q.name] = f
	}
	return l
}

// advantage is that of b.
func (k kind) advantage(a, b float64) float64 {
	switch k {
	case duration:
		return (a - b) / a
	case rate:
		return (b - a) / a
	}
	return b - a
}

// average sums up a quantity; false where no level has it in both modes.
func (r *Report) average(name Quantity) (s Average, ok bool) {
	s = Average{
		RangeA: [2]float64{math.Inf(1), math.Inf(-1)}, RangeB: [2]float64{math.Inf(1), math.Inf(-1)},
		Best: math.Inf(-1), Worst: math.Inf(1), Worse: []int{},
	}
	for i := range r.Levels {
		f := r.Levels[i].Figures[name]
		if f.Advantage == nil {
			continue
		}
		s.Levels++
		s.A, s.B, s.Advantage = s.A+*f.A, s.B+*f.B, s.Advantage+*f.Advantage
		s.RangeA = [2]float64{min(s.RangeA[0], *f.A), max(s.RangeA[1], *f.A)}
		s.RangeB = [2]float64{min(s.RangeB[0], *f.B), max(s.RangeB[1], *f.B)}
		if *f.Advantage > s.Best {
			s.Best, s.BestLevel = *f.Advantage, r.Levels[i].Concurrency
		}
		if *f.Advantage < s.Worst {
			s.Worst, s.WorstLevel = *f.Advantage, r.Levels[i].Concurrency
		}
		if *f.Advantage < 0 {
			s.Worse = append(s.Worse, r.Levels[i].Concurrency)
		}
	}
	n := float64(s.Levels)
	s.A, s.B, s.Advantage = s.A/n, s.B/n, s.Advantage/n
	return s, s.Levels > 0
}
