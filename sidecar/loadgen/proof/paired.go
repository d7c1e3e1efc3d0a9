package proof

import (
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// The mean times by which two lanes are compared, in seconds.
const (
	TTFTMean    Metric = "ttft"
	TPOTMean    Metric = "tpot"
	LatencyMean Metric = "latency"
)

// PairedMetrics lists the metrics by which two lanes are compared, in the order of tables.
var PairedMetrics = []Metric{TTFTMean, TTFT95, TPOTMean, LatencyMean, HitRate}

// ratioMetrics lists the metrics that are ratios of sums: seconds over turns, or cached tokens over prompt tokens.
var ratioMetrics = [...]Metric{TTFTMean, TPOTMean, LatencyMean, HitRate}

// PairedTurn is a turn that succeeded on both lanes, A and B, which run the same conversations.
type PairedTurn struct {
	Conversation int64     // number; both lanes begin conversations in this order
	Number       int       // number of the turn, from 1
	Ended        time.Time // end of the later of the two turns
	Sides        [2]workload.Outcome
}

const (
	// maxCells limits the memory. Beyond it, each two cells are merged.
	maxCells     = 1024
	leastInBatch = 40 // minimum turns of a batch; the p95 of fewer is almost the largest value
	// mostPairs and pairsReach limit the number and the age of the kept turns.
	mostPairs  = 300_000
	pairsReach = time.Hour

	leastBatches  = 2 // batches that an interval of the mean TTFT needs
	effectDegrees = 3 // weight of the assumed variance of the mean TTFT, in degrees of freedom, as in a step in progress

	interest = .05 // smallest difference of interest: relative to A's mean, or in points of a share
)

// pairedAlpha returns the error probability of a metric's interval over all times together. The mean TTFT, which
// decides, has half of alpha; the others share the rest.
func pairedAlpha(m Metric) float64 {
	if m == TTFTMean {
		return alpha / 2
	}
	return alpha / 2 / float64(len(PairedMetrics)-1)
}

// Pairs holds the turns of two lanes at one unchanged setting, from the last hour at most, and computes the differences
// between the lanes.
//
// Turns that share workers depend on each other, so the unit is a batch of turns that run at about the same time. Both
// lanes begin conversations in the same order, and a conversation's next turn begins after about as many others as
// there are conversations in progress. A turn's place in that order therefore serves as a common time, even where the
// lanes drift apart by the clock. A batch has a turn of each conversation in progress, and leastInBatch turns at least.
// Neighboring batches depend on each other, which widens the intervals; see [decide.Batched].
type Pairs struct {
	size   int64   // places in a cell
	round  int64   // conversations in progress at once
	turns  float64 // mean turns of a conversation
	from   int64   // the first place that counts
	newest int64   // the latest place
	cells  map[int64]*pairCell
	n      int // kept turns
}

// pairCell holds the turns of successive places.
type pairCell struct {
	n     int
	began time.Time // end of the first turn
	ended time.Time // end of the last turn
	sums  [len(ratioMetrics)]ratios
	ttft  [2][]float32 // TTFT of A and of B in seconds
}

// ratios holds the sums of a ratio metric on A and B. The metric is part / whole.
type ratios struct {
	n           int
	part, whole [2]float64
}

// NewPairs returns an empty set of pairs for lanes at a concurrency, with a mean number of turns of a conversation;
// below 1 it is not known.
func NewPairs(concurrency int, turns float64) *Pairs {
	round := max(1, int64(concurrency))
	return &Pairs{
		size: max(round, leastInBatch), round: round, turns: max(1, turns), from: math.MinInt64,
		cells: map[int64]*pairCell{},
	}
}

// N returns the number of kept turns.
func (p *Pairs) N() int { return p.n }

// place returns the place of a turn in the order in which turns begin.
func (p *Pairs) place(t *PairedTurn) int64 {
	return int64(float64(t.Conversation)*p.turns) + int64(t.Number-1)*p.round
}

// Add adds a turn. It returns false if the turn does not count.
func (p *Pairs) Add(t PairedTurn) bool {
	place := p.place(&t)
	if place < p.from {
		return false
	}
	if p.cells[place/p.size] == nil && len(p.cells) >= maxCells {
		p.coarsen()
	}
	c := p.cells[place/p.size]
	if c == nil {
		p.forget(t.Ended.Add(-pairsReach))
		c = &pairCell{began: t.Ended}
		p.cells[place/p.size] = c
	}
	p.n++
	p.newest = max(p.newest, place)
	c.add(t)
	return true
}

func (c *pairCell) add(t PairedTurn) {
	c.n++
	if t.Ended.After(c.ended) {
		c.ended = t.Ended
	}
	a, b := &t.Sides[0], &t.Sides[1]
	for i, v := range [...][2]float64{{a.TTFT, b.TTFT}, {a.TPOT, b.TPOT}, {a.Latency, b.Latency}} {
		if finite(v[0]) && finite(v[1]) {
			c.sums[i].add(1, v, [2]float64{1, 1})
		}
	}
	if a.HasCached && b.HasCached && a.PromptTokens > 0 && b.PromptTokens > 0 {
		c.sums[3].add(1, [2]float64{float64(a.CachedTokens), float64(b.CachedTokens)},
			[2]float64{float64(a.PromptTokens), float64(b.PromptTokens)})
	}
	if finite(a.TTFT) && finite(b.TTFT) {
		c.ttft[0], c.ttft[1] = append(c.ttft[0], float32(a.TTFT)), append(c.ttft[1], float32(b.TTFT))
	}
}

func (r *ratios) add(n int, part, whole [2]float64) {
	r.n += n
	for i := range part {
		r.part[i], r.whole[i] = r.part[i]+part[i], r.whole[i]+whole[i]
	}
}

func (c *pairCell) merge(o *pairCell) {
	c.n += o.n
	if c.began.IsZero() || o.began.Before(c.began) {
		c.began = o.began
	}
	if o.ended.After(c.ended) {
		c.ended = o.ended
	}
	for i := range c.sums {
		c.sums[i].add(o.sums[i].n, o.sums[i].part, o.sums[i].whole)
	}
	for i := range c.ttft {
		c.ttft[i] = append(c.ttft[i], o.ttft[i]...)
	}
}

// coarsen doubles the number of places in a cell, and merges the cells.
func (p *Pairs) coarsen() {
	p.size *= 2
	next := make(map[int64]*pairCell, len(p.cells))
	for at, c := range p.cells {
		if next[at/2] == nil {
			next[at/2] = &pairCell{}
		}
		next[at/2].merge(c)
	}
	p.cells = next
}

// forget removes the oldest cells while more than mostPairs turns are kept, or while the oldest cell ended before a
// time.
func (p *Pairs) forget(before time.Time) {
	for _, at := range slices.Sorted(maps.Keys(p.cells)) {
		c := p.cells[at]
		if p.n <= mostPairs && !c.ended.Before(before) {
			return
		}
		p.n -= c.n
		delete(p.cells, at)
		p.from = max(p.from, (at+1)*p.size)
	}
}

// batches returns the complete cells in order. A cell is complete when a turn that begins a turn after it has ended.
// Cells with few turns, such as those at the edge, are merged with the next one.
func (p *Pairs) batches() (all []*pairCell) {
	merged := new(pairCell)
	for _, at := range slices.Sorted(maps.Keys(p.cells)) {
		if (at+1)*p.size+p.round > p.newest+1 {
			break
		}
		if merged.merge(p.cells[at]); merged.n >= leastInBatch {
			all, merged = append(all, merged), new(pairCell)
		}
	}
	return all
}

// Paired is one metric of the turns that two lanes have in common.
type Paired struct {
	Metric Metric
	N      int     // turns with a value on both lanes
	A, B   float64 // NaN if N is 0

	arranged []arranged // one, or two if the modes were swapped
	variance float64    // variance of B − A in a batch
	unpaired float64    // the same variance if the lanes ran different conversations
}

// arranged holds the difference between the lanes in one arrangement of modes.
type arranged struct {
	difference float64         // B − A of all turns
	batches    []float64       // B − A of each batch, less difference
	wander     float64         // standard deviation of slow changes of the difference that are not of interest
	assumed    decide.Variance // of a batch; zero: nothing is assumed
	decides    bool            // the metric is the mean TTFT
}

// Differences returns the difference of each metric, in the order of [PairedMetrics].
func (p *Pairs) Differences() []Paired {
	whole, batches := new(pairCell), p.batches()
	for _, c := range p.cells {
		whole.merge(c)
	}
	all := make([]Paired, 0, len(PairedMetrics))
	for _, m := range PairedMetrics {
		if m == TTFT95 {
			all = append(all, whole.percentile(m, batches))
		} else {
			all = append(all, whole.ratio(m, batches))
		}
	}
	return all
}

// ratio returns the difference of a ratio metric. The deviations of the batches are linearized, as for the variance of
// a ratio estimator over clusters: Cochran, "Sampling Techniques", 3rd edition (1977), section 6.3.
func (c *pairCell) ratio(m Metric, batches []*pairCell) Paired {
	i := slices.Index(ratioMetrics[:], m)
	r := &c.sums[i]
	d := Paired{Metric: m, N: r.n, A: r.part[0] / r.whole[0], B: r.part[1] / r.whole[1]}
	var whole [2]float64 // of the batches
	for _, b := range batches {
		whole[0], whole[1] = whole[0]+b.sums[i].whole[0], whole[1]+b.sums[i].whole[1]
	}
	var distances [2][]float64
	for _, b := range batches {
		for lane, value := range [...]float64{d.A, d.B} {
			distance := (b.sums[i].part[lane] - value*b.sums[i].whole[lane]) / whole[lane] * float64(len(batches))
			distances[lane] = append(distances[lane], distance)
		}
	}
	d.vary(distances)
	if m == TTFTMean {
		d.arranged[0].assumed, d.arranged[0].decides = c.assumed(batches), true
	}
	return d
}

// assumed returns the variance of a batch's difference of the mean TTFT that is assumed until there are as many batches
// as effectDegrees: that of independent turns times [stats.DesignEffect].
func (c *pairCell) assumed(batches []*pairCell) decide.Variance {
	missing := effectDegrees - float64(len(batches)-1)
	if len(batches) == 0 || missing <= 0 {
		return decide.Variance{}
	}
	differences := make([]float64, len(c.ttft[0]))
	for i := range differences {
		differences[i] = float64(c.ttft[1][i] - c.ttft[0][i])
	}
	n := 0.
	for _, b := range batches {
		n += float64(len(b.ttft[0])) / float64(len(batches))
	}
	return decide.Variance{Value: stats.DesignEffect(nil) * stat.Variance(differences, nil) / n, DF: missing}
}

// percentile returns the difference of the 95th percentile of TTFT.
func (c *pairCell) percentile(m Metric, batches []*pairCell) Paired {
	d := Paired{Metric: m, N: len(c.ttft[0]), A: percentile95(c.ttft[0]), B: percentile95(c.ttft[1])}
	var distances [2][]float64
	for _, b := range batches {
		if len(b.ttft[0]) < leastInBatch {
			continue
		}
		for lane, value := range [...]float64{d.A, d.B} {
			distances[lane] = append(distances[lane], percentile95(b.ttft[lane])-value)
		}
	}
	d.vary(distances)
	return d
}

func percentile95(values []float32) float64 {
	sorted := make([]float64, len(values))
	for i, v := range values {
		sorted[i] = float64(v)
	}
	slices.Sort(sorted)
	return stats.Percentile(sorted, .95)
}

// vary sets the batches and the variances. distances holds, by lane, the deviation of each batch from the whole.
// Effects that both lanes share cancel out in the variance of the difference. The variance without pairing is the sum
// of the variances of the lanes.
func (d *Paired) vary(distances [2][]float64) {
	both := make([]float64, len(distances[0]))
	for i := range both {
		both[i] = distances[1][i] - distances[0][i]
	}
	d.arranged = []arranged{{difference: d.B - d.A, batches: both}}
	if !d.Metric.Share() { // the hit rate has no such allowance, as in live comparisons
		d.arranged[0].wander = stats.Wander * math.Hypot(d.A, d.B)
	}
	d.variance = stat.Variance(both, nil)
	d.unpaired = stat.Variance(distances[0], nil) + stat.Variance(distances[1], nil)
}

// HalfAndHalf combines two arrangements of the same lanes with swapped modes. Both have the same weight, whatever their
// number of turns. In the result, A is the mode of lane A in the first arrangement and B is the mode of lane B, each
// with half of its value from either lane. A speed difference between the lanes that is the same in both modes cancels
// out. An effect of a lane's hardware on only one mode does not.
func HalfAndHalf(first, second []Paired) []Paired {
	all := slices.Clone(first)
	for i := range all {
		d, o := &all[i], &second[i]
		d.N += o.N
		d.A, d.B = (d.A+o.B)/2, (d.B+o.A)/2
		d.arranged = append(slices.Clone(d.arranged), o.arranged...)
		d.variance, d.unpaired = d.variance+o.variance, d.unpaired+o.unpaired
	}
	return all
}

// interval returns an interval of B − A that holds at all times together, with an error probability of alpha. Two
// arrangements have half of alpha each. It returns false if the interval is unknown. With wander it holds the
// difference without slow changes of either lane's speed, else that of the turns so far.
func (d *Paired) interval(alpha float64, wander bool) (in [2]float64, ok bool) {
	n := float64(len(d.arranged))
	for i, a := range d.arranged {
		if !wander {
			a.wander = 0
		}
		mean := decide.Batched(a.batches, a.assumed).Discounted(a.batches)
		low, high := a.interval(mean, alpha/n)
		if i == 1 { // the modes are swapped
			low, high = -high, -low
		}
		in[0], in[1] = in[0]+low/n, in[1]+high/n
	}
	return in, finite(in[0]) && finite(in[1]) && finite(d.B-d.A)
}

// interval returns the interval of an arrangement's difference for a mean of its batches. For the mean TTFT, the wander
// is part of the likelihood, as an error of the value that the mean is compared with; that needs an assumed variance
// while there are few batches. Otherwise it is an allowance.
func (a *arranged) interval(mean decide.Mean, alpha float64) (low, high float64) {
	none, allowed := decide.Mean{N: math.Inf(1)}, a.wander
	if a.decides && mean.Batch.Value > 0 {
		none, allowed = decide.Mean{N: 1, Batch: decide.Variance{Value: a.wander * a.wander, DF: math.Inf(1)}}, 0
	}
	half := math.Inf(1)
	if len(a.batches) > 0 {
		half = decide.Contrast(mean, none, alpha, allowed)
	}
	return a.difference + mean.Value - half, a.difference + mean.Value + half
}

// API returns the difference and its interval in the form of the API. Without turns it has no values.
func (d *Paired) API() api.PairedMetric {
	m := api.PairedMetric{Metric: string(d.Metric), N: d.N}
	if d.N == 0 {
		return m
	}
	m.A, m.B, m.Difference = new(d.A), new(d.B), new(d.B-d.A)
	if in, ok := d.interval(pairedAlpha(d.Metric), true); ok {
		m.Interval = &in
		if d.unpaired > 0 {
			m.VarianceRatio = new(d.variance / d.unpaired)
		}
	}
	return m
}

// Likeness tests after each batch whether two lanes in the same mode perform alike, by the means of TTFT, TPOT and
// latency and by the hit rate. Slow changes of speed make no difference, and lanes are alike in spite of them. The zero
// value is ready to use.
type Likeness struct {
	batches int
}

// Look returns the evidence after a turn. [api.EvidenceAlike] means that all four differences are certainly small:
// below 5 % of A's mean, or 5 points for the hit rate. [api.EvidenceDiffer] means that one difference is certainly not
// zero, and may be 5 % or more. largest is then the difference farthest from zero in widths of its interval. Otherwise,
// and before the next batch is complete, Look returns [api.EvidenceNone].
func (l *Likeness) Look(p *Pairs) (evidence api.TwinEvidence, largest Paired) {
	n := len(p.batches())
	if n == l.batches {
		return api.EvidenceNone, Paired{}
	}
	l.batches = n
	alike, differ, most := true, false, 0.0
	for _, d := range p.Differences() {
		if d.Metric == TTFT95 || d.N == 0 {
			continue
		}
		in, known := d.interval(pairedAlpha(d.Metric), false)
		margin := interest
		if !d.Metric.Share() {
			margin *= d.A
		}
		small := known && -margin <= in[0] && in[1] <= margin
		alike = alike && small
		in, known = d.interval(pairedAlpha(d.Metric), true)
		if known && !small && (in[0] > 0 || in[1] < 0) {
			differ = true
			if distance := math.Abs(d.B-d.A) / (in[1] - in[0]); distance > most || largest.N == 0 {
				most, largest = distance, d
			}
		}
	}
	switch {
	case differ:
		return api.EvidenceDiffer, largest
	case alike && n > 0:
		return api.EvidenceAlike, largest
	}
	return api.EvidenceNone, largest
}

// Due estimates the time until the interval of the mean TTFT excludes 0, if the difference stays as it is in all; until
// there is an interval, the time until the first one. It returns false where the interval excludes 0 already, or will
// not within an hour, or where the time is not known: before the first pair, and with two arrangements.
func (p *Pairs) Due(all []Paired) (left time.Duration, ok bool) {
	i := slices.IndexFunc(all, func(d Paired) bool { return d.Metric == TTFTMean })
	if i < 0 || p.n == 0 || len(all[i].arranged) != 1 {
		return 0, false
	}
	batch, a := p.batchTime(), &all[i].arranged[0]
	mean, is := decide.Batched(a.batches, a.assumed).Discounted(a.batches), len(a.batches)
	if batch == 0 || is < leastBatches {
		return time.Duration(leastBatches+1-is) * batch, batch > 0
	}
	for more := 0; time.Duration(more)*batch <= time.Hour; more++ {
		if low, high := a.interval(mean, pairedAlpha(TTFTMean)); low > 0 || high < 0 {
			return time.Duration(more) * batch, more > 0
		}
		mean.N++
		mean.Batch.DF++
	}
	return 0, false
}

// batchTime returns the time between two batches; 0: not known.
func (p *Pairs) batchTime() time.Duration {
	var began, ended time.Time
	for _, c := range p.cells {
		if began.IsZero() || c.began.Before(began) {
			began = c.began
		}
		if c.ended.After(ended) {
			ended = c.ended
		}
	}
	return time.Duration(float64(ended.Sub(began)) * float64(p.size) / float64(p.n))
}

// Known reports whether the interval of the mean TTFT is known.
func Known(all []Paired) bool {
	for i := range all {
		if all[i].Metric == TTFTMean {
			_, ok := all[i].interval(pairedAlpha(TTFTMean), true)
			return ok
		}
	}
	return false
}
