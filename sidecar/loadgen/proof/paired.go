package proof

import (
	"maps"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
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
	// cellsPerRound is into how many cells the conversations of a round are put. A round is
	// as many conversations as are in progress at once.
	cellsPerRound = 8
	// maxCells bounds the memory: beyond it, two cells become one.
	maxCells = 1024
	// batchRounds is how many rounds a batch takes at least; there are leastBatches to
	// mostBatches of them. Longer ones put off the first interval; shorter ones and more of
	// them understate the variance: the test in sidecar/test/intervals judges it.
	batchRounds  = .75
	leastBatches = 4
	mostBatches  = 8
	leastInBatch = 40 // turns for its 95th percentile: with fewer, that is the largest or close to it
	// mostPairs and pairsReach bound what is held, too.
	mostPairs  = 300_000
	pairsReach = time.Hour

	interest  = .05 // the smallest difference of interest, as a share of A's mean or as a share
	firstLook = 6   // rounds; every further look takes twice as many
)

// Pairs holds the turns of two lanes at one unchanged setting, of the last hour at most, and
// says how the lanes differ. Turns that share workers depend on each other, on either lane,
// so the unit is a batch of successive conversations: both lanes begin them in the same order,
// and their numbers are the time that the two have in common, however far they drift apart by
// the clock. It counts from the first conversation on whose first turn counts on both:
// those that were in progress while the lanes settled are left out.
type Pairs struct {
	size  int64 // conversations of a cell
	round int64
	from  int64 // the first conversation that counts; below 0: none does yet
	cells map[int64]*pairCell
	n     int
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
	return &Pairs{size: max(1, int64(concurrency)/cellsPerRound), round: max(1, int64(concurrency)), from: -1, cells: map[int64]*pairCell{}}
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
		c.sums[3].add(1, [2]float64{float64(a.CachedTokens), float64(b.CachedTokens)}, [2]float64{float64(a.PromptTokens), float64(b.PromptTokens)})
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

// Rounds is over how many rounds of conversations the turns extend.
func (p *Pairs) Rounds() float64 {
	if len(p.cells) == 0 {
		return 0
	}
	first, last := p.span()
	return float64((last-first+1)*p.size) / float64(p.round)
}

func (p *Pairs) span() (first, last int64) {
	numbers := slices.Collect(maps.Keys(p.cells))
	return slices.Min(numbers), slices.Max(numbers)
}

// batches puts the cells together to batches of as many conversations each; nil where the
// turns extend over too few rounds.
func (p *Pairs) batches() []pairCell {
	count := min(int(p.Rounds()/batchRounds), mostBatches)
	if count < leastBatches {
		return nil
	}
	first, last := p.span()
	all := make([]pairCell, count)
	for at, c := range p.cells {
		all[(at-first)*int64(count)/(last-first+1)].merge(c)
	}
	return all
}

// Paired is one metric of turns that two lanes have in common.
type Paired struct {
	Metric Metric
	N      int     // turns that have it on both
	A, B   float64 // NaN without any

	variance float64 // of B − A
	unpaired float64 // that it would have if other conversations were in progress on each
	df       float64 // 0: the variances are not known
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

// ratio is a metric that is a ratio of sums. Its variance comes from how far the batches lie
// apart: that of a ratio estimator over clusters, Cochran, "Sampling Techniques", 3rd edition
// (1977), section 6.3, here for the difference of two of them over the same clusters.
func (c *pairCell) ratio(m Metric, batches []pairCell) Paired {
	i := slices.Index(ratioMetrics[:], m)
	r := &c.sums[i]
	d := Paired{Metric: m, N: r.n, A: r.part[0] / r.whole[0], B: r.part[1] / r.whole[1]}
	var distances [2][]float64
	for j := range batches {
		b := &batches[j].sums[i]
		if b.n == 0 {
			return d
		}
		for lane, value := range [...]float64{d.A, d.B} {
			distances[lane] = append(distances[lane], (b.part[lane]-value*b.whole[lane])/r.whole[lane]*float64(len(batches)))
		}
	}
	d.vary(distances)
	return d
}

// percentile is the 95th of TTFT; its variance comes from sectioning, as in a [Trial].
func (c *pairCell) percentile(m Metric, batches []pairCell) Paired {
	d := Paired{Metric: m, N: len(c.ttft[0]), A: percentile95(c.ttft[0]), B: percentile95(c.ttft[1])}
	var distances [2][]float64
	for j := range batches {
		if len(batches[j].ttft[0]) < leastInBatch {
			return d
		}
		for lane, value := range [...]float64{d.A, d.B} {
			distances[lane] = append(distances[lane], percentile95(batches[j].ttft[lane])-value)
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

// vary adds the variances, from the distances of each lane's batches to its whole. That of
// the difference takes what both lanes have in common as it is; that without pairing is the
// sum of the lanes' own, as far as they share nothing.
func (d *Paired) vary(distances [2][]float64) {
	n := len(distances[0])
	if n < leastBatches {
		return
	}
	both := make([]float64, n)
	for i := range both {
		both[i] = distances[1][i] - distances[0][i]
	}
	of := func(distances []float64) float64 {
		s := Sectioned{Sections: distances}
		// As [inflation], but whether or not chance explains r: there is one run, and in it
		// what lasts longer than a batch is seen in its neighbours alone.
		r := min(max(0, correlation([]Sectioned{s})), .9)
		return s.variance() * (1 + r) / (1 - r)
	}
	d.variance, d.unpaired, d.df = of(both), of(distances[0])+of(distances[1]), float64(n-1)
}

// HalfAndHalf puts two arrangements of the same lanes together, in the second of which each
// had the mode that the other has in the first. Both weigh the same, however many turns they
// have: A is the mode that A has in the first, half of it from either lane, and so is B. The
// difference is half of that between the differences of the two, so that whatever one lane
// is faster or slower by in both modes cancels out; what a lane's hardware does to one mode
// alone does not. Degrees of freedom: Welch, Biometrika 34 (1947).
func HalfAndHalf(first, second []Paired) []Paired {
	all := slices.Clone(first)
	for i := range all {
		d, o := &all[i], &second[i]
		d.N += o.N
		d.A, d.B = (d.A+o.B)/2, (d.B+o.A)/2
		if d.df == 0 || o.df == 0 {
			d.df = 0
			continue
		}
		v, w := d.variance, o.variance
		if v+w > 0 {
			d.df = (v + w) * (v + w) / (v*v/d.df + w*w/o.df)
		}
		d.variance, d.unpaired = (v+w)/4, (d.unpaired+o.unpaired)/4
	}
	return all
}

// interval holds the difference with a probability of 1 − alpha; false where it is not known.
func (d *Paired) interval(alpha float64) (in [2]float64, ok bool) {
	if d.df == 0 || !finite(d.B-d.A) {
		return in, false
	}
	half := student(alpha, d.df) * math.Sqrt(d.variance)
	return [2]float64{d.B - d.A - half, d.B - d.A + half}, true
}

// API is the difference as the API has it, with a 95 % interval for one look.
func (d *Paired) API() api.PairedMetric {
	m := api.PairedMetric{Metric: string(d.Metric), N: d.N}
	if d.N == 0 {
		return m
	}
	m.A, m.B, m.Difference = new(d.A), new(d.B), new(d.B-d.A)
	if in, ok := d.interval(alpha); ok {
		m.Interval = &in
		if d.unpaired > 0 {
			m.VarianceRatio = new(d.variance / d.unpaired)
		}
	}
	return m
}

// Likeness looks at two lanes in the same mode: whether they differ in more than their mode.
// It looks at the means of TTFT, TPOT and latency and at the hit rate after 6 rounds of
// conversations, and whenever there are twice as many; the k-th look spends 1/(k(k+1)) of
// the error of 5 %, in equal parts for the four (Bonferroni), as a [Trial]'s looks do. The
// zero value is ready.
type Likeness struct {
	looks int
}

// Look is called after each turn. The evidence is [api.EvidenceAlike] where all four
// differences are certainly below 5 % of A's mean (5 points for the hit rate),
// [api.EvidenceDiffer] where one is certainly not zero, and may be 5 % or more; then largest
// is the difference farthest from zero, in standard errors. Else it is [api.EvidenceNone].
func (l *Likeness) Look(p *Pairs) (evidence api.TwinEvidence, largest Paired) {
	if p.Rounds() < firstLook*math.Pow(2, float64(l.looks)) {
		return api.EvidenceNone, Paired{}
	}
	l.looks++
	share := alpha / float64(l.looks*(l.looks+1)) / float64(len(ratioMetrics))
	alike, differ, most := true, false, 0.0
	for _, d := range p.Differences() {
		if d.Metric == TTFT95 || d.N == 0 {
			continue
		}
		in, known := d.interval(share)
		margin := interest
		if !d.Metric.Share() {
			margin *= d.A
		}
		small := known && -margin <= in[0] && in[1] <= margin
		alike = alike && small
		if known && !small && (in[0] > 0 || in[1] < 0) {
			differ = true
			if distance := math.Abs(d.B-d.A) / math.Sqrt(d.variance); distance > most || largest.N == 0 {
				most, largest = distance, d
			}
		}
	}
	switch {
	case differ:
		return api.EvidenceDiffer, largest
	case alike && p.N() > 0:
		return api.EvidenceAlike, largest
	}
	return api.EvidenceNone, largest
}

// Known says whether the means have intervals.
func Known(all []Paired) bool {
	for _, d := range all {
		if d.Metric == TTFTMean {
			return d.df > 0
		}
	}
	return false
}
