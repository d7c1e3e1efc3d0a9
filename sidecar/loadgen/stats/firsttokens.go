package stats

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// Series holds the TTFT of a step by batches of time, as natural logarithms. Values are NaN where a batch has too few
// turns.
type Series struct {
	Until          time.Time     // end of the latest batch
	Batch          time.Duration // mean length of a batch
	N              int           // turns
	Average        float64       // mean TTFT of all turns, in seconds
	Mean, P50, P95 []float64     // of each batch
	Independent    float64       // variance of the logarithm of a batch's mean if turns were independent
	// Error is the most that the load generator's own error may be in the mean, in seconds.
	Error float64
}

// firstTokens holds the TTFT of the latest step. A turn belongs to the time of its first token, which does not depend
// on how long its answer takes.
type firstTokens struct {
	step     int64
	counting bool
	since    time.Duration // the time from which first tokens count
	from     time.Duration // end of the latest batch, or since
	pending  []firstToken  // in no batch yet
	batches  []ttftBatch
	earlier  []Series
}

type firstToken struct {
	at   time.Duration
	ttft float64
}

type ttftBatch struct {
	until, length time.Duration
	n             int
	sum, squares  float64 // of the values
	p50, p95      float64
	all           buckets
}

// BeginStep begins the TTFT of a step. Nothing counts before [Window.CountFrom]. earlier are series of the same
// setting, whose variance the intervals take in where the step's batches do not contradict it.
func (w *Window) BeginStep(step int64, earlier []Series) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = cmp.Or(w.since, step)
	w.tokens = firstTokens{step: step, earlier: earlier}
}

// CountFrom makes first tokens count from a time on.
func (w *Window) CountFrom(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens.counting = true
	w.tokens.since = at.Sub(w.start)
	w.tokens.from = w.tokens.since
}

// FirstToken adds the TTFT of a turn of a step, in seconds, at the time of its first token.
func (w *Window) FirstToken(step int64, at time.Time, ttft float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, since := &w.tokens, at.Sub(w.start)
	if f.counting && step == f.step && since >= f.since && defined(ttft) {
		f.pending = append(f.pending, firstToken{since, ttft})
	}
}

// FirstTokens returns the number of values of the step so far and of its batches.
func (w *Window) FirstTokens() (values, batches int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	values = len(w.tokens.pending)
	for i := range w.tokens.batches {
		values += w.tokens.batches[i].n
	}
	return values, len(w.tokens.batches)
}

// MeanTurn returns the mean latency of the turns that ended well in the last 60 s, and their number.
func (w *Window) MeanTurn(now time.Time) (latency time.Duration, turns int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.meanTurn(now.Sub(w.start))
}

func (w *Window) meanTurn(now time.Duration) (latency time.Duration, turns int) {
	sum := 0.
	for i := range w.turns {
		if t := &w.turns[i]; t.OK() && t.Ended > now-windowSpan && defined(t.Latency) {
			sum += t.Latency
			turns++
		}
	}
	return time.Duration(sum / float64(max(1, turns)) * float64(time.Second)), turns
}

// FailedShare returns the share of the turns of the last 60 s that failed; 0 without turns.
func (w *Window) FailedShare(now time.Time) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := now.Sub(w.start) - windowSpan
	failed, all := 0., 0.
	for i := range w.turns {
		if t := &w.turns[i]; t.Ended > from && t.Status != api.TurnCancelled {
			all++
			if t.Failed() {
				failed++
			}
		}
	}
	return failed / max(1, all)
}

// advance closes the batches that have ended by now. A batch lasts as many half minutes as have the turns needed for a
// p95, or [StepSpan]. It may be shorter than a turn: neighbors that depend on each other widen the intervals.
func (f *firstTokens) advance(now time.Duration) {
	for f.counting {
		length := liveBatch
		for length < StepSpan && f.from+length <= now && f.within(f.from+length) < leastTurns {
			length += liveBatch
		}
		if f.from+length > now {
			break
		}
		if n := f.within(f.from + length); n > 0 {
			f.batches = append(f.batches, newTTFTBatch(f.pending[:n], f.from+length, length))
			f.pending = slices.Clone(f.pending[n:])
		}
		f.from += length
	}
	f.batches = slices.DeleteFunc(f.batches, func(b ttftBatch) bool { return b.until <= now-liveReach })
}

// within returns the number of pending values up to a time. Values may be a little out of order; a value that is late
// belongs to the batch in progress.
func (f *firstTokens) within(until time.Duration) int {
	n := slices.IndexFunc(f.pending, func(t firstToken) bool { return t.at > until })
	if n < 0 {
		return len(f.pending)
	}
	return n
}

func newTTFTBatch(values []firstToken, until, length time.Duration) ttftBatch {
	b := ttftBatch{until: until, length: length, n: len(values), p50: math.NaN(), p95: math.NaN()}
	sorted := make([]float64, len(values))
	for i, v := range values {
		sorted[i] = v.ttft
		b.sum += v.ttft
		b.squares += v.ttft * v.ttft
	}
	b.all.addAll(sorted)
	slices.Sort(sorted)
	if b.n > 0 {
		b.p50 = Percentile(sorted, .5)
	}
	if b.n >= leastTurns {
		b.p95 = Percentile(sorted, .95)
	}
	return b
}

// Series returns the TTFT of the latest step by batches; false if it has none.
func (w *Window) Series() (Series, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens.series(w.start)
}

func (f *firstTokens) series(start time.Time) (s Series, ok bool) {
	sum := 0.
	for i := range f.batches {
		b := &f.batches[i]
		s.N += b.n
		sum += b.sum
		s.Batch += b.length / time.Duration(len(f.batches))
		s.Mean = append(s.Mean, math.Log(b.sum/float64(b.n)))
		s.P50 = append(s.P50, math.Log(b.p50))
		s.P95 = append(s.P95, math.Log(b.p95))
		s.Until = start.Add(b.until)
	}
	s.Average = sum / float64(max(1, s.N))
	s.Independent = f.independent()
	return s, len(f.batches) > 0
}

// effectDegrees is the weight of the design effect in the variance of a mean, in degrees of freedom: it may come from
// few batches of another setting, which depend on each other.
const effectDegrees = 3

// Estimate returns the mean of the logarithms of the batches' mean TTFT, for [Contrast]. earlier are other series of
// the same setting. The series itself is none of them. effect is the factor by which the variance of a batch exceeds
// that of independent turns where those are too few; see [DesignEffect].
func (s *Series) Estimate(earlier []Series, effect float64) decide.Mean {
	known := s.earlierVariance(earlier, meanOf, effect*s.Independent, effectDegrees)
	return decide.Batched(s.Mean, known).Discounted(s.Mean)
}

// DesignEffect returns the factor by which the variance of a batch exceeds that of independent turns in series of
// another setting, at least the factor that is assumed without any.
func DesignEffect(others []Series) float64 {
	effect := float64(designEffect)
	var all [][]float64
	independent := 0.
	for i := range others {
		all = append(all, others[i].Mean)
		independent += others[i].Independent / float64(len(others))
	}
	if v := decide.Within(all...); v.DF > 0 && independent > 0 {
		effect = max(effect, v.Value/independent)
	}
	return effect
}

func meanOf(s *Series) []float64 { return s.Mean }

// Contrast returns half the length of the interval of the difference between the logarithms of the means of a step in
// progress and a reference, which holds at all times together; see [decide.Contrast]. A slow change of the speed
// between the two is no difference: it is an error of the reference, independent of its batches.
func Contrast(is, was decide.Mean) float64 {
	of := was.Batch.Value / was.N
	all := of + liveWander*liveWander
	reference := decide.Variance{Value: all, DF: math.Inf(1)}
	if of > 0 {
		reference.DF = was.Batch.DF * all * all / (of * of)
	}
	return decide.Contrast(is, decide.Mean{Value: was.Value, Batch: reference, N: 1}, liveError, 0)
}

// leastBefore is the number of batches that a step needs before the latest ones to be compared with them.
const leastBefore = 4

// Changed reports whether the mean TTFT of the last [StepSpan] differs certainly from that of the batches before, and
// by how much on the logarithmic scale. earlier are other series of the same setting. It errs in 1 % of unchanged
// steps.
func (s *Series) Changed(earlier []Series) (difference float64, ok bool) {
	if s.Batch <= 0 {
		return 0, false
	}
	before := len(s.Mean) - int(math.Ceil(StepSpan.Seconds()/s.Batch.Seconds()))
	if before < leastBefore {
		return 0, false
	}
	known := s.earlierVariance(earlier, meanOf, designEffect*s.Independent, effectDegrees)
	is, was := decide.Batched(s.Mean[before:], known), decide.Batched(s.Mean[:before], known)
	difference = is.Value - was.Value
	return difference, math.Abs(difference) > decide.Contrast(is, was, .01, liveWander)
}

// earlierVariance returns the variance of the logarithm of a batch within earlier series. Where they and the batches
// have fewer degrees of freedom together, the assumed variance makes up the rest.
func (s *Series) earlierVariance(earlier []Series, of func(*Series) []float64, assumed, degrees float64,
) decide.Variance {
	var all [][]float64
	ratio := 0.
	for i := range earlier {
		if values := of(&earlier[i]); len(values) > 1 && !slices.ContainsFunc(values, math.IsNaN) {
			all = append(all, values)
			ratio += earlier[i].Batch.Seconds()
		}
	}
	v := decide.Within(all...)
	if len(all) > 0 && s.Batch > 0 {
		v.Value *= ratio / float64(len(all)) / s.Batch.Seconds()
	}
	if missing := degrees - v.DF - float64(len(s.Mean)-1); missing > 0 {
		v.Value = (v.DF*v.Value + missing*assumed) / (v.DF + missing)
		v.DF += missing
	}
	return v
}

// report sets the TTFT of a report: that of all batches, or that of the values so far where there is no batch yet,
// which has no intervals.
func (f *firstTokens) report(q *api.Quantiles) {
	unknown := q.Unknown
	*q = api.Quantiles{Unknown: unknown}
	s, ok := f.series(time.Time{})
	if !ok {
		values := make([]float64, len(f.pending))
		for i, v := range f.pending {
			values[i] = v.ttft
		}
		if len(values) > 0 {
			*q = Summarize(values)
			q.Mean, q.Unknown = new(stat.Mean(values, nil)), unknown
		}
		return
	}
	var whole buckets
	for i := range f.batches {
		whole.merge(&f.batches[i].all)
	}
	*q = whole.summarize()
	q.Unknown = unknown
	q.Mean = &s.Average
	q.Shape = &api.Shape{Least: whole.quantile(0), Mean: s.Average, Range: *q.P95 - whole.quantile(.05)}
	turns := whole.total / float64(len(f.batches)) // of a batch
	for _, one := range []struct {
		p        float64
		value    float64
		of       func(*Series) []float64
		interval **[2]float64
	}{
		{.5, *q.P50, func(e *Series) []float64 { return e.P50 }, &q.P50Interval},
		{.95, *q.P95, func(e *Series) []float64 { return e.P95 }, &q.P95Interval},
	} {
		earlier := s.earlierVariance(f.earlier, one.of, designEffect*independentQuantile(&whole, one.p, turns), priorDegrees)
		*one.interval = relativeLogs(one.value, one.of(&s), earlier)
	}
	earlier := s.earlierVariance(f.earlier, meanOf, designEffect*s.Independent, effectDegrees)
	q.MeanInterval = relativeLogs(s.Average, s.Mean, earlier)
}

// independent returns the variance of the logarithm of a batch's mean if turns were independent.
func (f *firstTokens) independent() float64 {
	n, sum, squares := 0., 0., 0.
	for i := range f.batches {
		n += float64(f.batches[i].n)
		sum += f.batches[i].sum
		squares += f.batches[i].squares
	}
	if n < 2 {
		return 0
	}
	mean := sum / n
	return max(0, squares/n-mean*mean) / (mean * mean) / (n / float64(len(f.batches)))
}
