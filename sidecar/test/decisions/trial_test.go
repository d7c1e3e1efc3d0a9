//go:build verify

package decisions

import (
	"slices"

	"kvbooth/sidecar/loadgen/decide"
)

// plan returns the plan of a trial. Primary is the index of the deciding metric.
func plan(arms, primary int, known *decide.Boundaries) decide.Plan {
	return decide.Plan{
		Arms: arms, Alpha: .05, Margin: .05, MaxSeconds: hour, Known: known, Metrics: first(primary, metrics),
	}
}

// run runs a trial of more than two arms to its end.
func run(p decide.Plan, w world, trial int) (d decide.Decision, blocks []decide.Block) {
	s := newSpans(w, p.Arms, trial)
	for d = decide.Decide(p, nil); !d.Verdict.Over(); d = decide.Decide(p, blocks) {
		blocks = append(blocks, s.block(uint64(trial), d.Left, len(blocks)))
	}
	return d, blocks
}

// blocks runs all blocks of a trial of two arms that fit into an hour, for any primary metric: [decide.Decide]
// ignores the blocks after the one that ends the trial.
func (w world) blocks(trial int) (all []decide.Block) {
	s := newSpans(w, 2, trial)
	for n := 0; n < 2 || taken(all, n)*float64(n+1)/float64(n) <= hour; n++ {
		all = append(all, s.block(uint64(trial), []int{0, 1}, n))
	}
	return all
}

// taken returns the seconds of the first n blocks.
func taken(all []decide.Block, n int) (seconds float64) {
	for _, b := range all[:n] {
		seconds += b.Seconds
	}
	return seconds
}

// first moves element i to the front.
func first[T any](i int, all []T) []T {
	return slices.Concat(all[i:i+1], all[:i], all[i+1:])
}

// block runs a block, one span after the other, or on two lanes if these differ.
func (s *spans) block(seed uint64, left []int, number int) (b decide.Block) {
	var all []samples
	pass := func(seconds float64) {
		b.Seconds += seconds
		s.clock += seconds
	}
	add := func(r decide.Run, lane int) {
		s.wait(lane, change)
		all = append(all, counted(s.record(r.Arm, lane, s.seconds()*float64(r.Length), r.Length)))
		b.Spans = append(b.Spans, decide.Span{Arm: r.Arm, At: r.At})
	}
	if s.lane > 0 {
		for _, turn := range decide.SideBySide(seed, left, number) {
			add(turn[0], 0)
			add(turn[1], 1)
			s.passed(turn[0].Arm, 1)
			pass(change + warmUp + s.seconds())
		}
	} else {
		for _, r := range decide.Order(seed, left, number) {
			if r.RunIn > 0 {
				s.wait(0, s.seconds()*float64(r.RunIn))
				s.lanes[0].runIn = s.seconds() * float64(r.RunIn)
				s.passed(r.Arm, r.RunIn)
				pass(s.lanes[0].runIn)
			}
			add(r, 0)
			s.passed(r.Arm, r.Length)
			pass(change + warmUp + s.seconds()*float64(r.Length))
		}
	}
	measure(&b, all)
	return b
}

// measure sets the figures of a block's spans.
func measure(b *decide.Block, all []samples) {
	var ttft, tpot []decide.Sample
	for i := range all {
		ttft, tpot = append(ttft, all[i].ttft), append(tpot, all[i].tpot)
	}
	for i := range all {
		v := all[i].values(decide.Largest(ttft...), decide.Largest(tpot...))
		b.Spans[i].Values, b.Spans[i].Failed, b.Spans[i].Ended = v, all[i].failed, all[i].ended
		b.Spans[i].Succeeded = all[i].succeeded()
	}
}
