package twin

import (
	"reflect"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/workload"
)

const (
	// maxWait is the time after which a turn is dropped if the same turn has not ended on the other
	// lane. Lanes that are farther apart than the figures reach back have no turns in common.
	maxWait = time.Hour
	// maxWaiting limits the number of turns that wait, on both lanes together.
	maxWaiting = 100_000
)

// turnKey identifies a turn of a conversation, on either lane.
type turnKey struct {
	workload.Draw
	turn int
}

// waiting is a turn that has ended on only one lane.
type waiting struct {
	ended time.Time
	workload.Outcome
}

// setting is the state of both lanes under which turns are paired.
type setting struct {
	steps [2]int64
	modes [2]api.ModeState
	level api.Level
	shape api.WorkloadShape
}

// swaps reports whether two settings differ only in that the lanes have exchanged their modes.
func (s *setting) swaps(o *setting) bool {
	return s.modes[0] != s.modes[1] && s.modes[0] == o.modes[1] && s.modes[1] == o.modes[0] &&
		s.level == o.level && reflect.DeepEqual(s.shape, o.shape)
}

// matcher pairs each turn of a lane with the same turn of the same conversation on the other lane.
// It reads no clock. It is not safe for concurrent use.
type matcher struct {
	setting
	pairs    *proof.Pairs
	waiting  [2]map[turnKey]waiting
	unpaired int // turns that were dropped
	swept    time.Time

	// The pairs of the same setting with the modes swapped; nil: there are none.
	other        *proof.Pairs
	otherSetting setting
}

// begin counts anew for another setting. The former pairs are kept as other if the modes have been
// swapped.
func (m *matcher) begin(s setting) {
	switch {
	case m.pairs != nil && m.pairs.N() > 0 && m.swaps(&s):
		m.other, m.otherSetting = m.pairs, m.setting
	case m.other != nil && !m.otherSetting.swaps(&s):
		m.other = nil
	}
	m.setting = s
	m.pairs = proof.NewPairs(s.level.Conversations(), float64(s.shape.Turns.Min+s.shape.Turns.Max)/2)
	m.waiting = [2]map[turnKey]waiting{{}, {}}
	m.unpaired = 0
	m.swept = time.Time{}
}

// add adds a turn that counts on its lane, 0 or 1. It reports whether the turn completed a pair.
func (m *matcher) add(side int, t *workload.Turn) bool {
	key := turnKey{Draw: t.Draw, turn: t.Number}
	w := waiting{t.Ended, workload.OutcomeOf(&t.Turn, t.Started)}
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
	p.Sides[side], p.Sides[1-side] = w.Outcome, other.Outcome
	return m.pairs.Add(p)
}

// sweep drops, once a minute, turns that have waited for longer than maxWait. Most of them belong
// to conversations that failed on the other lane.
func (m *matcher) sweep(now time.Time) {
	if now.Sub(m.swept) < time.Minute {
		return
	}
	m.swept = now
	for side := range m.waiting {
		for key, w := range m.waiting[side] {
			if now.Sub(w.ended) > maxWait {
				delete(m.waiting[side], key)
				m.unpaired++
			}
		}
	}
}

// left returns the number of turns without a counterpart, including those that still wait.
func (m *matcher) left() int { return m.unpaired + len(m.waiting[0]) + len(m.waiting[1]) }
