package stats

import (
	"math"
	"time"

	"kvbooth/sidecar/api"
)

// tally gathers a selection of turns under the window's lock; what takes longer
// happens in report, without it.
type tally struct {
	Report
	slo                 api.SLO
	span                time.Duration // how far it reaches back at most
	now, from           time.Duration // since the window's start; what ended at from is not in the rates
	byTurn              [len(turnLabels)]turnValues
	ttft, tpot, latency measured
	firstAnswer         measured
	unknownTTFT         int // whole turns without a token that was seen
	unknownTPOT         int // whole turns whose tokens came in bursts
	itl                 [batches]buckets
	rated, tokens, hits shares // of whole turns; the rates' wholes are filled in by report
}

// newTally selects the last span until now, or what was since origin where it is later.
func newTally(now, span, origin time.Duration, slo api.SLO) *tally {
	t := &tally{slo: slo, span: span, now: now, from: max(now-span, origin)}
	t.Window.Errors = map[api.ErrorClass]int{}
	return t
}

// gather takes the turns of the span that are wanted, and their gaps. The rates
// count every whole turn: a conversation goes on at the same pace whether its turn
// counts or not.
func (t *tally) gather(w *Window, wanted func(*turn) bool, gaps *ring) {
	for i := range w.turns {
		one := &w.turns[i]
		if one.ended <= t.now-t.span || one.ended > t.now {
			continue
		}
		if wanted(one) {
			t.add(one)
		}
		if one.Status == api.TurnOK && one.ended > t.from {
			batch := t.batch(one.ended)
			t.rated.part[batch]++
			t.tokens.part[batch] += float64(one.OutputTokens)
		}
	}
	for i := range gaps.slots {
		s, last := &gaps.slots[i], gaps.number(t.now)
		if s.number > last-gaps.number(t.span) && s.number <= last {
			t.itl[t.batch(time.Duration(s.number)*gaps.length+gaps.length/2)].merge(&s.buckets)
		}
	}
}

func (t *tally) batch(ended time.Duration) int { return batchOf(ended-t.from, t.now-t.from) }

func (t *tally) add(one *turn) {
	switch one.Status {
	case api.TurnCancelled:
		t.Cancelled++
	case api.TurnError:
		t.Errors++
		t.Window.Errors[one.Class]++
		if one.Class == api.ErrorTimeout || one.Class == api.ErrorStall {
			t.Window.Timeouts++
		}
	case api.TurnOK:
		t.addWhole(one)
	}
}

func (t *tally) addWhole(one *turn) {
	t.OK++
	if one.meets(t.slo) {
		t.SLOMet++
	}
	t.byTurn[turnIndex(one.Turn)].add(one)
	batch := t.batch(one.ended)
	t.ttft.add(batch, one.TTFT)
	t.tpot.add(batch, one.TPOT)
	t.latency.add(batch, one.Latency)
	if one.FirstAnswer > 0 {
		t.firstAnswer.add(batch, one.FirstAnswer)
	}
	t.countUnknown(one)
	t.PromptTokens += int64(one.PromptTokens)
	t.OutputTokens += int64(one.OutputTokens)
	if one.HasCached {
		t.CachedTokens += int64(one.CachedTokens)
		t.hits.add(batch, float64(one.CachedTokens), float64(one.PromptTokens))
	}
}

// countUnknown counts what is not known of a whole turn.
func (t *tally) countUnknown(one *turn) {
	if math.IsNaN(one.TTFT) {
		t.unknownTTFT++
	}
	if one.tpotUnknown() {
		t.unknownTPOT++
	}
	if one.PromptTokens == 0 {
		t.PromptUnknown++
	}
	if !one.HasCached {
		t.CachedUnknown++
	}
}

// report computes what follows from the tally. It needs no lock.
func (t *tally) report() Report {
	r := t.Report
	r.Window.Seconds = max(0, (t.now - t.from).Seconds())
	// Less than a second of evidence does not make a rate.
	span := max(1, r.Window.Seconds)
	r.Window.RequestsPerSecond = addUp(t.rated.part) / span
	r.Window.OutputTokensPerSecond = addUp(t.tokens.part) / span
	r.Window.ErrorRatio = ratio(int64(r.Errors), int64(r.OK+r.Errors))
	r.Window.GoodputRatio = ratio(int64(r.SLOMet), int64(r.OK+r.Errors))
	r.HitRatio = ratio(r.CachedTokens, int64(addUp(t.hits.whole)))
	r.TTFTByTurn, r.Window.InputP95 = t.rows()
	r.Batched = r.Window.Seconds > 0 && r.Window.Seconds/batches >= batchTurns*t.meanTurn()
	r.Window.Metrics = api.Metrics{
		TTFT: t.ttft.summarise(r.Batched), TPOT: t.tpot.summarise(r.Batched),
		ITL: summariseGaps(&t.itl, r.OK, r.Batched), Latency: t.latency.summarise(r.Batched),
	}
	r.Window.Metrics.TTFT.Unknown, r.Window.Metrics.Latency.Unknown = t.unknownTTFT, t.unknownTTFT
	r.Window.Metrics.TPOT.Unknown, r.Window.Metrics.ITL.Unknown = t.unknownTPOT, t.unknownTPOT
	if first := t.firstAnswer.summarise(r.Batched); first.N > 0 {
		r.Window.FirstAnswer = &first
	}
	if r.Batched {
		for i := range batches {
			t.rated.whole[i], t.tokens.whole[i] = span/batches, span/batches
		}
		r.RequestsInterval, r.OutputInterval = t.rated.interval(math.Inf(1)), t.tokens.interval(math.Inf(1))
		r.HitInterval = t.hits.interval(1)
	}
	return r
}

// meanTurn is how long a turn took, in seconds; infinite where none is known.
func (t *tally) meanTurn() float64 {
	total, n := 0.0, 0
	for _, batch := range t.latency {
		n += len(batch)
		for _, v := range batch {
			total += v
		}
	}
	if n == 0 {
		return math.Inf(1)
	}
	return total / float64(n)
}

// turnValues are what the whole turns with one number had, of each that was known.
type turnValues struct {
	ttft, latency, input []float64
	turns, output        int
	cached, prompt       int64 // tokens of the turns that told both
}

func (v *turnValues) add(one *turn) {
	if defined(one.TTFT) {
		v.ttft = append(v.ttft, one.TTFT)
	}
	if defined(one.Latency) {
		v.latency = append(v.latency, one.Latency)
	}
	if one.PromptTokens > 0 {
		v.input = append(v.input, float64(one.PromptTokens))
	}
	if one.HasCached && one.PromptTokens > 0 {
		v.cached, v.prompt = v.cached+int64(one.CachedTokens), v.prompt+int64(one.PromptTokens)
	}
	v.turns++
	v.output += one.OutputTokens
}

// rows are the figures of each turn that occurred, and the p95 of the input of all.
func (t *tally) rows() ([]api.TurnFigures, *float64) {
	rows, inputs := []api.TurnFigures{}, []float64(nil)
	for i, v := range t.byTurn {
		if v.turns == 0 {
			continue
		}
		ttft, latency, input := quantiles(v.ttft), quantiles(v.latency), quantiles(v.input)
		row := api.TurnFigures{
			Turn: turnLabels[i], P50: ttft.P50, P95: ttft.P95, N: ttft.N, LatencyP50: latency.P50, LatencyP95: latency.P95,
			InputP95: input.P95, CachedRatio: ratio(v.cached, v.prompt), OutputMean: new(float64(v.output) / float64(v.turns)),
		}
		if input.Shape != nil {
			row.InputMean = &input.Shape.Mean
		}
		rows, inputs = append(rows, row), append(inputs, v.input...)
	}
	return rows, quantiles(inputs).P95
}

func addUp(parts [batches]float64) float64 {
	total := 0.0
	for _, v := range parts {
		total += v
	}
	return total
}

// ratio is nil where there is nothing to divide by.
func ratio(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return new(float64(part) / float64(whole))
}
