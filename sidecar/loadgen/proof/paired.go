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
)

// The means that two lanes are compared by, beside [TTFT95] and [HitRate]: of seconds.
const (
	TTFTMean    Metric = "ttft"
	TPOTMean    Metric = "tpot"
	LatencyMean Metric = "latency"
)

// PairedMetrics are what two lanes are compared by, in the order of tables.
var PairedMetrics = []Metric{TTFTMean, TTFT95, TPOTMean, LatencyMean, HitRate}

// ratioMetrics are those that are one sum over another: of seconds over turns, of cached
// tokens over prompt tokens.
var ratioMetrics = [...]Metric{TTFTMean, TPOTMean, LatencyMean, HitRate}

// PairedSide is what a turn was like on one of two lanes. Times are in seconds, NaN where
// they are not known.
type PairedSide struct {
	TTFT, TPOT, Latency        float64
	PromptTokens, CachedTokens int // CachedTokens counts only with HasCached
	HasCached                  bool
}

// PairedTurn is a turn that ended well on both of two lanes, A and B, that hold the same
// conversations.
type PairedTurn struct {
	Conversation int64     // its number: both lanes begin them in this order
	Number       int       // of the turn, from 1
	Ended        time.Time // of the later one
	Sides        [2]PairedSide
}

const (
	// maxCells bounds the memory: beyond it, two cells become one.
	maxCells     = 1024
	leastInBatch = 40 // turns for its 95th percentile: with fewer, that is the largest or close to it
	// mostPairs and pairsReach bound what is held, too.
	mostPairs  = 300_000
	pairsReach = time.Hour

	interest = .05 // the smallest difference of interest, as a share of A's mean or as a share
)

// pairedAlpha is the error of the interval of each of [PairedMetrics], at all times together: 5 % for all of them.
var pairedAlpha = alpha / float64(len(PairedMetrics))

// Pairs holds the turns of two lanes at one unchanged setting, of the last hour at most, and
// says how the lanes differ. Turns that share workers depend on each other, on either lane,
// so the unit is a batch of successive conversations: both lanes begin them in the same order,
// and their numbers are the time that the two have in common, however far they drift apart by
// the clock. A batch is a round, as many conversations as are in progress at once: so many turns
// pass before its conversations have ended that the system remembers little of those before. It counts from the first
// conversation on whose first turn counts on both: those that were in progress while the lanes settled are left out.
type Pairs struct {
	size   int64 // conversations of a cell
	round  int64
	from   int64 // the first conversation that counts; below 0: none does yet
	newest int64
	cells  map[int64]*pairCell
	n      int
}

// pairCell holds the turns of conversations with successive numbers.
type pairCell struct {
	n     int
	ended time.Time // of the last
	sums  [len(ratioMetrics)]ratios
	ttft  [2][]float32 // of A, of B
}

// ratios are sums of A and B; a metric is part over whole.
type ratios struct {
	n           int
	part, whole [2]float64
}

// NewPairs begins at a concurrency.
func NewPairs(concurrency int) *Pairs {
	round := max(1, int64(concurrency))
	return &Pairs{size: round, round: round, from: -1, cells: map[int64]*pairCell{}}
}

// N is how many turns it holds.
func (p *Pairs) N() int { return p.n }

// Add takes in a turn; false says that it does not count.
func (p *Pairs) Add(t PairedTurn) bool {
	if t.Number == 1 && (p.from < 0 || t.Conversation < p.from) {
		p.from = t.Conversation
	}
	if p.from < 0 || t.Conversation < p.from {
		return false
	}
	if p.cells[t.Conversation/p.size] == nil && len(p.cells) >= maxCells {
		p.coarsen()
	}
	c := p.cells[t.Conversation/p.size]
	if c == nil {
		p.forget(t.Ended.Add(-pairsReach))
		c = &pairCell{}
		p.cells[t.Conversation/p.size] = c
	}
	p.n++
	p.newest = max(p.newest, t.Conversation)
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

// coarsen makes cells of twice as many conversations.
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

// forget drops the oldest cells: those that ended before a time, and those beyond mostPairs.
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

// batches are the cells whose conversations have ended, in order: a round after them has begun.
func (p *Pairs) batches() (all []*pairCell) {
	for _, at := range slices.Sorted(maps.Keys(p.cells)) {
		if (at+1)*p.size+p.round <= p.newest+1 {
			all = append(all, p.cells[at])
		}
	}
	return all
}

// Paired is one metric of turns that two lanes have in common.
type Paired struct {
	Metric Metric
	N      int     // turns that have it on both
	A, B   float64 // NaN without any

	arranged []arranged // one, or two where the modes were swapped
	variance float64    // of a batch's B − A
	unpaired float64    // that it would have if other conversations were in progress on each
}

// arranged is what the lanes differ by in one arrangement of modes.
type arranged struct {
	difference float64   // B − A of all turns
	batches    []float64 // by how much that of each batch is more
}

// Differences are those of [PairedMetrics], in this order.
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

// ratio is a metric that is a ratio of sums. How far a batch lies from all turns is linearized, as for the variance
// of a ratio estimator over clusters: Cochran, "Sampling Techniques", 3rd edition (1977), section 6.3.
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
	return d
}

// percentile is the 95th of TTFT. A batch of it has so many turns that it has one.
func (c *pairCell) percentile(m Metric, batches []*pairCell) Paired {
	d := Paired{Metric: m, N: len(c.ttft[0]), A: percentile95(c.ttft[0]), B: percentile95(c.ttft[1])}
	var distances [2][]float64
	of := new(pairCell)
	for _, b := range batches {
		if of.merge(b); len(of.ttft[0]) < leastInBatch {
			continue
		}
		for lane, value := range [...]float64{d.A, d.B} {
			distances[lane] = append(distances[lane], percentile95(of.ttft[lane])-value)
		}
		of = new(pairCell)
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

// vary adds the batches, from the distances of each lane's to its whole. The variance of the difference takes what both
// lanes have in common as it is; that without pairing is the sum of the lanes' own, as far as they share nothing.
func (d *Paired) vary(distances [2][]float64) {
	both := make([]float64, len(distances[0]))
	for i := range both {
		both[i] = distances[1][i] - distances[0][i]
	}
	d.arranged = []arranged{{d.B - d.A, both}}
	d.variance = stat.Variance(both, nil)
	d.unpaired = stat.Variance(distances[0], nil) + stat.Variance(distances[1], nil)
}

// HalfAndHalf puts two arrangements of the same lanes together, in the second of which each
// had the mode that the other has in the first. Both weigh the same, however many turns they
// have: A is the mode that A has in the first, half of it from either lane, and so is B. The
// difference is half of that between the differences of the two, so that whatever one lane
// is faster or slower by in both modes cancels out; what a lane's hardware does to one mode
// alone does not.
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

// interval holds the difference at all times together but for an error of alpha; false where it is not known. Two
// arrangements have half of the error each.
func (d *Paired) interval(alpha float64) (in [2]float64, ok bool) {
	n := float64(len(d.arranged))
	for i, a := range d.arranged {
		_, one := decide.Sequence(a.batches, alpha/n, 0, decide.Prior{})
		low, high := a.difference+one[0], a.difference+one[1]
		if i == 1 { // the modes are swapped
			low, high = -high, -low
		}
		in[0], in[1] = in[0]+low/n, in[1]+high/n
	}
	return in, finite(in[0]) && finite(in[1]) && finite(d.B-d.A)
}

// API is the difference as the API has it, with its interval.
func (d *Paired) API() api.PairedMetric {
	m := api.PairedMetric{Metric: string(d.Metric), N: d.N}
	if d.N == 0 {
		return m
	}
	m.A, m.B, m.Difference = new(d.A), new(d.B), new(d.B-d.A)
	if in, ok := d.interval(pairedAlpha); ok {
		m.Interval = &in
		if d.unpaired > 0 {
			m.VarianceRatio = new(d.variance / d.unpaired)
		}
	}
	return m
}

// Likeness looks at two lanes in the same mode after each batch: whether they differ in more than their mode, in the
// means of TTFT, TPOT and latency and in the hit rate. The zero value is ready.
type Likeness struct {
	batches int
}

// Look is called after each turn. The evidence is [api.EvidenceAlike] where all four
// differences are certainly below 5 % of A's mean (5 points for the hit rate),
// [api.EvidenceDiffer] where one is certainly not zero, and may be 5 % or more; then largest
// is the difference farthest from zero, by the width of its interval. Else it is [api.EvidenceNone].
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
		in, known := d.interval(pairedAlpha)
		margin := interest
		if !d.Metric.Share() {
			margin *= d.A
		}
		small := known && -margin <= in[0] && in[1] <= margin
		alike = alike && small
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

// Known says whether the means have intervals.
func Known(all []Paired) bool {
	for i := range all {
		if all[i].Metric == TTFTMean {
			_, ok := all[i].interval(pairedAlpha)
			return ok
		}
	}
	return false
}
