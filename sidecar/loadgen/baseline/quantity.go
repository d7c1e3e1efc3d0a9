package baseline

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// Kind is the kind of a quantity, which determines its unit and which values are better.
type Kind int

// The kinds of quantities.
const (
	Time   Kind = iota // in seconds
	Rate               // more is better
	Share              // from 0 to 1, more is better
	Amount             // less is better, and no time
)

// LessIsBetter reports whether lower values are better: those of times and amounts.
func (k Kind) LessIsBetter() bool { return k == Time || k == Amount }

// Quantity is a value of a row: its names in files, comparisons and reports, and its properties. All are in one table.
type Quantity struct {
	Path string // in the JSON of a row, of its intervals and errors, and of a column: "ttft.p95"
	Name string // in a report's table, and in a row's list of values with another definition: "ttft_p95"
	Kind Kind
	// BothWays is whether the load generator's own error may have either sign.
	BothWays bool

	column   string  // in a CSV file
	shift    int     // decimal places from the column's unit to the row's: ms to s is −3
	max      float64 // of the row's value
	label    string  // in the notes of an import; empty: no other program measures it by this definition
	assumed  float64 // the scatter where a table has too few levels; 0: it is never estimated
	margin   float64 // added to intervals of differences on either side, in per cent
	optional bool    // whether a column has it only where a row of its mode has it

	row, cluster, interval, lookedUp, error []int // its index in each; nil: it has none
}

// pace is the allowance for TPOT, in per cent, on top of the intervals of two windows:
// workers are not equally fast, and the assignment of turns to workers changes more slowly
// than the batches that an interval is made of. It is an assumption. The test in
// sidecar/test/intervals checks it on the simulated cluster, whose workers differ by 1.5 %: without it,
// one pair in eight of equal windows of a minute would differ at 180 conversations.
const pace = 1.

// quantities are all quantities, in the order of the CSV columns.
var quantities = located(slices.Concat(
	times(),
	[]Quantity{
		{Path: "output_tokens_per_second", Kind: Rate, column: "tops", label: "output tokens/s", assumed: .015},
		{Path: "kv_hit_ratio", Kind: Share, column: "kv_hit_rate_pct", label: "KV hit rate", assumed: .02},
		{Path: "requests_per_second", Kind: Rate, column: "rps", label: "requests/s", assumed: .035},
		{Path: "error_ratio", Kind: Share, column: "error_rate_pct"},
		{Path: "queue_seconds", column: "queue_ms"},
		{Path: "queue_largest", column: "queue_max_ms"},
		{Path: "queue_second", column: "queue_second_ms"},
		{Path: "queue_least", column: "queue_least_ms"},
		{Path: "queue_before", column: "queue_before_ms"},
		{Path: "queue_workers", Kind: Amount, column: "queue_workers"},
		{Path: "recovery_min", column: "recovery_min_ms"},
		{Path: "recovery_max", column: "recovery_max_ms"},
		{Path: "queue_skew", Kind: Amount, column: "queue_skew"},
		{Path: "waiting", Kind: Amount, column: "waiting"},
		{Path: "engine_ttft_seconds", column: "engine_ttft_p95_ms"},
		{Path: "engine_ttft_largest", column: "engine_ttft_max_ms"},
		{Path: "inflight_largest", Kind: Amount, column: "inflight_max"},
		{Path: "inflight_mean", Kind: Amount, column: "inflight_mean"},
		{Path: "inflight_threshold", Kind: Amount, column: "inflight_threshold"},
		{Path: "inflight_spread", Kind: Amount, column: "inflight_spread"},
		{Path: "inflight_spread_min", Kind: Amount, column: "inflight_spread_min"},
		{Path: "inflight_spread_max", Kind: Amount, column: "inflight_spread_max"},
		{Path: "inflight_skew", Kind: Amount, column: "inflight_skew"},
		{Path: "acceptance_rate", Kind: Share, column: "acceptance_rate_pct", optional: true},
		{Path: "tokens_per_step", Kind: Rate, column: "tokens_per_step", optional: true},
		{Path: "gpu_memory_bytes", Kind: Amount, column: "gpu_memory_bytes", max: maxMemory, optional: true},
		{Path: "ttft_mean", column: "ttft_mean_ms", optional: true},
		{Path: "achieved_share", Kind: Rate, column: "achieved_share", optional: true},
		{Path: "gpus", Kind: Rate, column: "gpus"},
		{Path: "gpu_power_watts", Kind: Amount, column: "gpu_power_watts"},
		{Path: "joules_per_million_tokens", Kind: Amount, column: "joules_per_million_tokens", max: maxJoules},
		{Path: "joules_per_good_turn", Kind: Amount, column: "joules_per_good_turn", max: maxJoules},
		{Path: "dollars_per_million_tokens", Kind: Amount, column: "dollars_per_million_tokens"},
		{Path: "dollars_per_good_turn", Kind: Amount, column: "dollars_per_good_turn"},
		{Path: "tokens_per_second_per_gpu", Kind: Rate, column: "tokens_per_second_per_gpu"},
		{Path: "tokens_per_second_per_user", Kind: Rate, column: "tokens_per_second_per_user"},
	},
))

// ofTimes has what files and comparisons know of the figures in [api.Times]. Another one has a column of its own name,
// and no other program measures it.
var ofTimes = map[string]struct {
	column   string  // in a CSV file, without the percentile
	unlike   bool    // whether no other program measures it by this definition
	p50, p95 float64 // assumed scatters
	margin   float64
}{
	"ttft":    {column: "ttft", p50: .02, p95: .05},
	"tpot":    {column: "itl", p50: .015, p95: .015, margin: pace},
	"itl":     {column: "gap_itl", unlike: true},
	"latency": {column: "latency", p50: .03, p95: .02},
}

// times returns the percentiles of all [api.Times], and after those of TTFT those of the derived TPOT.
func times() (all []Quantity) {
	for _, f := range api.Times {
		known, ok := ofTimes[f.Key]
		q := Quantity{Path: f.Key, column: cmp.Or(known.column, f.Key), margin: known.margin, BothWays: f.BothWays}
		if ok && !known.unlike {
			q.label = f.Short()
		}
		all = append(all, percentiles(q, known.p50, known.p95)...)
		if f.Key == "ttft" {
			all = append(all, percentiles(Quantity{Path: "tpot_derived", column: "tpot"}, 0, 0)...)
		}
	}
	return all
}

// percentiles returns the p50 and the p95 of a time, with their assumed scatters.
func percentiles(q Quantity, assumed50, assumed95 float64) []Quantity {
	low, high := q, q
	low.Path, low.column, low.assumed = q.Path+".p50", q.column+"_p50_ms", assumed50
	high.Path, high.column, high.assumed = q.Path+".p95", q.column+"_p95_ms", assumed95
	if q.label != "" {
		low.label, high.label = q.label+" p50", q.label+" p95"
	}
	return []Quantity{low, high}
}

// located fills in the fields that follow from kind and path. It panics where a row has no such path.
func located(all []Quantity) []*Quantity {
	list := make([]*Quantity, len(all))
	for i := range all {
		q := &all[i]
		list[i], q.Name = q, strings.ReplaceAll(q.Path, ".", "_")
		switch {
		case q.max > 0:
		case q.Kind == Time:
			q.shift, q.max = -3, maxSeconds
		case q.Kind == Share:
			q.shift, q.max = -2, 1
		default:
			q.max = maxCount
		}
		q.row = place(reflect.TypeFor[api.BaselineRow](), q.Path)
		q.cluster = place(reflect.TypeFor[api.ClusterFigures](), q.Path)
		q.interval = place(reflect.TypeFor[api.RowIntervals](), q.Path)
		q.lookedUp = place(reflect.TypeFor[api.Column](), q.Path)
		q.error = place(reflect.TypeFor[api.RowErrors](), q.Path)
		if q.row == nil {
			panic("baseline: a row has no " + q.Path)
		}
	}
	return list
}

// place returns the index of the field with a JSON path; nil: the type has none.
func place(t reflect.Type, path string) (index []int) {
	for name := range strings.SplitSeq(path, ".") {
		fields := reflect.VisibleFields(t)
		at := slices.IndexFunc(fields, func(f reflect.StructField) bool {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == name
		})
		if at < 0 {
			return nil
		}
		index, t = append(index, fields[at].Index...), fields[at].Type
	}
	return index
}

// fieldAt returns the field at an index of the struct that v points to.
func fieldAt[T, S any](v *S, index []int) *T {
	return reflect.ValueOf(v).Elem().FieldByIndex(index).Addr().Interface().(*T)
}

// byName are the quantities by their names.
var byName = func() map[string]*Quantity {
	all := map[string]*Quantity{}
	for _, q := range quantities {
		all[q.Name] = q
	}
	return all
}()

// QuantityOf returns the quantity with a name; nil: there is none.
func QuantityOf(name string) *Quantity { return byName[name] }

// MarshalText returns the name, which is the key of maps of quantities in JSON.
func (q *Quantity) MarshalText() ([]byte, error) { return []byte(q.Name), nil }

// In returns a pointer to the quantity's value in a row.
func (q *Quantity) In(r *api.BaselineRow) **float64 { return fieldAt[*float64](r, q.row) }

// InCluster returns a pointer to the quantity's value in the figures of a cluster.
func (q *Quantity) InCluster(c *api.ClusterFigures) **float64 { return fieldAt[*float64](c, q.cluster) }

// IntervalIn returns a pointer to the quantity's interval.
func (q *Quantity) IntervalIn(in *api.RowIntervals) **[2]float64 {
	return fieldAt[*[2]float64](in, q.interval)
}

// LookedUpIn returns the quantity's value in a column of a comparison.
func (q *Quantity) LookedUpIn(c *api.Column) *api.LookedUp {
	return fieldAt[api.LookedUp](c, q.lookedUp)
}

// ErrorIn returns a pointer to the load generator's own error in the quantity.
func (q *Quantity) ErrorIn(e *api.RowErrors) **float64 { return fieldAt[*float64](e, q.error) }

// IntervalOf returns the interval of a row's value; nil where it has none.
func (q *Quantity) IntervalOf(r *api.BaselineRow) *[2]float64 {
	if r.Intervals == nil || q.interval == nil {
		return nil
	}
	return *q.IntervalIn(r.Intervals)
}

// UnlikeIn reports whether the row lacks the quantity because its file defines the quantity in another way.
func (q *Quantity) UnlikeIn(r *api.BaselineRow) bool {
	return *q.In(r) == nil && slices.Contains(r.Unlike, q.Name)
}

// AtLeastIn reports whether the row's value is a lower bound, since it depends on turns that were cut.
func (q *Quantity) AtLeastIn(r *api.BaselineRow) bool { return slices.Contains(r.AtLeast, q.Name) }

// errorOf returns the load generator's own error in a row's value; nil where none is known.
func (q *Quantity) errorOf(r *api.BaselineRow) *float64 {
	if q.error == nil || r.Errors == nil {
		return nil
	}
	return *q.ErrorIn(r.Errors)
}

// values are the quantities in comparisons, which have an interval each.
var values = slices.DeleteFunc(slices.Clone(quantities), func(q *Quantity) bool { return q.lookedUp == nil })

// Latencies are the percentiles of the [api.Times] that other programs measure, too, in the order of tables.
var Latencies = slices.DeleteFunc(slices.Clone(quantities), func(q *Quantity) bool {
	return q.error == nil || q.label == ""
})

// Erring are the quantities for which the load generator's own error is known.
var Erring = slices.DeleteFunc(slices.Clone(quantities), func(q *Quantity) bool { return q.error == nil })

// OfCluster are the quantities that a cluster reports itself.
var OfCluster = slices.DeleteFunc(slices.Clone(quantities), func(q *Quantity) bool { return q.cluster == nil })

// numberAllowed describes numbers up to a limit in a unit that is this number of decimal places away.
func numberAllowed(limit float64, shift int) string {
	return fmt.Sprintf("a number from 0 to %s", formatShifted(limit, shift))
}

// disordered returns the first p95 of a row that is below its median; nil: there is none.
func disordered(r *api.BaselineRow) (p95 *Quantity, median float64) {
	for i, high := range quantities[1:] { // the two of a pair are adjacent
		low := quantities[i]
		if strings.HasSuffix(low.Path, ".p50") && *low.In(r) != nil && *high.In(r) != nil && **high.In(r) < **low.In(r) {
			return high, **low.In(r)
		}
	}
	return nil, 0
}
