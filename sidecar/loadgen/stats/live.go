package stats

import (
	"math"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// A step in progress is looked at all along, and acted on at any time. Its intervals are therefore confidence sequences
// over batches of time: they hold at all times together, see [decide.Sequence].
const (
	liveBatch  = 30 * time.Second // how long a batch lasts at least
	liveTurns  = 1                // mean turns that it lasts at least
	leastTurns = 40               // turns that its p95 takes: that of fewer is too low
	// designEffect is by how much the variance of a batch's TTFT percentile exceeds that of as many independent turns, and
	// priorDegrees how many degrees of freedom that counts for beside the batches: an assumption, see
	// docs/statistics.md. Turns depend on each other far more in their other times.
	designEffect = 2
	priorDegrees = 6
	liveReach    = time.Hour // how far the batches reach back
	liveError    = .05       // of an interval at all times together
	// liveWander is by how much the speed of a system, and that of the one before it, may change slowly by itself: one
	// standard deviation.
	liveWander = .01 * math.Sqrt2
)

// liveBatches are those of the latest step.
type liveBatches struct {
	from time.Duration // end of the latest batch, or of the step's first counted turn
	all  []stepBatch   // ascending
}

// stepBatch is what the counted turns of a batch were like.
type stepBatch struct {
	until  time.Duration
	report Report
	prompt float64    // tokens of the prompts whose cached ones are known
	times  [4]buckets // in the order of [timesOf]
}

// timeOfTTFT is the place of TTFT in [timesOf].
const timeOfTTFT = 0

// timesOf are those of a report.
func timesOf(r *Report) [4]*api.Quantiles {
	m := &r.Window.Metrics
	return [...]*api.Quantiles{&m.TTFT, &m.TPOT, &m.ITL, &m.Latency}
}

// AdvanceLive closes the batches that have ended by now. It must be called once a minute or more often, since the turns
// of a step are kept for [StepSpan]. The tokens are those that the meter counted.
func (w *Window) AdvanceLive(m *Meter, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := now.Sub(w.start)
	for w.counts {
		w.live.from = max(w.live.from, w.kept, at-StepSpan)
		b, ok := w.nextBatch(at)
		if !ok {
			break
		}
		if rate, _ := m.Over(w.start.Add(w.live.from), w.start.Add(b.until)); rate != nil {
			b.report.Window.OutputTokensPerSecond = *rate
		}
		w.live.from, w.live.all = b.until, append(w.live.all, b)
	}
	for len(w.live.all) > 0 && w.live.all[0].until <= at-liveReach {
		w.live.all = w.live.all[1:]
	}
}

// nextBatch is the next batch, if it is over: as many half minutes as have a mean turn and the turns that a p95 takes,
// or all that is kept.
func (w *Window) nextBatch(now time.Duration) (b stepBatch, ok bool) {
	from := w.live.from
	for length := liveBatch; length <= StepSpan && from+length <= now; length += liveBatch {
		b.until = from + length
		counts := func(one *turn) bool {
			return one.Counted && one.Step == w.step && from < one.ended && one.ended <= b.until
		}
		if length < StepSpan && !w.suffices(length, counts) {
			continue
		}
		t := newTally(b.until, length, from, api.SLO{})
		t.gather(w, counts, &w.counted)
		for i := range batches {
			b.times[0].addAll(t.ttft[i])
			b.times[1].addAll(t.tpot[i])
			b.times[2].merge(&t.itl[i])
			b.times[3].addAll(t.latency[i])
		}
		b.report, b.prompt = t.report(), addUp(t.hits.whole)
		return b, true
	}
	return b, false
}

// suffices says whether a batch of a length has turns enough, and none too long. It allocates nothing: where turns are
// long, it is asked again and again before a batch is over.
func (w *Window) suffices(length time.Duration, counts func(*turn) bool) bool {
	ok, known, seconds := 0, 0, 0.
	for i := range w.turns {
		one := &w.turns[i]
		if one.Status != api.TurnOK || !counts(one) {
			continue
		}
		ok++
		if defined(one.Latency) {
			known, seconds = known+1, seconds+one.Latency
		}
	}
	return ok >= leastTurns && known > 0 && length.Seconds() >= liveTurns*seconds/float64(known)
}

// Live describes a step as [Window.CountedAsArrived] does, but over its batches of the last hour, with intervals that
// hold however often they are looked at. It has none before there are enough batches.
func (w *Window) Live(m *Meter, now time.Time, step int64, slo api.SLO) Report {
	w.AdvanceLive(m, now)
	r := w.CountedAsArrived(m, now, step, slo)
	w.mu.Lock()
	all := w.live.all
	if !w.counts || step != w.step {
		all = nil
	}
	w.mu.Unlock()
	for i, q := range timesOf(&r) {
		liveQuantiles(q, all, i)
	}
	r.liveRates(all)
	return r
}

// liveQuantiles gives the percentiles of one of the times over all batches, with the intervals that the batches' own allow.
func liveQuantiles(q *api.Quantiles, all []stepBatch, time int) {
	q.P50Interval, q.P95Interval = nil, nil
	var whole buckets
	p50, p95 := make([]float64, len(all)), make([]float64, len(all))
	for i := range all {
		whole.merge(&all[i].times[time])
		of := timesOf(&all[i].report)[time]
		p50[i], p95[i] = orNaN(of.P50), orNaN(of.P95)
		if all[i].report.OK < leastTurns {
			p95[i] = math.NaN()
		}
	}
	if whole.total == 0 {
		return
	}
	overall := whole.summarise()
	q.N, q.P50, q.P95, q.P99, q.Estimated = overall.N, overall.P50, overall.P95, overall.P99, overall.Estimated
	turns := whole.total / float64(len(all)) // of a batch
	q.P50Interval = relative(*q.P50, p50, quantilePrior(&whole, .5, turns, time))
	q.P95Interval = relative(*q.P95, p95, quantilePrior(&whole, .95, turns, time))
}

// quantilePrior is what the turns of all batches, as if independent, say of the variance of the logarithm of one batch's
// p-quantile: p(1 − p)/(n f²), with the density f from the distance between two quantiles around it (Siddiqui, Journal
// of Research of the National Bureau of Standards 64B, 1960). Turns do depend on each other, by [designEffect].
func quantilePrior(whole *buckets, p, turns float64, time int) decide.Prior {
	if time != timeOfTTFT {
		return decide.Prior{}
	}
	h := 1.5 * math.Sqrt(p*(1-p)/whole.total)
	low, high := p-h, min(p+h, 1)
	slope := math.Log(whole.quantile(high)/whole.quantile(low)) / (high - low)
	return decide.Prior{Variance: designEffect * slope * slope * p * (1 - p) / turns, Degrees: priorDegrees}
}

// liveRates does the same for the rates and the hit ratio.
func (r *Report) liveRates(all []stepBatch) {
	r.OutputInterval, r.RequestsInterval, r.HitInterval = nil, nil, nil
	if len(all) == 0 {
		return
	}
	r.OK, r.OutputTokens, r.CachedTokens, r.Window.Seconds = 0, 0, 0, 0
	var tokens, requests, prompt float64
	var outputs, rates, hits []float64
	for i := range all {
		b := &all[i].report
		r.OK, r.OutputTokens, r.CachedTokens = r.OK+b.OK, r.OutputTokens+b.OutputTokens, r.CachedTokens+b.CachedTokens
		r.Window.Seconds += b.Window.Seconds
		tokens += b.Window.OutputTokensPerSecond * b.Window.Seconds
		requests += b.Window.RequestsPerSecond * b.Window.Seconds
		prompt += all[i].prompt
		outputs = append(outputs, b.Window.OutputTokensPerSecond)
		rates, hits = append(rates, b.Window.RequestsPerSecond), append(hits, orNaN(b.HitRatio))
	}
	r.Window.OutputTokensPerSecond, r.Window.RequestsPerSecond = tokens/r.Window.Seconds, requests/r.Window.Seconds
	r.OutputInterval = relative(r.Window.OutputTokensPerSecond, outputs, decide.Prior{})
	r.RequestsInterval = relative(r.Window.RequestsPerSecond, rates, decide.Prior{})
	if r.HitRatio = ratio(r.CachedTokens, int64(prompt)); r.HitRatio == nil {
		return
	}
	if half := liveHalf(hits, 0, decide.Prior{}); defined(half) {
		r.HitInterval = &[2]float64{max(0, *r.HitRatio-half), min(1, *r.HitRatio+half)}
	}
}

// liveHalf is half the width of the interval of a mean over batches; not finite where a batch has no value, or there are
// too few.
func liveHalf(batches []float64, wander float64, prior decide.Prior) float64 {
	mean, in := decide.Sequence(batches, liveError, wander, prior)
	return in[1] - mean
}

// relative is the interval of a value, from that of its batches: on the logarithmic scale, on which a slow wander of the
// speed is the same for all values. It is nil where one batch or more has none, or there are too few.
func relative(value float64, batches []float64, prior decide.Prior) *[2]float64 {
	logs := make([]float64, len(batches))
	for i, v := range batches {
		logs[i] = math.Log(v)
	}
	half := liveHalf(logs, liveWander, prior)
	if !defined(half) {
		return nil
	}
	return &[2]float64{value * math.Exp(-half), value * math.Exp(half)}
}
