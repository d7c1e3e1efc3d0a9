package stats

import (
	"math"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/workload"
)

// A step in progress is observed continuously, and decisions are made at any time. Its intervals are therefore
// confidence sequences over batches of time, which hold at all times together: see [decide.Sequence].
const (
	liveBatch  = 30 * time.Second // minimum length of a batch
	liveTurns  = 1                // minimum length of a batch in mean turns
	leastTurns = 40               // turns needed for the p95 of a batch; that of fewer is too low
	// designEffect is the factor by which the variance of a batch's TTFT percentile exceeds that of as many independent
	// turns. priorDegrees is its weight in degrees of freedom. Both are assumptions: see docs/statistics.md. The other
	// times of turns depend on each other far more.
	designEffect = 2
	priorDegrees = 6
	liveReach    = time.Hour // age up to which batches are kept
	liveError    = .05       // error probability of an interval over all times together
	// liveWander is the standard deviation of slow changes in the speed of a system and of the previous one.
	liveWander = Wander * math.Sqrt2
)

// Wander is the standard deviation of slow changes in the speed of a system that are no difference, as a share. It is
// an assumption: see docs/statistics.md.
const Wander = .01

// liveBatches holds the batches of the latest step.
type liveBatches struct {
	from time.Duration // end of the latest batch, or of the step's first counted turn
	all  []stepBatch   // ascending
}

// stepBatch holds the figures of a batch's counted turns.
type stepBatch struct {
	until  time.Duration
	report Report
	prompt float64 // tokens of the prompts whose cached tokens are known
	times  [api.NumTimes]buckets
}

// AdvanceLive closes the batches that have ended by now. It must be called at least once a minute, since the turns of a
// step are kept for [StepSpan]. The tokens are those that the meter counted.
func (w *Window) AdvanceLive(m *Meter, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := now.Sub(w.start)
	w.tokens.advance(at)
	for w.counts {
		w.live.from = max(w.live.from, w.kept, at-StepSpan)
		b, ok := w.nextBatch(at)
		if !ok {
			break
		}
		if rate, _ := m.Over(w.start.Add(w.live.from), w.start.Add(b.until)); rate != nil {
			b.report.Window.OutputTokensPerSecond = *rate
		}
		w.live.from = b.until
		w.live.all = append(w.live.all, b)
	}
	for len(w.live.all) > 0 && w.live.all[0].until <= at-liveReach {
		w.live.all = w.live.all[1:]
	}
}

// nextBatch returns the next batch, if it is over. Its length is the smallest number of half minutes that covers a mean
// turn and the turns needed for a p95, or all that is kept.
func (w *Window) nextBatch(now time.Duration) (b stepBatch, ok bool) {
	from := w.live.from
	for length := liveBatch; length <= StepSpan && from+length <= now; length += liveBatch {
		b.until = from + length
		counts := func(t *workload.Outcome) bool {
			return t.Counted && t.Step == w.step && from < t.Ended && t.Ended <= b.until
		}
		if length < StepSpan && !w.suffices(length, counts) {
			continue
		}
		t := newTally(b.until, length, from, api.SLO{})
		t.gather(w, counts, &w.counted)
		for i := range batches {
			for time := range times {
				if time != api.TimeTTFT { // its batches are those of first tokens
					b.times[time].addAll(t.times[time][i])
				}
			}
			b.times[api.TimeITL].merge(&t.itl[i])
		}
		b.report = t.report()
		b.prompt = addUp(t.hits.whole)
		return b, true
	}
	return b, false
}

// suffices reports whether a batch of a length has enough turns, none of them too long. It allocates nothing, since it
// is called again and again before a batch with long turns is over.
func (w *Window) suffices(length time.Duration, counts func(*workload.Outcome) bool) bool {
	ok := 0
	known := 0
	seconds := 0.
	for i := range w.turns {
		t := &w.turns[i]
		if !t.OK() || !counts(t) {
			continue
		}
		ok++
		if defined(t.Latency) {
			known++
			seconds += t.Latency
		}
	}
	return ok >= leastTurns && known > 0 && length.Seconds() >= liveTurns*seconds/float64(known)
}

// Live describes a step like [Window.CountedAsArrived], but over its batches of the last hour, with intervals that hold
// under continuous observation. It has no intervals before there are enough batches. TTFT is that of all first tokens
// since [Window.CountFrom], whether or not their turns have ended.
func (w *Window) Live(m *Meter, now time.Time, step int64) Report {
	w.AdvanceLive(m, now)
	r := w.CountedAsArrived(m, now, step)
	w.mu.Lock()
	all := w.live.all
	if !w.counts || step != w.step {
		all = nil
	}
	if step == w.tokens.step {
		w.tokens.report(&r.Window.Metrics.TTFT)
	} else {
		r.Window.Metrics.TTFT = api.Quantiles{}
	}
	w.mu.Unlock()
	for i := range times {
		if i != api.TimeTTFT {
			liveQuantiles(times[i].Quantiles(&r.Window.Metrics), all, i)
		}
	}
	r.liveRates(all)
	return r
}

// liveQuantiles sets the percentiles of one of the times over all batches, with the intervals that the batches give.
func liveQuantiles(q *api.Quantiles, all []stepBatch, time int) {
	q.P50Interval = nil
	q.P95Interval = nil
	var whole buckets
	p50 := make([]float64, len(all))
	p95 := make([]float64, len(all))
	for i := range all {
		whole.merge(&all[i].times[time])
		batch := times[time].Quantiles(&all[i].report.Window.Metrics)
		p50[i] = orNaN(batch.P50)
		p95[i] = orNaN(batch.P95)
		if all[i].report.OK < leastTurns {
			p95[i] = math.NaN()
		}
	}
	if whole.total == 0 {
		return
	}
	overall := whole.summarize()
	q.N = overall.N
	q.P50 = overall.P50
	q.P95 = overall.P95
	q.P99 = overall.P99
	q.Estimated = overall.Estimated
	q.P50Interval = relative(*q.P50, p50)
	q.P95Interval = relative(*q.P95, p95)
}

// independentQuantile is the variance of the logarithm of one batch's p-quantile that independent turns would have:
// p(1 − p)/(n f²), with the density f from the distance between two quantiles around it (Siddiqui, Journal of Research
// of the National Bureau of Standards 64B, 1960).
func independentQuantile(whole *buckets, p, turns float64) float64 {
	h := 1.5 * math.Sqrt(p*(1-p)/whole.total)
	low, high := p-h, min(p+h, 1)
	slope := math.Log(whole.quantile(high)/whole.quantile(low)) / (high - low)
	return slope * slope * p * (1 - p) / turns
}

// liveRates sets the rates and the hit ratio over all batches.
func (r *Report) liveRates(all []stepBatch) {
	r.OutputInterval, r.RequestsInterval, r.HitInterval = nil, nil, nil
	if len(all) == 0 {
		return
	}
	r.OK = 0
	r.OutputTokens = 0
	r.CachedTokens = 0
	r.Window.Seconds = 0
	var tokens, requests, prompt float64
	var outputs, rates, hits []float64
	for i := range all {
		b := &all[i].report
		r.OK += b.OK
		r.OutputTokens += b.OutputTokens
		r.CachedTokens += b.CachedTokens
		r.Window.Seconds += b.Window.Seconds
		tokens += b.Window.OutputTokensPerSecond * b.Window.Seconds
		requests += b.Window.RequestsPerSecond * b.Window.Seconds
		prompt += all[i].prompt
		outputs = append(outputs, b.Window.OutputTokensPerSecond)
		rates = append(rates, b.Window.RequestsPerSecond)
		hits = append(hits, orNaN(b.HitRatio))
	}
	r.Window.OutputTokensPerSecond = tokens / r.Window.Seconds
	r.Window.RequestsPerSecond = requests / r.Window.Seconds
	r.OutputInterval = relative(r.Window.OutputTokensPerSecond, outputs)
	r.RequestsInterval = relative(r.Window.RequestsPerSecond, rates)
	r.HitRatio = ratio(r.CachedTokens, int64(prompt))
	if r.HitRatio == nil {
		return
	}
	if half := liveHalf(hits, 0, decide.Variance{}); defined(half) {
		r.HitInterval = &[2]float64{max(0, *r.HitRatio-half), min(1, *r.HitRatio+half)}
	}
}

// liveHalf returns half the width of the interval of a mean over batches. It is not finite where a batch has no value,
// or there are too few.
func liveHalf(batches []float64, wander float64, prior decide.Variance) float64 {
	mean, in := decide.Sequence(batches, liveError, wander, prior)
	return in[1] - mean
}

// relative returns the interval of a value, from its batches on the logarithmic scale, on which a slow change of speed
// is the same for all values. It is nil where a batch has no value, or there are too few.
func relative(value float64, batches []float64) *[2]float64 {
	logs := make([]float64, len(batches))
	for i, v := range batches {
		logs[i] = math.Log(v)
	}
	return relativeLogs(value, logs, decide.Variance{})
}

// relativeLogs is relative for the logarithms of batches, with what is known of their variance.
func relativeLogs(value float64, logs []float64, earlier decide.Variance) *[2]float64 {
	half := liveHalf(logs, liveWander, earlier)
	if !defined(half) {
		return nil
	}
	return &[2]float64{value * math.Exp(-half), value * math.Exp(half)}
}
