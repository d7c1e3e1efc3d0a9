package twin

import (
	"math"
	"reflect"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
)

const (
	// waitsFor is how long a turn waits for the same turn on the other lane: lanes that are
	// farther apart than the figures reach back have nothing in common.
	waitsFor = time.Hour
	// maxWaiting bounds the turns that wait, of both lanes together.
	maxWaiting = 100_000
)

// turnKey says which turn of which conversation it is, on either lane.
type turnKey struct {
	lane.Draw
	turn int
}

// waiting is a turn that has ended on one lane.
type waiting struct {
	ended time.Time
	side  proof.PairedSide
}

// setting is what both lanes were at while turns were paired.
type setting struct {
	steps       [2]int64
	modes       [2]api.ModeState
	concurrency int
	shape       api.WorkloadShape
}

// swaps says whether two settings differ in nothing but that the lanes have each other's
// mode.
func (s *setting) swaps(o *setting) bool {
	return s.modes[0] != s.modes[1] && s.modes[0] == o.modes[1] && s.modes[1] == o.modes[0] &&
		s.concurrency == o.concurrency && reflect.DeepEqual(s.shape, o.shape)
}

// matcher puts the turns of two lanes together, each with the same turn of the same
// conversation on the other one. It has no clock and no lock.
type matcher struct {
	setting
	pairs    *proof.Pairs
	waiting  [2]map[turnKey]waiting
	unpaired int // that no longer wait
	swept    time.Time

	// Of the same setting with the modes swapped; nil: there is none.
	other        *proof.Pairs
	otherSetting setting
}

// begin counts anew, at another setting. What was counted at the one before is kept where
// the modes have been swapped since.
func (m *matcher) begin(s setting) {
	switch {
	case m.pairs != nil && m.pairs.N() > 0 && m.swaps(&s):
		m.other, m.otherSetting = m.pairs, m.setting
	case m.other != nil && !m.otherSetting.swaps(&s):
		m.other = nil
	}
	m.setting, m.pairs, m.unpaired, m.swept = s, proof.NewPairs(s.concurrency), 0, time.Time{}
	m.waiting = [2]map[turnKey]waiting{{}, {}}
}

// add takes in a turn that counts on its lane, 0 or 1; true says that it made a pair.
func (m *matcher) add(side int, t *lane.EndedTurn) bool {
	key := turnKey{Draw: t.Draw, turn: t.Number}
	w := waiting{t.Ended, pairedSide(&t.Turn)}
	m.sweep(t.Ended)
	other, ok := m.waiting[1-side][key]
	if !ok {
		if len(m.waiting[0])+len(m.waiting[1]) >= maxWaiting {
			m.unpaired++
		} else {
			m.waiting[side][key] = w
		}
		return false
	}
	delete(m.waiting[1-side], key)
	p := proof.PairedTurn{Conversation: t.Draw.Number, Number: t.Number, Ended: t.Ended}
	p.Sides[side], p.Sides[1-side] = w.side, other.side
	return m.pairs.Add(p)
}

// sweep drops, once a minute, the turns that have waited for too long: those whose
// conversation failed on the other lane, for the most part.
func (m *matcher) sweep(now time.Time) {
	if now.Sub(m.swept) < time.Minute {
		return
	}
	m.swept = now
	for side := range m.waiting {
		for key, w := range m.waiting[side] {
			if now.Sub(w.ended) > waitsFor {
				delete(m.waiting[side], key)
				m.unpaired++
			}
		}
	}
}

// left is how many turns have no counterpart, or none yet.
func (m *matcher) left() int { return m.unpaired + len(m.waiting[0]) + len(m.waiting[1]) }

func pairedSide(t *api.Turn) proof.PairedSide {
	s := proof.PairedSide{TTFT: orNaN(t.TTFT), TPOT: orNaN(t.TPOT), Latency: orNaN(t.Latency)}
	if t.PromptTokens != nil && t.CachedTokens != nil {
		s.PromptTokens, s.CachedTokens, s.HasCached = *t.PromptTokens, *t.CachedTokens, true
	}
	return s
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}
