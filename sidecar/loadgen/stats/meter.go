package stats

import (
	"math"
	"sync/atomic"
	"time"
)

// Meter measures output tokens a second, as chunks arrive, over the last 60 s or over a
// span of up to [StepSpan]. Add takes no lock and allocates nothing.
type Meter struct {
	base  time.Time
	start atomic.Int64 // of the span, in nanoseconds since base
	total atomic.Int64 // tokens since the last reset
	// slots hold one second each: its number since base in the upper half, its tokens in the
	// lower one. Both change together in one word.
	slots [meterSlots]atomic.Uint64
}

// meterSlots is a few more than the seconds of the longest span, so that a second that has
// just begun does not overwrite one that still counts.
const meterSlots = StepSpan/time.Second + 4

// NewMeter makes a meter that starts now.
func NewMeter(now time.Time) *Meter { return &Meter{base: now} }

// Add counts n tokens that arrived at a time. A negative n corrects the count by the
// server's usage at the turn's end. Tokens from before the last reset, or five minutes
// late, are ignored. A second holds 2^31 tokens.
func (m *Meter) Add(at time.Time, n int) {
	since := at.Sub(m.base)
	if since < time.Duration(m.start.Load()) {
		return
	}
	second := uint64(since / time.Second)
	slot := &m.slots[second%uint64(meterSlots)]
	for {
		old := slot.Load()
		held := old >> 32
		tokens := int32(n)
		if held > second {
			return
		}
		if held == second {
			tokens += int32(old)
		}
		if slot.CompareAndSwap(old, second<<32|uint64(uint32(tokens))) {
			m.total.Add(int64(n))
			return
		}
	}
}

// Total returns the tokens since the last reset.
func (m *Meter) Total() int64 { return m.total.Load() }

// Rate returns the tokens a second over the last 59 to 60 s (whole seconds and the one in
// progress), or since the start where that is later, over at least 1 s.
func (m *Meter) Rate(now time.Time) float64 {
	since := now.Sub(m.base)
	first := max(0, since/time.Second-(windowSeconds-1))
	from := max(first*time.Second, time.Duration(m.start.Load()))
	tokens := int64(0)
	for i := range m.slots {
		held := m.slots[i].Load()
		if held>>32 >= uint64(first) {
			tokens += int64(int32(held))
		}
	}
	return max(0, float64(tokens)/max(1, (since-from).Seconds()))
}

// Over returns the tokens a second over the whole seconds between two times, with its 95 %
// interval; nil where there are fewer seconds than batches, or more than [StepSpan]. now is
// the present time.
func (m *Meter) Over(from, now time.Time) (rate *float64, interval *[2]float64) {
	first := int64((from.Sub(m.base) + time.Second - 1) / time.Second)
	last := int64(now.Sub(m.base) / time.Second) // the second in progress
	if from.Before(m.base) || last <= first || last-first > int64(StepSpan/time.Second) {
		return nil, nil
	}
	tokens := make([]float64, last-first)
	for i := range m.slots {
		held := m.slots[i].Load()
		if at := int64(held>>32) - first; at >= 0 && at < last-first {
			tokens[at] = float64(int32(held))
		}
	}
	var s shares
	for i, n := range tokens {
		s.add(batchOf(time.Duration(i), time.Duration(len(tokens))), n, 1)
	}
	if len(tokens) < batches {
		return nil, nil
	}
	value, _, _ := s.ratio()
	return new(max(0, value)), s.interval(math.Inf(1))
}

// Reset clears the meter and starts it anew. Tokens that arrive at that moment may not be
// counted.
func (m *Meter) Reset(now time.Time) {
	m.start.Store(int64(now.Sub(m.base)))
	m.total.Store(0)
	for i := range m.slots {
		m.slots[i].Store(0)
	}
}
