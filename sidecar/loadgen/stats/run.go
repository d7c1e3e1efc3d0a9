package stats

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/workload"
)

// gapsOfRun holds the inter-token latencies of a run of any length in bounded space: in
// slots of one length, by the end of the turns. When a run outgrows its slots they are
// merged in pairs. It is not safe for concurrent use.
type gapsOfRun struct {
	start  time.Time
	length time.Duration // of a slot
	slots  []buckets     // at most ringSlots

	chunks, tokens int64 // of all these turns
}

func newGapsOfRun(now time.Time) gapsOfRun { return gapsOfRun{start: now, length: time.Second} }

// add adds the gaps of a whole turn. It ignores a turn that ended before the start. Where the number of chunks is 0,
// it is one more than that of the gaps.
func (g *gapsOfRun) add(t *api.Turn, chunks int, gaps []chat.Gap) {
	ended := t.Ended.Sub(g.start)
	if ended < 0 {
		return
	}
	g.chunks += int64(cmp.Or(chunks, len(gaps)+1))
	if t.OutputTokens != nil {
		g.tokens += int64(*t.OutputTokens)
	}
	for ended >= ringSlots*g.length {
		g.halve()
	}
	for int(ended/g.length) >= len(g.slots) {
		g.slots = append(g.slots, buckets{})
	}
	g.slots[ended/g.length].addGaps(gaps, t.ITLEstimated)
}

// halve doubles the length of the slots.
func (g *gapsOfRun) halve() {
	for i := range g.slots {
		if i%2 == 1 {
			g.slots[i/2].merge(&g.slots[i])
		} else if i > 0 {
			g.slots[i/2] = g.slots[i]
		}
	}
	g.slots = g.slots[:(len(g.slots)+1)/2]
	g.length *= 2
}

// TokensPerChunk returns the mean number of output tokens in a chunk since the last reset;
// 1 where it is unknown.
func (r *Recorder) TokensPerChunk() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gaps.chunks == 0 || r.gaps.tokens == 0 {
		return 1
	}
	return float64(r.gaps.tokens) / float64(r.gaps.chunks)
}

// Whole describes the run from the last reset to its end, as [Recorder.Report] describes
// the last 60 s. turns yields every turn of the run. Inter-token latencies are those that
// the Recorder kept, each in the batch of the middle of its slot. The percentiles include
// all successful turns, also the first ones on cold caches. The output tokens are those
// that arrived until the end: the tokens of a turn are spread evenly from its first token to its end,
// also those of a turn that was cut short; see [Arrived]. Turns that ended after the run, in its grace
// period, are in every figure but the rates. Those that were cut are in TTFT and latency with the
// time that they took until then, and the figures that depend on them are marked.
func (r *Recorder) Whole(ended time.Time, turns iter.Seq[*api.Turn]) Report {
	perChunk, slo := r.TokensPerChunk(), r.objectives()
	r.mu.Lock()
	start, doubt := r.gaps.start, r.doubt
	span := ended.Sub(start)
	t := newTally(span, span+1, 0, slo)
	for i := range r.gaps.slots {
		t.itl[t.batch(time.Duration(i)*r.gaps.length+r.gaps.length/2)].merge(&r.gaps.slots[i])
	}
	r.mu.Unlock()
	for one := range turns {
		part := workload.OutcomeOf(one, start)
		part.HasCached = part.HasCached && (!doubt || part.CachedTokens > 0)
		t.add(&part)
		if part.Status == api.TurnCancelled && one.Ended.After(one.Started) { // else it was never sent
			t.addCut(&part, one.Ended.Sub(one.Started).Seconds())
		}
		if part.OK() && part.Ended <= span {
			t.rated.part[t.batch(part.Ended)]++
		}
		for i, tokens := range Arrived(one, perChunk, start, span, batches) {
			t.tokens.part[i] += tokens
		}
	}
	report := t.report()
	for i := range times {
		if q := times[i].Quantiles(&report.Window.Metrics); i == api.TimeITL {
			spreadOfGaps(q, &t.itl)
		} else {
			t.times[i].spread(q)
		}
	}
	if report.Window.FirstAnswer != nil {
		t.firstAnswer.spread(report.Window.FirstAnswer)
	}
	return report
}

// spread adds mean, minimum, p90 and maximum to figures of the values, unless those are withheld.
func (v *measured) spread(q *api.Quantiles) {
	if q.N == 0 {
		return
	}
	all := slices.Sorted(slices.Values(slices.Concat(v[:]...)))
	q.Min, q.P90, q.Max = &all[0], new(Percentile(all, .9)), &all[len(all)-1]
	q.Mean = cmp.Or(q.Mean, &q.Shape.Mean)
}

// spreadOfGaps is spread for inter-token latencies, each of which is the middle of its bucket.
func spreadOfGaps(q *api.Quantiles, gaps *[batches]buckets) {
	if q.N == 0 {
		return
	}
	var all buckets
	for i := range gaps {
		all.merge(&gaps[i])
	}
	q.P90 = new(all.quantile(.9))
	q.Min, q.Mean, q.Max = all.spread()
}

// Arrived returns the output tokens of a turn that arrived in each of n equal parts of a
// span, as if evenly from the first token to the turn's end. Tokens outside the span do
// not count. For a turn that was cut short only its chunks are known, with perChunk tokens
// each.
func Arrived(t *api.Turn, perChunk float64, start time.Time, span time.Duration, n int) []float64 {
	tokens := 0.0
	if t.OutputTokens != nil {
		tokens = float64(*t.OutputTokens)
	}
	if t.Status != api.TurnOK && t.TokenSource == "chunks" {
		tokens *= perChunk
	}
	shares := spread(t, start, span, n)
	for i := range shares {
		shares[i] *= tokens
	}
	return shares
}

// spread returns the share of a turn's tokens in each part of a span.
func spread(t *api.Turn, start time.Time, span time.Duration, n int) []float64 {
	shares := make([]float64, n)
	part := span.Seconds() / float64(n)
	to := t.Ended.Sub(start).Seconds()
	from := to
	if t.TTFT != nil {
		from = min(to, t.Started.Sub(start).Seconds()+*t.TTFT)
	}
	place := func(at float64) int { return min(max(int(at/part), 0), n-1) }
	if to-from < 1e-6 {
		if to <= span.Seconds() {
			shares[place(to)] = 1
		}
		return shares
	}
	for i := place(from); i <= place(to); i++ {
		low, high := float64(i)*part, float64(i+1)*part
		shares[i] = max(0, min(high, to)-max(low, from)) / (to - from)
	}
	return shares
}
