package stats

import (
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// tally gathers a selection of turns under the window's lock. The slower computations are in
// report, without the lock.
type tally struct {
	Report
	slo                 api.SLO
	span                time.Duration // the longest time before now
	now, from           time.Duration // since the window's start; turns that ended at from are not in the rates
	byTurn              [len(turnLabels)]turnValues
	times               [api.NumTimes]measured // but inter-token latencies
	unknown             [api.NumTimes]int      // whole turns without a known value
	inBursts            int                    // whole turns
	cuts                [api.NumTimes]cutValues
	firstAnswer         measured
	late                []float64
	fidelity            fidelity
	onTime              [api.NumTimes][]float64 // times less the lateness, which is in them
	itl                 [batches]buckets
	rated, tokens, hits shares // of whole turns; report sets the denominators of the rates
}

// newTally selects the last span until now, or the time since origin where that is shorter.
func newTally(now, span, origin time.Duration, slo api.SLO) *tally {
	t := &tally{slo: slo, span: span, now: now, from: max(now-span, origin)}
	t.Window.Errors = map[api.ErrorClass]int{}
	return t
}

// gather adds the wanted turns of the span, and their gaps. The rates count every whole turn,
// since a conversation continues at the same pace whether its turn counts or not.
func (t *tally) gather(w *Window, wanted func(*workload.Outcome) bool, gaps *ring) {
	for i := range w.turns {
		turn := &w.turns[i]
		if turn.Ended <= t.now-t.span || turn.Ended > t.now {
			continue
		}
		if wanted(turn) {
			t.add(turn)
		}
		if turn.OK() && turn.Ended > t.from {
			batch := t.batch(turn.Ended)
			t.rated.part[batch]++
			t.tokens.part[batch] += float64(turn.OutputTokens)
		}
	}
	for i := range gaps.slots {
		s := &gaps.slots[i]
		last := gaps.number(t.now)
		if s.number > last-gaps.number(t.span) && s.number <= last {
			t.itl[t.batch(time.Duration(s.number)*gaps.length+gaps.length/2)].merge(&s.buckets)
		}
	}
}

func (t *tally) batch(ended time.Duration) int { return batchOf(ended-t.from, t.now-t.from) }

func (t *tally) add(one *workload.Outcome) {
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

// addCut adds a turn that was cut at the end of a run, so many seconds after it was sent. Its TTFT, where it had no
// token, and its latency are at least that long.
func (t *tally) addCut(one *workload.Outcome, elapsed float64) {
	batch := t.batch(one.Ended)
	if !defined(one.TTFT) {
		one.TTFT = elapsed
		t.cuts[api.TimeTTFT].add(elapsed)
		t.byTurn[turnIndex(one.Number)].cut++
	}
	t.times[api.TimeTTFT].add(batch, one.TTFT)
	t.byTurn[turnIndex(one.Number)].ttft = append(t.byTurn[turnIndex(one.Number)].ttft, one.TTFT)
	t.times[api.TimeLatency].add(batch, elapsed)
	t.cuts[api.TimeLatency].add(elapsed)
	t.onTime[api.TimeTTFT] = append(t.onTime[api.TimeTTFT], one.TTFT)
	t.onTime[api.TimeLatency] = append(t.onTime[api.TimeLatency], elapsed)
}

func (t *tally) addWhole(one *workload.Outcome) {
	t.OK++
	if one.Meets(t.slo) {
		t.SLOMet++
	}
	t.byTurn[turnIndex(one.Number)].add(one)
	batch := t.batch(one.Ended)
	for i := range times {
		if times[i].of != nil {
			t.times[i].add(batch, times[i].of(one))
		}
		if times[i].unknown(one) {
			t.unknown[i]++
		}
	}
	if one.Buffered() {
		t.inBursts++
	}
	if one.FirstAnswer > 0 {
		t.firstAnswer.add(batch, one.FirstAnswer)
	}
	if defined(one.Late) {
		t.late = append(t.late, one.Late)
		for _, i := range []int{api.TimeTTFT, api.TimeLatency} {
			if v := times[i].of(one); defined(v) {
				t.onTime[i] = append(t.onTime[i], v-one.Late)
			}
		}
	}
	t.fidelity.add(one)
	t.countUnknown(one)
	t.PromptTokens += int64(one.PromptTokens)
	t.OutputTokens += int64(one.OutputTokens)
	if one.HasCached {
		t.CachedTokens += int64(one.CachedTokens)
		t.hits.add(batch, float64(one.CachedTokens), float64(one.PromptTokens))
	}
}

// countUnknown counts the tokens that a whole turn does not report.
func (t *tally) countUnknown(one *workload.Outcome) {
	if one.PromptTokens == 0 {
		t.PromptUnknown++
	}
	if !one.HasCached {
		t.CachedUnknown++
	}
}

// report computes the figures. It needs no lock.
func (t *tally) report() Report {
	r := t.Report
	r.Window.Seconds = max(0, (t.now - t.from).Seconds())
	// A rate needs at least a second.
	span := max(1, r.Window.Seconds)
	r.Window.RequestsPerSecond = addUp(t.rated.part) / span
	r.Window.OutputTokensPerSecond = addUp(t.tokens.part) / span
	r.Window.ErrorRatio = ratio(int64(r.Errors), int64(r.OK+r.Errors))
	r.Window.GoodputRatio = ratio(int64(r.SLOMet), int64(r.OK+r.Errors))
	r.HitRatio = ratio(r.CachedTokens, int64(addUp(t.hits.whole)))
	r.TTFTByTurn, r.Window.InputP95 = t.rows()
	r.Batched = r.Window.Seconds > 0 && r.Window.Seconds/batches >= batchTurns*t.meanTurn()
	for i := range times {
		q := times[i].Quantiles(&r.Window.Metrics)
		if i == api.TimeITL {
			*q = summarizeGaps(&t.itl, r.OK, r.Batched)
		} else {
			*q = t.times[i].summarize(r.Batched)
		}
		if i == api.TimeTTFT {
			t.times[i].addMean(q, r.Batched)
		}
		if len(t.late) > 0 {
			q.Late = lateShare(q, t.onTime[i])
		}
		q.Unknown = t.unknown[i]
		if r.HeldBack = HeldBack(t.inBursts, r.OK); r.HeldBack && (i == api.TimeTPOT || i == api.TimeITL) {
			*q = api.Quantiles{Unknown: r.OK}
		}
		t.cuts[i].mark(q, &t.times[i])
	}
	if first := t.firstAnswer.summarize(r.Batched); first.N > 0 {
		r.Window.FirstAnswer = &first
	}
	r.Window.Late = lateness(t.late)
	r.Window.Fidelity = t.fidelity.report()
	if r.Batched {
		for i := range batches {
			t.rated.whole[i] = span / batches
			t.tokens.whole[i] = span / batches
		}
		r.RequestsInterval = t.rated.interval(math.Inf(1))
		r.OutputInterval = t.tokens.interval(math.Inf(1))
		r.HitInterval = t.hits.interval(1)
	}
	return r
}

// tooLate is the lateness, in seconds, from which a turn counts as late.
const tooLate = .05

// lateness describes how late turns were sent; nil without any.
func lateness(all []float64) *api.Lateness {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	on, _ := slices.BinarySearch(all, math.Nextafter(tooLate, 1))
	return &api.Lateness{
		N: len(all), P50: Percentile(all, .5), P99: Percentile(all, .99),
		Above: float64(len(all)-on) / float64(len(all)),
	}
}

// fidelity compares whole turns with the traffic that plans them.
type fidelity struct {
	behind        []float64
	input, output [2]int64 // tokens of the turns that know both, and those of the traffic
}

func (f *fidelity) add(one *workload.Outcome) {
	if defined(one.Behind) {
		f.behind = append(f.behind, one.Behind)
	}
	for _, tokens := range []struct {
		sum           *[2]int64
		sent, planned int
	}{{&f.input, one.PromptTokens, one.PlannedInput}, {&f.output, one.OutputTokens, one.PlannedOutput}} {
		if tokens.sent > 0 && tokens.planned > 0 {
			tokens.sum[0] += int64(tokens.sent)
			tokens.sum[1] += int64(tokens.planned)
		}
	}
}

// report returns nil where no traffic plans the turns.
func (f *fidelity) report() *api.Fidelity {
	r := api.Fidelity{
		Behind: lateness(f.behind), Input: ratio(f.input[0], f.input[1]), Output: ratio(f.output[0], f.output[1]),
	}
	if r == (api.Fidelity{}) {
		return nil
	}
	return &r
}

// lateShare compares figures with those of the times that all turns had without their lateness, which of cut turns is
// not known; nil without such times.
func lateShare(q *api.Quantiles, onTime []float64) *api.LateShare {
	without := Summarize(onTime)
	if without.N == 0 || q.P50 == nil {
		return nil
	}
	share := &api.LateShare{P50: max(0, *q.P50-*without.P50), P95: max(0, *q.P95-*without.P95)}
	if q.Mean != nil {
		share.Mean = max(0, *q.Mean-without.Shape.Mean)
	}
	return share
}

// meanTurn returns the mean latency of a turn in seconds; infinite where it is unknown.
func (t *tally) meanTurn() float64 {
	total, n := 0.0, 0
	for _, batch := range t.times[api.TimeLatency] {
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

// turnValues holds the known values of the whole turns with one number.
type turnValues struct {
	ttft, latency, input []float64
	turns, output, cut   int
	cached, prompt       int64 // tokens of the turns that reported both
}

func (v *turnValues) add(one *workload.Outcome) {
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
		v.cached += int64(one.CachedTokens)
		v.prompt += int64(one.PromptTokens)
	}
	v.turns++
	v.output += one.OutputTokens
}

// rows returns the figures by turn number, and the p95 of the input of all turns.
func (t *tally) rows() ([]api.TurnFigures, *float64) {
	rows := []api.TurnFigures{}
	var inputs []float64
	for i, v := range t.byTurn {
		if v.turns == 0 && len(v.ttft) == 0 {
			continue
		}
		ttft, latency, input := Summarize(v.ttft), Summarize(v.latency), Summarize(v.input)
		row := api.TurnFigures{
			Turn: turnLabels[i], P50: ttft.P50, P95: ttft.P95, N: ttft.N, Cut: v.cut,
			LatencyP50: latency.P50, LatencyP95: latency.P95,
			InputP95: input.P95, CachedRatio: ratio(v.cached, v.prompt),
		}
		if v.turns > 0 {
			row.OutputMean = new(float64(v.output) / float64(v.turns))
		}
		if input.Shape != nil {
			row.InputMean = &input.Shape.Mean
		}
		rows = append(rows, row)
		inputs = append(inputs, v.input...)
	}
	return rows, Summarize(inputs).P95
}

func addUp(parts [batches]float64) float64 {
	total := 0.0
	for _, v := range parts {
		total += v
	}
	return total
}

// ratio returns nil where whole is 0.
func ratio(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return new(float64(part) / float64(whole))
}
